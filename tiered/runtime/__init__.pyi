from tiered.runtime.compare.outputs import Comparison as Comparison
from tiered.runtime.compare.tensors import OutputDifference as OutputDifference
from tiered.runtime.fold.compute_cost import (
    divides_safely as divides_safely,
    held_bytes as held_bytes,
    is_fragile as is_fragile,
    needs_of as needs_of,
    waits_for_operands as waits_for_operands,
    work_of as work_of,
)
from tiered.runtime.fold.fold_constants import fold_constants as fold_constants
from tiered.runtime.fold.node_evaluation import (
    ancestors as ancestors,
    evaluate as evaluate,
    freed_bytes as freed_bytes,
)
from tiered.runtime.fold.trip_count import trip_count_of as trip_count_of
from tiered.runtime.inputs.make import (
    Inputs as Inputs,
    feasible_inputs as feasible_inputs,
    make_inputs as make_inputs,
)
from tiered.runtime.session import (
    Reference as Reference,
    Runner as Runner,
    Session as Session,
    run as run,
    run_reference as run_reference,
)
from tiered.runtime.worker.client import (
    Worker as Worker,
    WorkerSession as WorkerSession,
    shared_worker as shared_worker,
)
from tiered.support.numerics import (
    FEW_BITS as FEW_BITS,
    QUANTIZED as QUANTIZED,
    Numerics as Numerics,
)

__all__: list[str]
