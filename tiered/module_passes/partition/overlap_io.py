"""An input or output  =>  the same, marked to be transferred while others are computed"""

from tiered import Model, PassContext, Skip, module_pass
from tiered.extensions.partition.hints import mark_overlap


@module_pass(opt_level=None)
def overlap_io(model: Model, ctx: PassContext, *, tensors: tuple[str, ...] = ()) -> Skip | None:
    """Mark inputs and outputs for overlapped transfers: PopRT's overlap_io, as metadata.

    `tiered.overlap_io` of an input is `host_load`, that of an output `host_store`. No runtime on a
    CPU reads it.

    Args:
        tensors: inputs and outputs; all by default.

    Raises:
        UsageError: the model has no such input or output.
        ModelError: the IR version has no metadata.
    """
    return None if mark_overlap(model, tensors) else Skip("all are marked")
