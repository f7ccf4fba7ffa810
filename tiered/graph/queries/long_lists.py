"""NodeProtos without the long lists of numbers that neither the checker nor inference reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import onnx

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node

_DOMAIN: Final = "ai.onnx.ml"
_OPERATORS: Final = ("SVM", "TreeEnsemble")
_LONG: Final = 1024
_LISTS: Final = ("floats", "ints", "strings")


def has_long_lists(graph: Graph) -> bool:
    """Return whether nodes of a graph may have long lists that do not affect types."""
    return any(
        nodes and domain == _DOMAIN and op_type.startswith(_OPERATORS)
        for (domain, op_type), nodes in graph._by_op.items()
    )


def shortened(node: Node) -> onnx.NodeProto:
    """Return the NodeProto of a node, or a copy with one element of each such list.

    Lists of classes are kept: their length determines the shape of an output.
    """
    proto = node.proto
    if node.domain != _DOMAIN or not node.op_type.startswith(_OPERATORS):
        return proto
    if not any(_is_long(attribute) for attribute in proto.attribute):
        return proto
    made = onnx.NodeProto(
        op_type=proto.op_type,
        domain=proto.domain,
        name=proto.name,
        input=proto.input,
        output=proto.output,
    )
    for attribute in proto.attribute:
        if _is_long(attribute):
            made.attribute.append(_first(attribute))
        else:
            made.attribute.append(attribute)
    return made


def _is_long(attribute: onnx.AttributeProto) -> bool:
    if attribute.name.startswith("class"):
        return False
    return any(len(getattr(attribute, name)) > _LONG for name in _LISTS)


def _first(attribute: onnx.AttributeProto) -> onnx.AttributeProto:
    made = onnx.AttributeProto(name=attribute.name, type=attribute.type)
    for name in _LISTS:
        getattr(made, name).extend(getattr(attribute, name)[:1])
    return made
