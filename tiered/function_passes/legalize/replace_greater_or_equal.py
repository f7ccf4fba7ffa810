"""GreaterOrEqual(a, b)  =>  Or(Greater(a, b), Equal(a, b)), of integers Not(Less(a, b))"""

from tiered import Graph, Value, op, rewrite, var
from tiered.rewriter.idioms.comparison import is_integer


@rewrite(op.GreaterOrEqual(var.a, var.b), opt_level=None, legalizes=True)
def replace_greater_or_equal(graph: Graph, a: Value, b: Value) -> Value:
    """Compare by operators of opset 7.

    NaN is neither less nor greater, nor equal: of floats, Not(Less(a, b)) would be true for it.
    """
    if is_integer(a.dtype):
        return graph.op.Not(graph.op.Less(a, b))
    return graph.op.Or(graph.op.Greater(a, b), graph.op.Equal(a, b))
