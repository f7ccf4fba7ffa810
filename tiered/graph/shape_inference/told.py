"""What the rules written here tell of the types of a node, without onnx's inference."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.types import TensorType, tensor_type
from tiered.graph.shape_inference.rules import control_flow as body_types
from tiered.graph.shape_inference.rules import reshaping as shape_rules
from tiered.graph.shape_inference.rules import standard as operator_types
from tiered.graph.shape_inference.rules import windows as window_types
from tiered.graph.shape_inference.rules.standard import OLDEST

if TYPE_CHECKING:
    from tiered.graph.core.node import Node

_RULES: Final = operator_types.RULES | window_types.RULES | body_types.RULES

# What a rule does not foresee: it says nothing then, and onnx may.
_UNFORESEEN = (IndexError, KeyError, TypeError, ValueError, ZeroDivisionError)


class Told(NamedTuple):
    """What rules tell of a node.

    Attributes:
        types: of the outputs, in their order.
        is_whole: whether onnx could not tell more.
    """

    types: Sequence[TensorType]
    is_whole: bool


def told_types(node: Node) -> Told | None:
    """Return what the rules tell of a node, None for nothing."""
    op_type = node.op_type
    rule, sizes = _RULES.get(op_type), shape_rules.RULES.get(op_type)
    if (rule is None and sizes is None) or node.domain or node.has_references:
        return None
    if node.owner.opset() < OLDEST:
        return None
    kinds: list[TensorType] = []
    for value in node._inputs:
        if value is None:
            continue
        kind = value._type
        if type(kind) is not TensorType:
            kind = value.type
            if type(kind) is not TensorType:
                return None
        kinds.append(kind)
    try:
        if rule is None:
            return _sized(node, kinds)
        found = rule(node, kinds)
    except _UNFORESEEN:
        return None
    if isinstance(found, TensorType):
        # Of a second output, rules for one say nothing.
        return Told((found,), True) if len(node._outputs) == 1 else None
    return None if found is None else Told(found, True)


def _sized(node: Node, kinds: Sequence[TensorType]) -> Told | None:
    """Return the type of a node whose shape comes from the values of its operands."""
    op_type = node.op_type
    shape = shape_rules.RULES[op_type](node)
    if shape is None or len(node._outputs) != 1:
        return None
    dims = node.owner.model.dims
    dtype = kinds[0].dtype
    if op_type == "ConstantOfShape":
        filled = node.attr("value", None)
        dtype = DataType.FLOAT if filled is None else filled.dtype
    is_whole = op_type in shape_rules.WHOLE or None not in shape
    return Told((tensor_type(dtype, tuple([dims.dim(size) for size in shape])),), is_whole)
