"""Where(Not(condition), x, y)  =>  Where(condition, y, x)"""

from tiered import Graph, Value, op, rewrite, var


@rewrite(op.Where(op.Not(var.condition), var.x, var.y), opt_level=2)
def fuse_not_into_where(graph: Graph, condition: Value, x: Value, y: Value) -> Value:
    """Swap the branches instead of inverting the condition.

    onnxruntime's Where returns +0.0 for a -0.0 of its second input, but not of its third, which
    contradicts the operator's definition: only there do the two differ.
    """
    return graph.op.Where(condition, y, x)
