"""Squeeze(x)  =>  Squeeze(x, axes), the axes of size 1"""

import numpy as np

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(op.Squeeze(var.x), opt_level=None, required=("infer_shapes",))
def fill_squeeze_axes(graph: Graph, x: Value) -> Value | Skip:
    """Name the axes that a Squeeze removes; opt-in, for targets that do not look for them.

    Source: fill_squeeze_axes of PopRT.
    """
    shape = x.static_shape
    if shape is None:
        return Skip("a dim of x may be 1")
    axes = np.flatnonzero(np.array(shape, np.int64) == 1)
    if not axes.size:
        return Skip("no dim of x is 1")
    result: Value = graph.op.Squeeze(x, axes.astype(np.int64))
    return result
