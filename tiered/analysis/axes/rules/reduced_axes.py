"""Operators that combine the elements along some axes: norms, reductions, sums."""

from __future__ import annotations

from tiered.analysis.axes.axis_map import (
    AXES,
    AxisMap,
    IteratorKind,
    NoMap,
    all_of,
    axes_in,
    axis_of,
    broadcast,
    first_alone,
    own_labels,
    whole,
)
from tiered.analysis.axes.axis_reading import reduced_axes
from tiered.graph import Node
from tiered.graph.queries.op_traits import ARG_REDUCTIONS, REDUCTIONS, SOFTMAXES
from tiered.rewriter import Skip

_OF_ONE_AXIS_SINCE = 13
"""The opset from which on Softmax and its like combine one axis, not all from one on."""


@AXES.rule(*SOFTMAXES)
def _softmax(node: Node) -> AxisMap:
    rank = len(own_labels(node))
    if node.version >= _OF_ONE_AXIS_SINCE:
        return first_alone(node, {axis_of(node, rank): IteratorKind.REDUCTION})
    # Over no axis, after the last one, each element is normalised alone.
    start = rank if node.attr("axis") == rank else axis_of(node, rank)
    return first_alone(node, all_of(IteratorKind.REDUCTION, range(start, rank)))


@AXES.rule("LpNormalization")
def _along_one(node: Node) -> AxisMap:
    return first_alone(node, {axis_of(node, len(own_labels(node)), -1): IteratorKind.REDUCTION})


@AXES.rule("TopK")
def _top(node: Node) -> AxisMap:
    return first_alone(node, {axis_of(node, len(own_labels(node)), -1): IteratorKind.OPAQUE})


@AXES.rule("CumProd", "CumSum")
def _cumulative(node: Node) -> AxisMap:
    rank, number = len(own_labels(node)), node.given(1).number
    if number is None:
        raise NoMap("its axis is not constant")
    return first_alone(node, all_of(IteratorKind.REDUCTION, axes_in((int(number),), rank)))


@AXES.rule("LayerNormalization", "RMSNormalization")
def _from_axis_on(node: Node) -> AxisMap:
    """LayerNormalization and RMSNormalization: over all axes from one on; scales broadcast."""
    labels = own_labels(node)
    start = axis_of(node, len(labels), -1)
    scales = [broadcast(value, labels) for value in node.operands[1:]]
    kinds = all_of(IteratorKind.REDUCTION, labels[start:])
    # The mean and the deviation have one element along each axis from `start` on.
    outputs = (labels,) * len(node.outputs)
    return AxisMap((labels, *scales), outputs, kinds, broadcasts=whole(len(scales), 1))


@AXES.rule("InstanceNormalization")
def _of_instances(node: Node) -> AxisMap:
    labels = own_labels(node, 2)
    others = ((1,),) * (len(node.operands) - 1)
    return AxisMap((labels, *others), (labels,), all_of(IteratorKind.REDUCTION, labels[2:]))


@AXES.rule("GroupNormalization", "LRN")
def _of_channels(node: Node) -> AxisMap:
    """GroupNormalization and LRN: channels are combined with some others."""
    labels = own_labels(node, 2)
    kinds = all_of(IteratorKind.REDUCTION, () if node.is_op("LRN") else labels[2:])
    return first_alone(node, {1: IteratorKind.OPAQUE, **kinds})


@AXES.rule("MeanVarianceNormalization")
def _of_list(node: Node) -> AxisMap:
    axes = axes_in(node.attr("axes", (0, 2, 3)), len(own_labels(node)))
    return first_alone(node, all_of(IteratorKind.REDUCTION, axes))


@AXES.rule("Trilu")
def _trilu(node: Node) -> AxisMap:
    return first_alone(node, all_of(IteratorKind.OPAQUE, own_labels(node, 2)[-2:]))


@AXES.rule("ReverseSequence")
def _reverse_sequence(node: Node) -> AxisMap:
    labels = own_labels(node, 2)
    batch, time = node.attr("batch_axis"), node.attr("time_axis")
    if {batch, time} != {0, 1}:
        raise NoMap("its axes are out of range")
    return AxisMap((labels, (batch,)), (labels,), {time: IteratorKind.OPAQUE})


@AXES.rule("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
def _rows(node: Node) -> AxisMap:
    """What keeps batch and channels apart, and combines all other axes."""
    return first_alone(node, all_of(IteratorKind.REDUCTION, own_labels(node, 2)[2:]))


@AXES.rule(*ARG_REDUCTIONS, *REDUCTIONS)
def _reduction(node: Node) -> AxisMap:
    """Reductions; an axis that is kept has one element of all along its iterator."""
    labels = own_labels(node)
    axes = reduced_axes(node, len(labels))
    if isinstance(axes, Skip):
        raise NoMap(str(axes))
    if axes and not 0 <= axes[0] <= axes[-1] < len(labels):
        raise NoMap("its axes are out of range")
    kept = labels if node.attr("keepdims", True) else tuple(at for at in labels if at not in axes)
    others = (None,) * (len(node.operands) - 1)
    return AxisMap((labels, *others), (kept,), all_of(IteratorKind.REDUCTION, axes))
