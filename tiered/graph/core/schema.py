"""Operator schemas from `onnx.defs`, each looked up once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, Protocol

import onnx
from onnx import defs

from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.tensor import Tensor

Schema = defs.OpSchema

NEWEST = 1 << 30


@lru_cache(maxsize=8192)
def schema_of(op_type: str, domain: str, version: int = NEWEST) -> Schema | None:
    """Return the schema at an opset version; None for an operator that onnx does not define."""
    version = max(version, 0)
    try:
        return defs.get_schema(op_type, min(version, defs.onnx_opset_version()), domain)
    except defs.SchemaError:
        pass
    if domain == "":
        return None
    try:
        # Other domains have version numbers of their own.
        return defs.get_schema(op_type, min(version, (1 << 31) - 1), domain)
    except defs.SchemaError:
        return None


EARLY_OPERATORS: Final = {"LayerNormalization": 17}
"""ONNX's operators that runtimes also run at older opsets, with the first opset that has them.

onnxruntime registers LayerNormalization from opset 1 on, in the form of opset 17.
"""


def schema_in_use(op_type: str, domain: str, version: int) -> Schema | None:
    """Return the schema at an opset version, or before it the first one of an early operator."""
    first = 0 if domain else EARLY_OPERATORS.get(op_type, 0)
    return schema_of(op_type, domain, max(version, first))


@lru_cache(maxsize=16)
def operators_of(domain: str) -> frozenset[str]:
    """Return the names of the operators that onnx defines in a domain."""
    return frozenset(schema.name for schema in defs.get_all_schemas() if schema.domain == domain)


@lru_cache(maxsize=8192)
def attributes_of(schema: Schema) -> Mapping[str, Any]:
    """Return the attributes of a schema, cached: onnx builds the dict at each access."""
    return schema.attributes


@lru_cache(maxsize=8192)
def default_of(schema: Schema, name: str) -> Any:
    """Return the schema's default of an attribute, None if it has none."""
    attribute = attributes_of(schema).get(name)
    if attribute is None or attribute.default_value.type == onnx.AttributeProto.UNDEFINED:
        return None
    return decode_attribute(attribute.default_value)


@lru_cache(maxsize=8192)
def input_names(schema: Schema) -> tuple[str, ...]:
    """Return the formal names of the inputs."""
    return tuple(formal.name for formal in schema.inputs)


class AttributeReference:
    """An attribute of a local function's node that is given by the call (`ref_attr_name`)."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AttributeReference) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"@{self.name}"


def decode_attribute(proto: onnx.AttributeProto) -> Any:
    """Return an attribute as int, float, str, Tensor, TypeProto, reference or a tuple of these.

    A string that is not UTF-8 stays bytes. Graphs are not attributes here but bodies of the node.
    """
    if reference := proto.ref_attr_name:
        return AttributeReference(reference)
    decode = _DECODED.get(proto.type)
    return None if decode is None else decode(proto)


def _tensor(proto: onnx.TensorProto | onnx.SparseTensorProto) -> Tensor:
    from tiered.graph.core.tensor import Tensor

    return Tensor(proto)


def _text(raw: bytes) -> str | bytes:
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw


_DECODED: Final[Mapping[int, Callable[[onnx.AttributeProto], Any]]] = {
    onnx.AttributeProto.INT: attrgetter("i"),
    onnx.AttributeProto.FLOAT: attrgetter("f"),
    onnx.AttributeProto.STRING: lambda proto: _text(proto.s),
    onnx.AttributeProto.TENSOR: lambda proto: _tensor(proto.t),
    onnx.AttributeProto.SPARSE_TENSOR: lambda proto: _tensor(proto.sparse_tensor),
    onnx.AttributeProto.INTS: lambda proto: tuple(proto.ints),
    onnx.AttributeProto.FLOATS: lambda proto: tuple(proto.floats),
    onnx.AttributeProto.STRINGS: lambda proto: tuple(map(_text, proto.strings)),
    onnx.AttributeProto.TENSORS: lambda proto: tuple(map(_tensor, proto.tensors)),
    onnx.AttributeProto.TYPE_PROTO: attrgetter("tp"),
}
"""The name of each attribute type; a dict, because the enum of a message is slow."""


def encode_attribute(name: str, value: Any, schema: Schema | None) -> onnx.AttributeProto:
    """Return the AttributeProto of a Python value, in the type which the schema demands."""
    from tiered.graph.core.tensor import Tensor

    if isinstance(value, onnx.AttributeProto):
        return value
    kind = None
    if schema is not None and name in attributes_of(schema):
        kind = onnx.AttributeProto.AttributeType.Value(attributes_of(schema)[name].type.name)
    if isinstance(value, Tensor):
        value = value.proto if value.is_sparse else value.embedded("")
    if isinstance(value, AttributeReference):
        return onnx.AttributeProto(name=name, ref_attr_name=value.name, type=kind or 0)  # type: ignore[arg-type]  # enum stub
    return onnx.helper.make_attribute(name, value, attr_type=kind)


class OperatorNode(Protocol):
    """The properties of a node that these checks read."""

    proto: onnx.NodeProto

    @property
    def op_type(self) -> str: ...
    @property
    def domain(self) -> str: ...
    @property
    def label(self) -> str: ...
    def attribute_protos(self) -> Mapping[str, onnx.AttributeProto]: ...


def check_safe(node: OperatorNode) -> None:
    """Check what crashes onnx's inference, or makes it run for ever.

    Raises:
        ModelError: a Split has too many outputs, or the equation of an Einsum is malformed.
    """
    if node.op_type in UNSAFE and (reason := why_unsafe(node)):
        raise ModelError(f"node {node.label!r} ({node.op_type}) {reason}")


UNSAFE: Final = frozenset({"Split", "Einsum"})
"""The operators that onnx's inference does not survive with every attribute."""


TERM: Final = re.compile(rb"[A-Za-z]*(\.\.\.)?[A-Za-z]*")
"""A term of the equation of an Einsum, without spaces."""


def why_unsafe(node: OperatorNode) -> str:
    """Return why onnx's inference would not survive a node; an empty string if it would."""
    if node.op_type not in UNSAFE or node.domain:
        return ""
    attributes = node.attribute_protos()
    if node.op_type == "Split":
        said = attributes.get("num_outputs")
        if said is None or said.ref_attr_name or len(node.proto.output) <= said.i:
            return ""
        return "has more outputs than its num_outputs"
    equation = attributes.get("equation")
    if equation is None or equation.ref_attr_name:
        return ""
    operands, _, result = equation.s.replace(b" ", b"").partition(b"->")
    if all(TERM.fullmatch(term) for term in (*operands.split(b","), result)):
        return ""
    return (
        f"has a malformed equation {_text(equation.s)!r}: expected terms of letters, each with "
        "'...' at most once, and '->' at most once"
    )
