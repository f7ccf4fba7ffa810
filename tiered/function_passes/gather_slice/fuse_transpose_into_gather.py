"""Gather(Transpose(x, perm), i, axis)  =>  Gather(x, i, perm[axis]), if the rest keeps its order"""

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(
    op.Gather(op.Transpose(var.x, perm=var.perm).shared(), var.index, axis=var.axis),
    opt_level=1,
    required=("infer_shapes",),
)
def fuse_transpose_into_gather(
    graph: Graph, x: Value, perm: tuple[int, ...] | None, index: Value, axis: int
) -> Value | Skip:
    """Take one index of the axis where it was: the Transpose only brought that axis there."""
    if index.rank != 0:
        return Skip("the index is no single number")
    if x.rank is None:
        return Skip("the rank of x is not known")
    order = tuple(perm) if perm else tuple(reversed(range(x.rank)))
    if len(order) != x.rank:
        return Skip("perm does not have the rank of x")
    place = axis % x.rank
    others = [each for at, each in enumerate(order) if at != place]
    if others != sorted(others):
        return Skip("the other axes change their order")
    return graph.op.Gather(x, index, axis=order[place])
