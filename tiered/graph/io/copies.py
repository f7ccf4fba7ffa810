"""Copies of protos that the view may write, without the parts that it stores itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

import onnx
from google.protobuf.message import Message
from google.protobuf.unknown_fields import UnknownFieldSet

from tiered.graph.core.node import domain_of
from tiered.graph.core.schema import schema_of

_GRAPH_KINDS = (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS)


def own_copies(
    protos: Iterable[onnx.NodeProto],
) -> Iterator[tuple[onnx.NodeProto, list[onnx.AttributeProto]]]:
    """Yield a copy of each NodeProto for the view, and the attributes that hold its bodies.

    The copies are in one message, which takes a third of the memory of separate messages. A node
    with bodies is copied separately, without the bodies.
    """
    sources, holder = list(protos), onnx.GraphProto()
    operators = {(source.op_type, source.domain) for source in sources}
    if not any(_may_have_bodies(*operator) for operator in operators):
        holder.node.extend(sources)
        yield from ((copy, []) for copy in holder.node[:])
        return
    bodies = [_body_attributes(source) for source in sources]
    holder.node.extend(source for source, found in zip(sources, bodies, strict=True) if not found)
    copies = iter(holder.node[:])
    for source, found in zip(sources, bodies, strict=True):
        yield _without_bodies(source) if found else next(copies), found


def _without_bodies(source: onnx.NodeProto) -> onnx.NodeProto:
    proto: onnx.NodeProto = without(source, frozenset({"attribute"}), onnx.NodeProto())
    for attribute in source.attribute:
        if attribute.type in _GRAPH_KINDS:
            without(attribute, frozenset({"g", "graphs"}), proto.attribute.add())
        else:
            proto.attribute.add().CopyFrom(attribute)
    return proto


def _body_attributes(node: onnx.NodeProto) -> list[onnx.AttributeProto]:
    """Return the attributes that hold graphs."""
    if not node.attribute or not _may_have_bodies(node.op_type, node.domain):
        return []
    return [attribute for attribute in node.attribute if attribute.type in _GRAPH_KINDS]


@lru_cache(maxsize=1024)
def _may_have_bodies(op_type: str | bytes, domain: str | bytes) -> bool:
    """Return whether an operator may have bodies; for operators of onnx, its schema decides."""
    if not isinstance(op_type, str) or not isinstance(domain, str):
        return True  # not UTF-8: reading the node raises an error
    schema = schema_of(op_type, domain_of(domain))
    if schema is None:
        return True
    kinds = onnx.defs.OpSchema.AttrType
    return any(
        attribute.type in (kinds.GRAPH, kinds.GRAPHS) for attribute in schema.attributes.values()
    )


def without(proto: Any, fields: frozenset[str], target: Any) -> Any:
    """Copy a message without some of its fields; unknown fields survive."""
    if len(UnknownFieldSet(proto)):
        target.CopyFrom(proto)
        for name in fields:
            target.ClearField(name)
        return target
    for field, content in proto.ListFields():
        if field.name in fields:
            continue
        if isinstance(content, Message):
            getattr(target, field.name).CopyFrom(content)
        elif field.is_repeated:
            getattr(target, field.name).extend(content)
        else:
            setattr(target, field.name, content)
    return target
