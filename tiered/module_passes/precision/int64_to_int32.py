"""Tensors of int64  =>  tensors of int32, where every number is proven to fit"""

from tiered import Model, PassContext, module_pass
from tiered.numerics.precision.narrow_integers import narrow_integers


@module_pass(
    opt_level=None,
    required=("inline", "eliminate_deadend"),
    followed_by=("eliminate_nop_cast", "eliminate_unused_initializer", "eliminate_deadend"),
    touches=("*",),
)
def int64_to_int32(
    model: Model,
    ctx: PassContext,
    *,
    bounds: tuple[str, ...] = (),
    max_dim: int = 2147483647,
    skip_op_types: tuple[str, ...] = (),
    skip_nodes: tuple[str, ...] = (),
) -> None:
    """Compute in int32 where the schemas allow it and ranges prove it; inputs and outputs stay.

    Args:
        bounds: the ranges of inputs, as `name=low:high`.
        max_dim: the largest size of a dim that is not a number.
        skip_op_types: operators that stay as they are.
        skip_nodes: globs of the names of nodes that stay as they are.
    """
    narrow_integers(
        model,
        ctx.remark,
        ctx.skip,
        bounds=bounds,
        max_dim=max_dim,
        skip_op_types=skip_op_types,
        skip_nodes=skip_nodes,
        backend=ctx.backend if ctx.names_backend else None,
    )
