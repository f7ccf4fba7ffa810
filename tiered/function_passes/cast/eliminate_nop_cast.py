"""Cast(x, to=dtype of x)  =>  x"""

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var


@rewrite(op.Cast(var.x, attrs="ignored") | op.CastLike(var.x, ..., attrs="ignored"), opt_level=1)
def eliminate_nop_cast(graph: Graph, x: Value, node: Node) -> Value | Skip:
    """Drop a Cast to the dtype that its operand has: there is nothing to round, or to saturate."""
    like = node.operand(1)
    to = node.attr("to") if like is None else like.dtype
    if x.dtype is None or to is None:
        return Skip("a dtype is not known")
    if x.dtype != to:
        return Skip("the dtype changes")
    if to == DataType.FLOAT8E5M2 and node.attr("saturate", True):
        return Skip("it makes infinities finite")  # on onnx.reference; of float8 only e5m2 has any
    return x
