"""Gather(x, indices), axis 0  =>  GatherND(x, Unsqueeze(indices, -1))"""

from typing import Final

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var

_GATHERND_EXISTS: Final = 11


@rewrite(
    op.Gather(var.x, var.indices, axis=var.axis),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
)
def replace_gather_with_gathernd(graph: Graph, x: Value, indices: Value, axis: int) -> Value | Skip:
    """Look rows up by an operator whose last axis of indices names the axes of x."""
    if graph.opset() < _GATHERND_EXISTS:
        return Skip("before opset 11 there is no GatherND")
    if x.rank is None or indices.rank is None or indices.dtype is None:
        return Skip("a rank or the dtype of the indices is not known")
    if axis % max(x.rank, 1) != 0:
        return Skip("the axis is not the first")
    rows = indices
    if indices.dtype != DataType.INT64:
        rows = graph.op.Cast(indices, to=int(DataType.INT64))
    last = np.array([indices.rank], np.int64)
    return graph.op.GatherND(x, graph.op.Unsqueeze(rows, last))
