"""Operators that compute each element from the elements at the same index, and per channel."""

from __future__ import annotations

from functools import lru_cache

from tiered.analysis.axes.axis_map import (
    AXES,
    Axes,
    AxisMap,
    IteratorKind,
    Labels,
    NoMap,
    axis_of,
    broadcast,
    dims_of,
    first_alone,
    own_labels,
    whole,
)
from tiered.graph import Node
from tiered.graph.queries.op_traits import BROADCASTING, UNARY

_NUMPY_SINCE = 7
"""The opset from which on operands broadcast as in numpy."""


@AXES.rule("QLinearLeakyRelu", "QLinearSigmoid", domain="com.microsoft")
@AXES.rule(*UNARY)
def _unary(node: Node) -> AxisMap:
    """Operators of one tensor; all other operands are numbers, but that of CastLike."""
    if node.op_type == "Dropout" and node.version < _NUMPY_SINCE and node.attr("is_test") != 1:
        raise NoMap("it is in training mode")
    others = () if node.op_type == "CastLike" else node.operands[1:]
    if any(value is not None and value.rank != 0 for value in others):
        raise NoMap("an operand beside the first one is no scalar")
    return first_alone(node)


@AXES.rule(*BROADCASTING)
def _broadcasting(node: Node) -> AxisMap:
    """Operators that broadcast; before opset 7 only where an attribute says so, or by channels."""
    # Max of opset 7 does not broadcast; of opset 8 it does.
    is_old = node.version < _NUMPY_SINCE
    if is_old and (node.attr("broadcast") or node.is_op("PRelu")):
        raise NoMap("its opset broadcasts in another way")
    ranks = tuple([len(dims_of(value)) for value in node.operands])
    slots = () if is_old else (1,) if node.op_type == "PRelu" else whole(len(ranks))
    return _broadcast(ranks, slots)


@lru_cache
def _broadcast(ranks: tuple[int, ...], slots: Labels) -> AxisMap:
    labels = whole(max(ranks))
    inputs = tuple(labels[len(labels) - rank :] for rank in ranks)
    return AxisMap(inputs, (labels,), broadcasts=slots)


@AXES.rule("QLinearAdd", "QLinearMul", domain="com.microsoft")
def _quantized_binary(node: Node) -> AxisMap:
    """Two operands broadcast; all others are their scales and zero points, and the result's."""
    labels = whole(max(len(dims_of(node.operands[slot])) for slot in (0, 3)))
    inputs = (
        broadcast(value, labels) if slot in (0, 3) else None
        for slot, value in enumerate(node.operands)
    )
    return AxisMap(tuple(inputs), (labels,), broadcasts=(0, 3))


@AXES.rule("DequantizeLinear", "QuantizeLinear", domain=("", "com.microsoft"))
def _quantized(node: Node) -> AxisMap:
    """QuantizeLinear and DequantizeLinear: of one scale, one for each index, or for each block."""
    labels, scale = own_labels(node), dims_of(node.operands[1])
    others: Axes | None = None
    kinds: dict[int, IteratorKind] = {}
    if node.attr("block_size") and len(scale) == len(labels):
        # Along the axis of blocks, a scale has an element for several.
        others, kinds = labels, {axis_of(node, len(labels), 1): IteratorKind.OPAQUE}
    elif len(scale) > 1:
        raise NoMap("its scale is neither a scalar nor 1-D")
    elif scale not in ((), (1,)):
        others = (axis_of(node, len(labels), 1),)
    return AxisMap((labels, *(others,) * (len(node.operands) - 1)), (labels,), kinds)


@AXES.rule("BatchNormalization")
def _batch_normalization(node: Node) -> AxisMap:
    labels = own_labels(node, 2)
    if node.attr("training_mode") or any(node.outputs[1:]):
        raise NoMap("it is in training mode")
    if not node.attr("spatial", True):
        raise NoMap("it has a scale for each element")
    return AxisMap((labels, *((1,),) * (len(node.operands) - 1)), (labels,))
