from tiered.extensions.debug.all_values import (
    AllValues as AllValues,
    ValueStatistics as ValueStatistics,
)
from tiered.extensions.debug.blame import Bisection as Bisection, Blame as Blame, bisect as bisect
from tiered.extensions.debug.bundle import (
    Bundle as Bundle,
    Failure as Failure,
    Replay as Replay,
    load_bundle as load_bundle,
    replay as replay,
)
from tiered.extensions.debug.layer_chart import layers_svg as layers_svg
from tiered.extensions.debug.layer_differences import (
    Layer as Layer,
    LayerComparison as LayerComparison,
    layer_precision_compare as layer_precision_compare,
)
from tiered.extensions.debug.model_reduction import reduce_model as reduce_model
from tiered.extensions.debug.models import (
    ModelComparison as ModelComparison,
    OutputRow as OutputRow,
    Trial as Trial,
    compare_models as compare_models,
)
from tiered.extensions.debug.oracles import (
    CommandOracle as CommandOracle,
    Oracle as Oracle,
    OutputOracle as OutputOracle,
    SameEnd as SameEnd,
)
from tiered.extensions.debug.pipeline_runs import Subject as Subject
from tiered.extensions.debug.reproducers import (
    reproduce as reproduce,
    write_reproducer as write_reproducer,
)
from tiered.extensions.debug.weight_effects import (
    Sensitivity as Sensitivity,
    sensitivity as sensitivity,
)

__all__: list[str]
