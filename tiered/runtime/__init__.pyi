from tiered.runtime.compare.outputs import Comparison as Comparison
from tiered.runtime.compare.tensors import OutputDifference as OutputDifference
from tiered.runtime.fold.compute_cost import (
    divides_safely as divides_safely,
)
from tiered.runtime.fold.compute_cost import (
    held_bytes as held_bytes,
)
from tiered.runtime.fold.compute_cost import is_fragile as is_fragile
from tiered.runtime.fold.compute_cost import (
    needs_of as needs_of,
)
from tiered.runtime.fold.compute_cost import (
    waits_for_operands as waits_for_operands,
)
from tiered.runtime.fold.compute_cost import work_of as work_of
from tiered.runtime.fold.evaluate import (
    ancestors as ancestors,
)
from tiered.runtime.fold.evaluate import (
    evaluate as evaluate,
)
from tiered.runtime.fold.evaluate import (
    freed_bytes as freed_bytes,
)
from tiered.runtime.fold.fold_constants import fold_constants as fold_constants
from tiered.runtime.inputs.make import (
    Inputs as Inputs,
)
from tiered.runtime.inputs.make import (
    feasible_inputs as feasible_inputs,
)
from tiered.runtime.inputs.make import (
    make_inputs as make_inputs,
)
from tiered.runtime.session import (
    Reference as Reference,
)
from tiered.runtime.session import (
    Runner as Runner,
)
from tiered.runtime.session import (
    Session as Session,
)
from tiered.runtime.session import (
    run as run,
)
from tiered.runtime.session import (
    run_reference as run_reference,
)
from tiered.runtime.worker.client import (
    Worker as Worker,
)
from tiered.runtime.worker.client import (
    WorkerSession as WorkerSession,
)
from tiered.runtime.worker.client import (
    shared_worker as shared_worker,
)
from tiered.support.numerics import QUANTISED as QUANTISED
from tiered.support.numerics import Numerics as Numerics

__all__: list[str]
