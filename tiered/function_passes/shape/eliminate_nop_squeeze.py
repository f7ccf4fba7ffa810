"""Squeeze(x), if no dim of x is 1  =>  x"""

from tiered import Graph, Skip, Value, op, opt, rewrite, var


@rewrite(op.Squeeze(var.x, opt.axes), opt_level=1)
def eliminate_nop_squeeze(graph: Graph, x: Value, axes: Value | None) -> Value | Skip:
    """Drop a Squeeze without axes if x has no dim of 1."""
    if axes is not None:
        return Skip("the Squeeze names its axes")
    if x.static_shape is None:
        return Skip("a dim of x is not known, and may be 1")
    if 1 in x.static_shape:
        return Skip("a dim of size 1 is removed")
    return x
