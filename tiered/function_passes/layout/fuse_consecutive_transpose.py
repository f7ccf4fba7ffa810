"""Transpose(Transpose(x, perm=p), perm=q)  =>  Transpose(x, perm=[p[i] for i in q])"""

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(op.Transpose(op.Transpose(var.x, perm=var.inner).shared(), perm=var.outer), opt_level=1)
def fuse_consecutive_transpose(
    graph: Graph, x: Value, inner: tuple[int, ...] | None, outer: tuple[int, ...] | None
) -> Value | Skip:
    """Move each axis once, or not at all where the two cancel; an absent perm reverses all axes."""
    known = inner or outer
    if not known:
        return x
    axes = tuple(range(len(known)))
    inner, outer = inner or axes[::-1], outer or axes[::-1]
    if sorted(inner) != sorted(outer) or tuple(sorted(inner)) != axes:
        return Skip("a perm is not a permutation")
    perm = tuple(inner[axis] for axis in outer)
    return x if perm == axes else graph.op.Transpose(x, perm=perm)
