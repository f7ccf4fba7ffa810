"""Gather(x, [0, 1, 2, ...])  =>  x"""

import numpy as np

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(op.Gather(var.x, var.indices, axis=var.axis), opt_level=1)
def eliminate_nop_gather(graph: Graph, x: Value, indices: Value, axis: int) -> Value | Skip:
    """Drop a Gather that takes each slice once, in order; negative indices count from the end."""
    dim = x.dim(axis)
    if not isinstance(dim, int):
        return Skip("the size of the axis is not known")
    if indices.tensor is None or indices.tensor.shape != (dim,):
        return Skip("indices is not constant with the axis size")
    taken = indices.const
    if taken is None or not np.array_equal(np.where(taken < 0, taken + dim, taken), np.arange(dim)):
        return Skip("the slices are in another order")
    return x
