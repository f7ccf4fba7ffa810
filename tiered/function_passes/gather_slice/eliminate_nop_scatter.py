"""ScatterND(x, every place in order, updates)  =>  updates"""

import numpy as np

from tiered import Graph, Skip, Value, op, rewrite, var
from tiered.graph.core.types import Shape


@rewrite(op.ScatterND(var.x, var.indices, var.updates), opt_level=1, required=("infer_shapes",))
def eliminate_nop_scatter(graph: Graph, x: Value, indices: Value, updates: Value) -> Value | Skip:
    """Take the updates where they replace all of x, one place after the other.

    The places are those of the first axis, or of several: constants, or a Range up to its size.
    """
    if x.shape is None:
        return Skip("the rank of x is not known")
    if indices.const is not None:
        is_whole = _are_all_places(indices.const, x.shape)
    else:
        is_whole = _is_range_over(indices, x)
    return updates if is_whole else Skip("the indices are not known to be consecutive")


def _are_all_places(indices: np.ndarray, shape: Shape) -> bool:
    """Return whether constant indices name each place of the first axes of a shape, in order."""
    depth = indices.shape[-1] if indices.ndim else 0
    if depth == 0 or depth > len(shape) or indices.shape[:-1] != shape[:depth]:
        return False
    places = np.moveaxis(np.indices(indices.shape[:-1]), 0, -1)
    counted = np.where(indices < 0, indices + np.array(indices.shape[:-1]), indices)
    return bool((counted == places).all())


def _is_range_over(indices: Value, x: Value) -> bool:
    """Return whether indices are a column of the numbers from 0 up to the first dim of x."""
    column = indices.producer
    if column is None or not (column.is_op("Unsqueeze") or column.is_op("Reshape")):
        return False
    counted = column.producer(0)
    if counted is None or not counted.is_op("Range") or indices.rank != 2 or indices.dim(1) != 1:
        return False
    start, limit, delta = map(counted.given, range(3))
    return start.number == 0 and delta.number == 1 and _is_size_of(limit, x)


def _is_size_of(limit: Value, x: Value) -> bool:
    """Return whether a number is the first dim of x, whatever that is."""
    dim, elements = x.dim(0), limit.elements
    if dim is None or elements is None or elements.size != 1:
        return False
    return bool(elements.item() == x.owner.model.dims.size(dim))
