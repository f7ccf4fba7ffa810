"""Gather(x, constant scalar)  =>  Squeeze(Slice(x))"""

import numpy as np

from tiered import Graph, Skip, Value, op, rewrite, var


@rewrite(
    op.Gather(var.x, var.indices, axis=var.axis),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
)
def replace_gather_with_slice(graph: Graph, x: Value, indices: Value, axis: int) -> Value | Skip:
    """Cut one element of an axis out, and the axis with it."""
    if indices.const is None or indices.const.ndim:
        return Skip("indices is not a constant scalar")
    dim, index = x.dim(axis), int(indices.const)
    if not isinstance(dim, int):
        return Skip("the dim of the axis is not a number")
    if not -dim <= index < dim:
        return Skip("the index is out of range")
    start = index % dim
    axes = graph.constant(np.array([axis], np.int64), "axes")
    ends = np.array([start + 1], np.int64)
    return graph.op.Squeeze(graph.op.Slice(x, np.array([start], np.int64), ends, axes), axes)
