"""Strings of a model that are not UTF-8: protobuf reads them as bytes, and does not write them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message


def wrong_text(message: Message) -> str | None:
    """Return the path of the first string in a message that is not UTF-8; None if all are."""
    return next(_wrong(message, ""), None)


def wrong_header(proto: onnx.ModelProto) -> str | None:
    """Return the same of what is read beside the nodes: domains, metadata, inputs and outputs."""
    graph = proto.graph
    messages: dict[str, Iterable[Message]] = {
        "opset_import": proto.opset_import,
        "metadata_props": proto.metadata_props,
        "graph.metadata_props": graph.metadata_props,
        "graph.input": graph.input,
        "graph.output": graph.output,
    }
    for number, source in enumerate(proto.functions):
        messages[f"functions[{number}].opset_import"] = source.opset_import
        for name in ("name", "domain", "overload"):
            if not isinstance(getattr(source, name), str):
                return f"functions[{number}].{name}"
    for path, parts in messages.items():
        for number, part in enumerate(parts):
            found = wrong_text(part)
            if found is not None:
                return f"{path}[{number}].{found}"
    return None


def _wrong(message: Message, path: str) -> Iterator[str]:
    for field in message.DESCRIPTOR.fields:
        if field.type not in (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_MESSAGE):
            continue
        if not field.is_repeated and not message.HasField(field.name):
            continue
        content: Any = getattr(message, field.name)
        is_text = field.type == FieldDescriptor.TYPE_STRING
        for number, part in enumerate(content if field.is_repeated else (content,)):
            name = f"{path}{field.name}{f'[{number}]' if field.is_repeated else ''}"
            if not is_text:
                yield from _wrong(part, f"{name}.")
            elif not isinstance(part, str):
                yield name
