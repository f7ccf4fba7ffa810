"""IsNaN(x)  =>  Not(Equal(x, x))"""

from typing import Final

from tiered import Graph, Skip, Value, op, rewrite, var

_EQUAL_TAKES_FLOATS: Final = 11


@rewrite(op.IsNaN(var.x), opt_level=None, legalizes=True)
def replace_isnan(graph: Graph, x: Value) -> Value | Skip:
    """Compare x with itself: NaN alone differs from itself."""
    if graph.opset() < _EQUAL_TAKES_FLOATS:
        return Skip("before opset 11 Equal takes no floats")
    return graph.op.Not(graph.op.Equal(x, x))
