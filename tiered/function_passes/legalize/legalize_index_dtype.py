"""Gather(x, int64 indices)  =>  Gather(x, Cast(indices) to int32), and GatherElements"""

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var


@rewrite(
    op.Gather(var.x, var.indices, attrs=...) | op.GatherElements(var.x, var.indices, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
)
def legalize_index_dtype(graph: Graph, node: Node, x: Value, indices: Value) -> Value | Skip:
    """Index with 32 bits, for targets that have no integers of 64.

    Every index that a model may have is inside of its axis, and that fits into 32 bits.
    """
    if indices.dtype != DataType.INT64:
        return Skip("the indices are not int64")
    dim = x.dim(node.attr("axis"))
    limits = np.iinfo(np.int32)
    if isinstance(dim, int) and dim > limits.max:
        return Skip("the axis has more than 2**31 elements")
    numbers = indices.const
    if numbers is None:
        return graph.op.like(node, x, graph.op.Cast(indices, to=int(DataType.INT32)))
    if numbers.size and (numbers.min() < limits.min or numbers.max() > limits.max):
        return Skip("an index is out of range")
    return graph.op.like(node, x, graph.constant(numbers.astype(np.int32), indices.name))
