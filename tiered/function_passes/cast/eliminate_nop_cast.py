"""Cast(x, to=dtype of x)  =>  x"""

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(op.Cast(var.x, to=var.to, attrs=...), opt_level=1)
def eliminate_nop_cast(graph: Graph, x: Value, to: int) -> Value | Skip:
    """Drop a Cast to the dtype that its operand has; saturation and rounding then do nothing."""
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    if x.dtype != to:
        return Skip("the dtype changes")
    return x
