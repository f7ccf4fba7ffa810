"""Sum(x), Mean(x), Max(x), Min(x)  =>  x"""

from tiered import Graph, Value, op, rewrite, var


@rewrite(op.Sum(var.x) | op.Mean(var.x) | op.Max(var.x) | op.Min(var.x), opt_level=1)
def eliminate_nop_variadic(graph: Graph, x: Value) -> Value:
    """Replace a variadic operator with one operand by that operand."""
    return x
