"""Gather(x, indices)  =>  Gather(x, indices + dim where they are negative), and GatherElements"""

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var


@rewrite(
    op.Gather(var.x, var.indices, axis=var.axis)
    | op.GatherElements(var.x, var.indices, axis=var.axis),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
)
def legalize_indices(graph: Graph, node: Node, x: Value, indices: Value, axis: int) -> Value | Skip:
    """Count indices from the front, for targets whose kernels do not count from the end."""
    dim = x.dim(axis)
    numbers = indices.const
    if numbers is not None and (numbers >= 0).all():
        return Skip("no index is negative")
    if isinstance(dim, int) and numbers is not None:
        if (numbers < -dim).any():
            return Skip("an index is out of range")
        front = np.where(numbers < 0, numbers + dim, numbers).astype(numbers.dtype)
        return graph.op.like(node, x, graph.constant(front, indices.name))
    if _is_wrapped(indices):
        return Skip("the indices were made positive before")
    if indices.dtype is None or not isinstance(dim, int):
        return Skip("the dim or the dtype of the indices is not known")
    dtype = DataType(indices.dtype).numpy
    ops = graph.op
    zero, size = (graph.constant(np.array(n, dtype), "dim") for n in (0, dim))
    front_or_end = ops.Where(ops.Less(indices, zero), ops.Add(indices, size), indices)
    return ops.like(node, x, front_or_end)


def _is_wrapped(indices: Value) -> bool:
    """Return whether indices are the result of this rule: Where(Less(i, 0), i + dim, i)."""
    where = indices.producer
    if where is None or not where.is_op("Where"):
        return False
    less = where.producer(0)
    return less is not None and less.is_op("Less") and less.inputs[0] is where.inputs[2]
