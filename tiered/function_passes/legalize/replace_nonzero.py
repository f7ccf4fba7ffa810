"""NonZero(x)  =>  the place of the one element that is not zero"""

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var
from tiered.support.amounts import counted


@rewrite(op.NonZero(var.x), opt_level=None, required=("infer_shapes",), numerics="lossy")
def replace_nonzero(graph: Graph, x: Value, *, count: int = 1) -> Value | Skip:
    """Find the elements of a vector that are not zero, exactly `count` of them.

    Their number is not known from a model, so the user says it: with another number the result is
    wrong. The result has a static shape, that of NonZero has not.

    Args:
        count: how many elements of x are not zero, in every run.
    """
    if x.rank != 1 or x.dtype is None or x.dtype == DataType.STRING:
        return Skip("x is not known to be a vector of numbers")
    size = x.dim(0)
    if count < 1 or (isinstance(size, int) and count > size):
        return Skip("a vector of {} has no {}", size, counted(count, "element"))
    ops = graph.op
    mask = x
    if x.dtype != DataType.BOOL:
        zero = graph.constant(np.zeros((), DataType(x.dtype).numpy), "zero")
        mask = ops.Not(ops.Equal(x, zero))
    number = ops.Cast(mask, to=int(DataType.FLOAT))
    axes = np.array([0], np.int64)
    if count == 1:
        place = ops.ArgMax(number, axis=0, keepdims=1)
    else:
        # Of equal elements TopK returns those with the lowest index, in that order.
        _, place = ops.TopK(number, np.array([count], np.int64), outputs=2)
    return ops.Unsqueeze(place, axes)
