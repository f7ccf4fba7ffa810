"""Transpose(x, perm=[0, 1, 2, ...])  =>  x"""

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(op.Transpose(var.x, perm=var.perm), opt_level=1)
def eliminate_nop_transpose(graph: Graph, x: Value, perm: tuple[int, ...] | None) -> Value | Skip:
    """Drop a Transpose that leaves every axis in its place; without perm it reverses them."""
    if not perm:
        if x.rank is None:
            return Skip("perm is absent and the rank of x is not known")
        perm = tuple(reversed(range(x.rank)))
    if perm != tuple(range(len(perm))):
        return Skip("it moves an axis")
    if x.rank not in (None, len(perm)):
        return Skip("perm does not have the rank of x")
    return x
