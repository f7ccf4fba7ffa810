"""Operators that take or put elements at indices."""

from __future__ import annotations

from tiered.analysis.axes.axis_map import AXES, Axes, AxisMap, Kind, all_of, axis_of, dims_of, whole
from tiered.graph import Node


@AXES.rule("Gather")
def _gather(node: Node) -> AxisMap | None:
    """Gather: the axes of the indices take the place of the gathered axis."""
    rank, width = (len(dims_of(value)) for value in node.operands)
    axis = axis_of(node, rank, 0)
    if axis is None:
        return None
    data, indices = whole(rank), whole(width, rank)
    out = (*data[:axis], *indices, *data[axis + 1 :])
    return AxisMap((data, indices), (out,), all_of(Kind.OPAQUE, (axis,)))


@AXES.rule("GatherElements")
def _gather_elements(node: Node) -> AxisMap | None:
    return _elements(node, shape_of=1)


@AXES.rule("Scatter", "ScatterElements")
def _scatter_elements(node: Node) -> AxisMap | None:
    return _elements(node, shape_of=0)


def _elements(node: Node, shape_of: int) -> AxisMap | None:
    """Return the map where all operands have the same axes; `shape_of` has the result's shape.

    Where indices are fewer than the data, a part of the one is no part of the other.
    """
    shapes = [dims_of(value) for value in node.operands]
    labels = whole(len(shapes[shape_of]))
    axis = axis_of(node, len(labels), 0)
    if axis is None or any(len(shape) != len(labels) for shape in shapes):
        return None
    uneven = [at for at in labels if len({shape[at] for shape in shapes}) > 1]
    kinds = all_of(Kind.OPAQUE, (axis, *uneven))
    return AxisMap((labels,) * len(shapes), (labels,), kinds)


@AXES.rule("GatherND")
def _gather_nd(node: Node) -> AxisMap | None:
    data, indices = (dims_of(value) for value in node.operands)
    shared, depth = node.attr("batch_dims", 0), indices[-1]
    if not isinstance(depth, int) or shared + depth > len(data):
        return None
    batch, named = whole(shared), whole(depth, shared)
    kept = whole(len(data) - shared - depth, shared + depth)
    listed = whole(len(indices) - 1 - shared, len(data))
    pairs = len(data) + len(indices)
    kinds = {**all_of(Kind.OPAQUE, named), pairs: Kind.REDUCTION}
    inputs = ((*batch, *named, *kept), (*batch, *listed, pairs))
    return AxisMap(inputs, ((*batch, *listed, *kept),), kinds)


@AXES.rule("ScatterND")
def _scatter_nd(node: Node) -> AxisMap | None:
    data, indices = (dims_of(value) for value in node.operands[:2])
    depth = indices[-1]
    if not isinstance(depth, int) or depth > len(data):
        return None
    labels, listed = whole(len(data)), whole(len(indices), len(data))
    updates: Axes = (*listed[:-1], *labels[depth:])
    kinds = {**all_of(Kind.OPAQUE, labels[:depth]), **all_of(Kind.REDUCTION, listed)}
    return AxisMap((labels, listed, updates), (labels,), kinds)


@AXES.rule("Compress")
def _compress(node: Node) -> AxisMap | None:
    labels = whole(len(dims_of(node.operands[0])))
    axis = None if node.attr("axis", None) is None else axis_of(node, len(labels))
    if axis is None:
        return None
    return AxisMap((labels, None), (labels,), all_of(Kind.OPAQUE, (axis,)))


@AXES.rule("OneHot")
def _one_hot(node: Node) -> AxisMap | None:
    """OneHot: the result has a new axis, of `depth` elements."""
    labels = whole(len(dims_of(node.output)))
    axis = axis_of(node, len(labels), -1)
    if axis is None:
        return None
    own = (*labels[:axis], *labels[axis + 1 :])
    return AxisMap((own, None, None), (labels,), all_of(Kind.OPAQUE, (axis,)))
