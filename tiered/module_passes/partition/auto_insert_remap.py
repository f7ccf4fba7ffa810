"""A MatMul, a Slice, or the Add of a mask  =>  the same, marked for another tile layout"""

from typing import Literal

from tiered import Model, PassContext, Skip, module_pass
from tiered.extensions.partition.hints import mark_remaps


@module_pass(opt_level=None, touches=("MatMul", "Slice", "Add"))
def auto_insert_remap(
    model: Model,
    ctx: PassContext,
    *,
    remap_mode: tuple[Literal["after_matmul", "after_slice", "before_add"], ...] = (
        "after_matmul",
    ),
) -> Skip | None:
    """Mark where a compiler may lay out a tensor again: PopRT's auto_insert_remap, as metadata.

    `tiered.remap` of a MatMul or a Slice is `outputs`, that of an Add before Softmax `inputs`.
    There is no node for it, as an Identity would be eliminated. No runtime on a CPU reads it.

    Args:
        remap_mode: `after_matmul`, `after_slice`, `before_add`, or several.

    Raises:
        ModelError: the IR version has no metadata.
    """
    return None if mark_remaps(model, remap_mode) else Skip("no node is to be marked")
