"""CastLike(x, like)  =>  Cast(x, to=dtype of like)"""

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(
    op.CastLike(var.x, var.like, saturate=var.saturate, round_mode=var.round_mode), opt_level=1
)
def replace_castlike_with_cast(
    graph: Graph, x: Value, like: Value, saturate: int | None, round_mode: str | None
) -> Value | Skip:
    """Name the dtype, so that what only lent it can go."""
    if like.dtype is None:
        return Skip("the dtype of like is not known")
    return graph.op.Cast(x, to=like.dtype, saturate=saturate, round_mode=round_mode)
