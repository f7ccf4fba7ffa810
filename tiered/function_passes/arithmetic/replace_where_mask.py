"""Softmax(Where(keep, x, masked))  =>  Softmax(x + masked * not keep), for a masked far below x"""

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var


@rewrite(
    op.Softmax(op.Where(var.choice, var.a, var.b), axis=var.axis),
    opt_level=None,
    numerics="approximate",
)
def replace_where_mask(
    graph: Graph, choice: Value, a: Value, b: Value, axis: int, *, least: float = 1000.0
) -> Value | Skip:
    """Add the mask: runtimes that fuse attention expect this form.

    The masked value may be either operand: exporters write masked_fill as Where(drop, masked, x).

    The results are equal if the numbers of a row of x differ from each other, and from 0, by at
    most `least` - 104: a masked exponential is then 0 in float32 in both forms. A fully masked row
    becomes softmax(x) instead of uniform.

    Args:
        least: how far below 0 the masked value must be.
    """
    x, masked = (b, a) if a.const is not None else (a, b)
    if masked.const is None or masked.const.ndim:
        return Skip("the masked value is not one constant number")
    number = float(masked.const.item())
    if not np.isfinite(number) or number > -least:
        return Skip("a masked value of {} is too high", number)
    if x.dtype is None or x.dtype not in (DataType.FLOAT16, DataType.FLOAT):
        return Skip("x is not known to be float or float16")
    ops = graph.op
    dropped = ops.Cast(choice if masked is a else ops.Not(choice), to=int(x.dtype))
    result: Value = ops.Softmax(ops.Add(x, ops.Mul(dropped, masked)), axis=axis)
    return result
