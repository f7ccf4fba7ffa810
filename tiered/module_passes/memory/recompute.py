"""A tensor, read before and after the peak of memory  =>  computed again after the peak"""

from tiered import Model, PassContext, UsageError, memory_plan, module_pass
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.memory.liveness import peak_change
from tiered.extensions.memory.recomputation import recompute_values
from tiered.graph.core.marks import METADATA_SINCE


@module_pass(opt_level=None, required=("infer_shapes",))
def recompute(
    model: Model,
    ctx: PassContext,
    *,
    max_multiply_adds: int = 0,
    dims: tuple[str, ...] = (),
    default_dim: int = 16,
) -> None:
    """Compute cheap tensors again near their later readers, where that lowers the peak.

    The peak is that of `memory_plan`, and never rises. Nodes of the main graph are copied, with
    what they need, if they are deterministic. The metadata of the copies have an entry
    `tiered.recomputed`, by which no pass merges them again; before IR 10 nodes have none.
    onnxruntime merges them, unless its `CommonSubexpressionElimination` is disabled.

    Args:
        max_multiply_adds: what the copies of products and convolutions may cost together; other
            operators cost nothing.
        dims: the sizes of dynamic dims, as `name=size`.
        default_dim: the size of all others.

    Raises:
        UsageError: `max_multiply_adds` is negative, or `dims` holds no size.
    """
    if max_multiply_adds < 0:
        raise UsageError(
            f"recompute: max_multiply_adds is a number from 0 on, not {max_multiply_adds}"
        )
    sizes = LayoutSizes.parse(dims, default_dim, "recompute", model)
    before = memory_plan(model, dims=sizes.known, default_dim=default_dim)
    done = recompute_values(model, sizes=sizes, max_multiply_adds=max_multiply_adds)
    for node, reason in done.kept:
        ctx.skip(node, reason)
    if done.copies:
        after = memory_plan(model, dims=sizes.known, default_dim=default_dim)
        cost = f"nodes added: {done.copies}, multiply-adds: {done.multiply_adds}"
        ctx.remark(f"{peak_change(before, after)}; {cost}")
        if model.ir_version < METADATA_SINCE:
            ctx.remark(f"copies have no mark before IR {METADATA_SINCE}: passes may merge them")
