"""Operators that compute each element from the elements at the same index, and per channel."""

from __future__ import annotations

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
from tiered.graph import Node
from tiered.graph.queries.op_traits import BROADCASTING, UNARY

_NUMPY_SINCE = 7
"""The opset from which on operands broadcast as in numpy."""


@AXES.rule(*UNARY)
def _unary(node: Node) -> AxisMap:
    return first_alone(node)


@AXES.rule(*BROADCASTING)
def _broadcasting(node: Node) -> AxisMap | None:
    """Operators that broadcast; before opset 7 only where an attribute says so, or by channels."""
    is_old = node.version < _NUMPY_SINCE
    if is_old and (node.attr("broadcast", 0) or node.is_op("PRelu")):
        return None
    labels = whole(len(dims_of(node.output)))
    inputs = tuple(broadcast(value, labels) for value in node.operands)
    slots = () if is_old else (1,) if node.is_op("PRelu") else whole(len(inputs))
    return AxisMap(inputs, (labels,), broadcasts=slots)


@AXES.rule("DequantizeLinear", "QuantizeLinear")
def _quantized(node: Node) -> AxisMap | None:
    """QuantizeLinear and DequantizeLinear: of one scale, one for each index, or for each block."""
    dims, scale = dims_of(node.operands[0]), dims_of(node.operands[1])
    labels, axis = whole(len(dims)), axis_of(node, len(dims), 1)
    others: Axes | None = None
    kinds: dict[int, Kind] = {}
    if scale not in ((), (1,)):
        if axis is None:
            return None
        others = (axis,)
    if node.attr("block_size", 0):
        if axis is None or len(scale) != len(dims):
            return None
        blocks = len(dims)
        others = (*labels[:axis], blocks, *labels[axis + 1 :])
        kinds = all_of(Kind.OPAQUE, (axis, blocks))
    elif len(scale) > 1:
        return None
    rest = tuple(None if value is None else others for value in node.operands[1:])
    return AxisMap((labels, *rest), (labels,), kinds)


@AXES.rule("BatchNormalization")
def _batch_normalization(node: Node) -> AxisMap | None:
    rank = len(dims_of(node.operands[0]))
    is_training = node.attr("training_mode", 0) or any(node.outputs[1:])
    if rank < 2 or is_training or not node.attr("spatial", 1):
        return None
    labels = whole(rank)
    return AxisMap((labels, *((1,),) * (len(node.operands) - 1)), (labels,))
