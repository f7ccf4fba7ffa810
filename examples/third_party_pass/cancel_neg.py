"""Sub(a, Neg(b))  =>  Add(a, b)"""

from tiered import DataType, Graph, Skip, Value, op, rewrite, var

_FLOATS = (DataType.FLOAT, DataType.DOUBLE)


@rewrite(op.Sub(var.a, op.Neg(var.b)), opt_level=2)
def cancel_neg(graph: Graph, a: Value, b: Value) -> Value | Skip:
    """Add what is taken away with the other sign: the sum is the same, and rounded the same."""
    if b.dtype not in _FLOATS:
        return Skip("the smallest integer has no other sign")
    result: Value = graph.op.Add(a, b)
    return result
