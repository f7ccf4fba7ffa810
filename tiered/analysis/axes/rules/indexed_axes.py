"""Operators that take or put elements at indices."""

from __future__ import annotations

from tiered.analysis.axes.axis_map import (
    AXES,
    Axes,
    AxisMap,
    Dims,
    IteratorKind,
    NoMap,
    all_of,
    axis_of,
    dims_of,
    first_alone,
    own_labels,
    whole,
)
from tiered.graph import Node


@AXES.rule("Gather")
def _gather(node: Node) -> AxisMap:
    """Gather: the axes of the indices take the place of the gathered axis."""
    rank, width = (len(dims_of(value)) for value in node.operands)
    axis = axis_of(node, rank, 0)
    data, indices = whole(rank), whole(width, rank)
    out = (*data[:axis], *indices, *data[axis + 1 :])
    return AxisMap((data, indices), (out,), {axis: IteratorKind.OPAQUE})


@AXES.rule("GatherElements", "Scatter", "ScatterElements")
def _elements(node: Node) -> AxisMap:
    """What takes or puts elements one by one: all operands have the same axes.

    Where indices are fewer than the data, a part of the one is no part of the other.
    """
    shapes = [dims_of(value) for value in node.operands]
    labels = own_labels(node)
    axis = axis_of(node, len(labels), 0)
    if any(len(shape) != len(labels) for shape in shapes):
        raise NoMap("its operands differ in rank")
    uneven = [at for at in labels if len({shape[at] for shape in shapes}) > 1]
    kinds = all_of(IteratorKind.OPAQUE, (axis, *uneven))
    return AxisMap((labels,) * len(shapes), (labels,), kinds)


@AXES.rule("GatherND")
def _gather_nd(node: Node) -> AxisMap:
    data, indices = (dims_of(value) for value in node.operands)
    shared = node.attr("batch_dims", 0)
    depth = _depth(indices, len(data) - shared)
    batch, named = whole(shared), whole(depth, shared)
    kept = whole(len(data) - shared - depth, shared + depth)
    listed = whole(len(indices) - 1 - shared, len(data))
    pairs = len(data) + len(indices)
    kinds = {**all_of(IteratorKind.OPAQUE, named), pairs: IteratorKind.REDUCTION}
    inputs = ((*batch, *named, *kept), (*batch, *listed, pairs))
    return AxisMap(inputs, ((*batch, *listed, *kept),), kinds)


@AXES.rule("ScatterND")
def _scatter_nd(node: Node) -> AxisMap:
    data, indices = (dims_of(value) for value in node.operands[:2])
    depth = _depth(indices, len(data))
    labels, listed = whole(len(data)), whole(len(indices), len(data))
    updates: Axes = (*listed[:-1], *labels[depth:])
    kinds = {
        **all_of(IteratorKind.OPAQUE, labels[:depth]),
        **all_of(IteratorKind.REDUCTION, listed),
    }
    return AxisMap((labels, listed, updates), (labels,), kinds)


def _depth(indices: Dims, most: int) -> int:
    """Return the number of axes of the data that one index of GatherND or ScatterND is for."""
    depth = indices[-1] if indices else None
    if not isinstance(depth, int) or depth > most:
        raise NoMap("the axes that its indices are for are not known")
    return depth


@AXES.rule("Compress")
def _compress(node: Node) -> AxisMap:
    if node.attr("axis", None) is None:
        raise NoMap("without an axis it flattens its operand")
    return first_alone(node, {axis_of(node, len(own_labels(node))): IteratorKind.OPAQUE})


@AXES.rule("OneHot")
def _one_hot(node: Node) -> AxisMap:
    """OneHot: the result has a new axis, of `depth` elements."""
    labels = whole(len(own_labels(node)) + 1)
    axis = axis_of(node, len(labels), -1)
    own = (*labels[:axis], *labels[axis + 1 :])
    return AxisMap((own, None, None), (labels,), {axis: IteratorKind.OPAQUE})
