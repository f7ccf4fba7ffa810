from tiered.debug.blame import Bisection as Bisection
from tiered.debug.blame import Blame as Blame
from tiered.debug.blame import bisect as bisect
from tiered.debug.bundle import (
    Bundle as Bundle,
)
from tiered.debug.bundle import (
    Failure as Failure,
)
from tiered.debug.bundle import (
    Replay as Replay,
)
from tiered.debug.bundle import (
    load_bundle as load_bundle,
)
from tiered.debug.bundle import (
    replay as replay,
)
from tiered.debug.layer_chart import layers_svg as layers_svg
from tiered.debug.layers import (
    Layer as Layer,
)
from tiered.debug.layers import (
    LayerComparison as LayerComparison,
)
from tiered.debug.layers import (
    layer_precision_compare as layer_precision_compare,
)
from tiered.debug.models import (
    ModelComparison as ModelComparison,
)
from tiered.debug.models import (
    OutputRow as OutputRow,
)
from tiered.debug.models import (
    Trial as Trial,
)
from tiered.debug.models import (
    compare_models as compare_models,
)
from tiered.debug.oracles import (
    CommandOracle as CommandOracle,
)
from tiered.debug.oracles import (
    Oracle as Oracle,
)
from tiered.debug.oracles import (
    OutputOracle as OutputOracle,
)
from tiered.debug.oracles import (
    SameEnd as SameEnd,
)
from tiered.debug.reduction import extract_model as extract_model
from tiered.debug.reduction import reduce_model as reduce_model
from tiered.debug.reproducers import reproduce as reproduce
from tiered.debug.reproducers import write_reproducer as write_reproducer
from tiered.debug.runs import Subject as Subject

__all__: list[str]
