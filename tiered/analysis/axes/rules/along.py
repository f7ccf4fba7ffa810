"""Operators that combine the elements along some axes: norms, reductions, sums."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.analysis.axes.axis_map import (
    AXES,
    Axes,
    AxisMap,
    Kind,
    all_of,
    axis_of,
    broadcast,
    dims_of,
    first_alone,
    whole,
)
from tiered.analysis.axes.reading import reduced_axes
from tiered.graph import Node, non_negative_axes
from tiered.graph.queries.op_traits import ARG_REDUCTIONS, REDUCTIONS, SOFTMAXES
from tiered.rewriter import Skip

_OF_ONE_AXIS_SINCE = 13
"""The opset from which on Softmax and its like combine one axis, not all from one on."""


@AXES.rule(*SOFTMAXES)
def _softmax(node: Node) -> AxisMap | None:
    rank = len(dims_of(node.operands[0]))
    axis = axis_of(node, rank)
    if axis is None:
        return None
    end = axis + 1 if node.version >= _OF_ONE_AXIS_SINCE else rank
    return first_alone(node, all_of(Kind.REDUCTION, range(axis, end)))


@AXES.rule("LpNormalization")
def _along_one(node: Node) -> AxisMap | None:
    axis = axis_of(node, len(dims_of(node.operands[0])), -1)
    return None if axis is None else first_alone(node, all_of(Kind.REDUCTION, (axis,)))


@AXES.rule("TopK")
def _top(node: Node) -> AxisMap | None:
    axis = axis_of(node, len(dims_of(node.operands[0])), -1)
    return None if axis is None else first_alone(node, all_of(Kind.OPAQUE, (axis,)))


@AXES.rule("CumProd", "CumSum")
def _cumulative(node: Node) -> AxisMap | None:
    rank, axis = len(dims_of(node.operands[0])), node.operands[1]
    number = None if axis is None else axis.number
    if number is None or not -rank <= number < rank:
        return None
    return first_alone(node, all_of(Kind.REDUCTION, (int(number) % rank,)))


@AXES.rule("LayerNormalization", "RMSNormalization")
def _from_axis_on(node: Node) -> AxisMap | None:
    """LayerNormalization and RMSNormalization: over all axes from one on; scales broadcast."""
    dims = dims_of(node.operands[0])
    start = axis_of(node, len(dims), -1)
    if start is None:
        return None
    labels = whole(len(dims))
    scales = tuple(broadcast(value, labels) for value in node.operands[1:])
    kinds = all_of(Kind.REDUCTION, labels[start:])
    # The mean and the deviation have one element for the axes from `start` on.
    rest: Axes = (*labels[:start], *(None,) * (len(dims) - start))
    outputs = (labels, *(rest,) * (len(node.outputs) - 1))
    slots = whole(len(scales), 1)
    return AxisMap((labels, *scales), outputs, kinds, broadcasts=slots)


@AXES.rule("InstanceNormalization")
def _of_instances(node: Node) -> AxisMap | None:
    rank = len(dims_of(node.operands[0]))
    labels = whole(rank)
    others = ((1,),) * (len(node.operands) - 1)
    return (
        None
        if rank < 2
        else AxisMap((labels, *others), (labels,), all_of(Kind.REDUCTION, labels[2:]))
    )


@AXES.rule("GroupNormalization", "LRN")
def _of_channels(node: Node) -> AxisMap | None:
    """GroupNormalization and LRN: channels are combined with some others."""
    rank = len(dims_of(node.operands[0]))
    if rank < 2:
        return None
    kinds = all_of(Kind.REDUCTION, () if node.is_op("LRN") else range(2, rank))
    return first_alone(node, {1: Kind.OPAQUE, **kinds})


@AXES.rule("MeanVarianceNormalization")
def _of_list(node: Node) -> AxisMap | None:
    rank = len(dims_of(node.operands[0]))
    axes = non_negative_axes(node.attr("axes", (0, 2, 3)), rank)
    if axes is None or any(axis >= rank for axis in axes):
        return None
    return first_alone(node, all_of(Kind.REDUCTION, axes))


@AXES.rule("Trilu")
def _trilu(node: Node) -> AxisMap | None:
    rank = len(dims_of(node.operands[0]))
    return None if rank < 2 else first_alone(node, all_of(Kind.OPAQUE, (rank - 2, rank - 1)))


@AXES.rule("ReverseSequence")
def _reverse_sequence(node: Node) -> AxisMap | None:
    rank = len(dims_of(node.operands[0]))
    batch, time, labels = node.attr("batch_axis", 1), node.attr("time_axis", 0), whole(rank)
    if rank < 2 or {batch, time} != {0, 1}:
        return None
    return AxisMap((labels, (batch,)), (labels,), all_of(Kind.OPAQUE, (time,)))


@AXES.rule("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
def _rows(node: Node) -> AxisMap | None:
    """What keeps batch and channels apart, and combines all other axes."""
    rank = len(dims_of(node.operands[0]))
    return None if rank < 2 else _reduced(node, range(2, rank), keeps=True)


@AXES.rule(*ARG_REDUCTIONS, *REDUCTIONS)
def _reduction(node: Node) -> AxisMap | None:
    rank = len(dims_of(node.operands[0]))
    axes = reduced_axes(node, rank)
    if isinstance(axes, Skip) or any(not 0 <= axis < rank for axis in axes):
        return None
    return _reduced(node, axes, keeps=bool(node.attr("keepdims", 1)))


def _reduced(node: Node, axes: Sequence[int], *, keeps: bool) -> AxisMap:
    labels = whole(len(dims_of(node.operands[0])))
    made = [None if label in axes else label for label in labels if keeps or label not in axes]
    others = (None,) * (len(node.operands) - 1)
    return AxisMap((labels, *others), (tuple(made),), all_of(Kind.REDUCTION, axes))
