"""Where(Not(condition), x, y)  =>  Where(condition, y, x)"""

from tiered import Graph, Value, op, rewrite, var


@rewrite(op.Where(op.Not(var.condition), var.x, var.y), opt_level=2)
def fuse_not_into_where(graph: Graph, condition: Value, x: Value, y: Value) -> Value:
    """Choose by the condition itself.

    onnxruntime's Where makes +0.0 of a -0.0 that it takes from its second input, but not from its
    third: there, and nowhere in the operator's definition, the two differ.
    """
    return graph.op.Where(condition, y, x)
