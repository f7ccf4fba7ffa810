"""Nodes around a large tensor  =>  the same nodes on its parts, one part after the other"""

from tiered import Model, PassContext, Skip, Unable, UsageError, Value, memory_plan, module_pass
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.memory.liveness import peak_change
from tiered.extensions.memory.splitting.peak_budget import split_model

_NAMED = 5
"""How many tensors over the budget have a remark of their own."""


@module_pass(opt_level=None, required=("infer_shapes",), numerics="reassociating")
def split_by_budget(
    model: Model,
    ctx: PassContext,
    *,
    max_bytes: int = 0,
    dims: tuple[str, ...] = (),
    default_dim: int = 16,
) -> Skip | None:
    """Compute in parts what is alive at the peak of memory, until the peak is within a budget.

    A tensor at the peak and its neighbours of about its size are computed part by part: attention
    by blocks of queries, a convolution by rows of the image with what their kernels share, or by
    channels or batch. Only the smaller tensors around them are there as a whole. A cut that does
    not lower the peak is undone. Remarks name the tensors that cannot be cut, and why. A budget
    that is not met is an error if the pass is required.

    Args:
        max_bytes: the budget of `memory_plan`'s peak.
        dims: the sizes of dynamic dims, as `name=size`; a tensor that has one is not cut.
        default_dim: the size of all others.
    """
    if max_bytes <= 0:
        raise UsageError(f"split_by_budget: max_bytes is a positive number, not {max_bytes}")
    sizes = LayoutSizes.parse(dims, default_dim, "split_by_budget", model)
    before = memory_plan(model, dims=sizes.known, default_dim=default_dim)
    if before.peak <= max_bytes:
        return Skip("the peak is within the budget")
    done = split_model(model, max_bytes, sizes=sizes)
    if done.regions:
        after = memory_plan(model, dims=sizes.known, default_dim=default_dim)
        ctx.remark(f"{peak_change(before, after)}; regions in parts: {done.regions}")
    whole = [_named(value, reason, sizes) for value, reason in done.kept[:_NAMED]]
    for each in whole:
        ctx.remark(each)
    if done.peak <= max_bytes:
        return None
    if not done.regions:
        known = "; ".join(whole)
        return Unable("no cut lowers the peak of {} bytes, over the budget: {}", done.peak, known)
    return Unable(
        "the budget of {} bytes is not met: the peak is {}",
        max_bytes,
        done.peak,
        despite_edits=True,
    )


def _named(value: Value, reason: Skip, sizes: LayoutSizes) -> str:
    """Return why a tensor is whole, with its bytes."""
    size = "a size that is not known" if value.rank is None else f"{sizes.nbytes(value)} bytes"
    return f"'{value.name}' is whole, of {size}: {reason}"
