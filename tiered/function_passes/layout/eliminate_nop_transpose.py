"""Transpose(x)  =>  x, if each axis stays in its place, or trades it with axes of size 1 only"""

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(op.Transpose(var.x, perm=var.perm), opt_level=1)
def eliminate_nop_transpose(graph: Graph, x: Value, perm: tuple[int, ...] | None) -> Value | Skip:
    """Drop a Transpose that moves no element; without perm it reverses the axes."""
    if not perm:
        if x.rank is None:
            return Skip("perm is absent and the rank of x is not known")
        perm = tuple(reversed(range(x.rank)))
    if x.rank not in (None, len(perm)):
        return Skip("perm does not have the rank of x")
    if any(axis != at and x.dim(axis) != 1 for at, axis in enumerate(perm)):
        return Skip("it moves an axis")
    return x
