"""Flatten(x) of a matrix into the same matrix  =>  x"""

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(op.Flatten(var.x, axis=var.axis), opt_level=1)
def eliminate_nop_flatten(graph: Graph, x: Value, axis: int) -> Value | Skip:
    """Drop a Flatten of a matrix between its two dims, or if the other dim is 1."""
    if x.shape is None:
        return Skip("the rank of x is not known")
    if len(x.shape) != 2:
        return Skip("x is not a matrix")
    place = axis + 2 if axis < 0 else axis
    if place != 1 and x.shape[0 if place == 0 else 1] != 1:
        return Skip("a dim may change")
    return x
