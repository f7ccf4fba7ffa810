"""Cast(x, to=dtype of x)  =>  x"""

from tiered import Graph, Node, Skip, Value, op, rewrite, var


@rewrite(op.Cast(var.x, attrs=...) | op.CastLike(var.x, ..., attrs=...), opt_level=1)
def eliminate_nop_cast(graph: Graph, x: Value, node: Node) -> Value | Skip:
    """Drop a Cast to the dtype that its operand has; saturation and rounding then do nothing."""
    like = node.operand(1)
    to = node.attr("to") if like is None else like.dtype
    if x.dtype is None or to is None:
        return Skip("a dtype is not known")
    if x.dtype != to:
        return Skip("the dtype changes")
    return x
