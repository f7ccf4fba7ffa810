"""Transpose(Transpose(x, perm=p), perm=q)  =>  Transpose(x, perm=[p[i] for i in q])"""

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(
    op.Transpose(op.Transpose(var.x, perm=var.inner).shared(), perm=var.outer), opt_level=1
)
def fuse_consecutive_transpose(
    graph: Graph, x: Value, inner: tuple[int, ...] | None, outer: tuple[int, ...] | None
) -> Value | Skip:
    """Move each axis once, or not at all where the two cancel."""
    known = inner or outer
    rank = x.rank if known is None else len(known)
    if rank is None:
        return Skip("both perms are absent and the rank of x is not known")
    reverse = tuple(reversed(range(rank)))
    inner, outer = inner or reverse, outer or reverse
    perm = tuple(inner[axis] for axis in outer)
    if perm == tuple(range(rank)):
        return x
    return graph.op.Transpose(x, perm=perm)
