"""Whether the operands and outputs of a node have types that a schema takes."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import onnx
from onnx.defs import OpSchema

from tiered.graph.core.schema import Schema
from tiered.graph.core.types import OpaqueType, TensorType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value
    from tiered.graph.opset.adapter import Form

_VARIADIC = OpSchema.FormalParameterOption.Variadic


def misfit(node: Node, form: Form, own: Schema, other: Schema) -> str | None:
    """Return why a schema does not take a form of a node; None if it does.

    Args:
        node: the node, with its outputs.
        form: its operator, operands and attributes in the form of the schema.
        own: the schema that it has now.
        other: the schema that it would have.
    """
    count, outputs = len(form.operands), node._outputs
    if not other.min_input <= count <= other.max_input:
        return f"{_name(other)} takes {_range(other.min_input, other.max_input)} operands"
    if len(outputs) > other.max_output:
        return f"{_name(other)} has at most {other.max_output} outputs"
    before = {id(value): place for place, value in enumerate(node._inputs) if value is not None}
    bound: dict[str, str] = {}
    for place, value in enumerate(form.operands):
        formal = other.inputs[min(place, len(other.inputs) - 1)]
        if value is None:
            if formal.option == OpSchema.FormalParameterOption.Single:
                return f"{_name(other)} needs the operand {formal.name!r}"
            continue
        at = before.get(id(value))
        reason = _refusal(value, formal, None if at is None else _formal(own.inputs, at), bound)
        if reason is not None:
            return f"{_name(other)} {reason}"
    for place, value in enumerate(outputs):
        if value is not None:
            formal = _formal(other.outputs, place)
            reason = _refusal(value, formal, _formal(own.outputs, place), bound)
            if reason is not None:
                return f"{_name(other)} {reason}"
    return None


def _refusal(
    value: Value,
    formal: OpSchema.FormalParameter,
    before: OpSchema.FormalParameter | None,
    bound: dict[str, str],
) -> str | None:
    """Return why a formal parameter does not take a value; note the type of its variable."""
    text = type_text(value)
    if text is None:
        if before is not None and (lost := _types(before) - _types(formal)):
            return f"takes no {min(lost)} as {formal.name!r}, whose type is not known"
        return None
    if text not in _types(formal):
        return f"takes no {text} as {formal.name!r}"
    if "(" in formal.type_str or (formal.option == _VARIADIC and not formal.is_homogeneous):
        return None
    if bound.setdefault(formal.type_str, text) != text:
        return f"takes {bound[formal.type_str]} as {formal.name!r}, not {text}"
    return None


def _formal(formals: Sequence[OpSchema.FormalParameter], place: int) -> OpSchema.FormalParameter:
    return formals[min(place, len(formals) - 1)]


@lru_cache(maxsize=4096)
def _types(formal: OpSchema.FormalParameter) -> frozenset[str]:
    return frozenset(formal.types)


def type_text(value: Value) -> str | None:
    """Return the type of a value as schemas write it: tensor(float), seq(tensor(int64))."""
    if value.graph is None and value.default is not None:
        return _tensor_text(value.default.dtype)
    kind = value.type
    if isinstance(kind, TensorType):
        return _tensor_text(kind.dtype)
    return _proto_text(kind.serialized) if isinstance(kind, OpaqueType) else None


@lru_cache(maxsize=64)
def _tensor_text(dtype: int) -> str:
    return f"tensor({onnx.TensorProto.DataType.Name(dtype).lower()})"


@lru_cache(maxsize=256)
def _proto_text(serialized: bytes) -> str | None:
    return _text(onnx.TypeProto.FromString(serialized))


def _text(proto: onnx.TypeProto) -> str | None:
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return _tensor_text(proto.tensor_type.elem_type)
    if kind == "sparse_tensor_type":
        return f"sparse_{_tensor_text(proto.sparse_tensor_type.elem_type)}"
    if kind == "sequence_type":
        inner = _text(proto.sequence_type.elem_type)
        return None if inner is None else f"seq({inner})"
    if kind == "optional_type":
        inner = _text(proto.optional_type.elem_type)
        return None if inner is None else f"optional({inner})"
    if kind == "map_type":
        inner = _text(proto.map_type.value_type)
        key = onnx.TensorProto.DataType.Name(proto.map_type.key_type).lower()
        return None if inner is None else f"map({key}, {inner})"
    return None


def _name(schema: Schema) -> str:
    return f"{schema.name}-{schema.since_version}"


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"
