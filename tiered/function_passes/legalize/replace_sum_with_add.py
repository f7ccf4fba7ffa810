"""Sum(a, b)  =>  Add(a, b)"""

from tiered import Graph, Value, op, rewrite, var


@rewrite(op.Sum(var.a, var.b), opt_level=None, legalizes=True)
def replace_sum_with_add(graph: Graph, a: Value, b: Value) -> Value:
    """Add two operands; the order of the sums of more is not defined."""
    result: Value = graph.op.Add(a, b)
    return result
