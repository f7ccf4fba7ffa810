"""The body that ONNX gives an operator, for one node with its attributes and dtypes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import onnx

from tiered.graph.core.graph import Function
from tiered.graph.core.schema import Schema, attributes_of, schema_of
from tiered.graph.core.types import TensorType
from tiered.graph.queries.stable_body import stabilized
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.node import Node

DOMAIN = "tiered.body"
"""The domain of the functions that bodies are made of; none of them stays in a model."""

EXACT_BODIES: Final = frozenset(
    {"CastLike", "CenterCropPad", "DepthToSpace", "GreaterOrEqual", "LessOrEqual", "SpaceToDepth"}
)
"""Operators with a body that only compares, converts or moves: it changes no bit."""


def has_function_body(node: Node) -> bool:
    """Return whether ONNX defines the operator of a node by a function, for some dtypes."""
    schema: Any = schema_of(node.op_type, node.domain, node.owner.opset(node.domain))
    if schema is None or node.bodies:
        return False
    return bool(schema.has_function or schema.has_context_dependent_function)


def function_body(node: Node) -> onnx.FunctionProto:
    """Return the function that ONNX defines the operator of a node by, in a sound form.

    What cancels or overflows in it has another form (`stable_body`). The function has the operands
    of the node, absent ones too, and imports one version of the default domain, which may be older
    than the model's. Attributes that the node leaves to their defaults are defaults of the
    function.

    Raises:
        ModelError: ONNX defines no body for the operator, or none for the node's dtypes; or an
            attribute is a parameter of a local function that calls may leave out, whereupon the
            operator has its default, which the nodes of a body have not.
    """
    version = node.owner.opset(node.domain)
    schema = schema_of(node.op_type, node.domain, version)
    name = node.operator
    if schema is None:
        raise ModelError(f"{name} is not an operator of opset {version}")
    if node.bodies:
        raise ModelError(f"{name} has bodies")
    root = node.owner.root
    known = root.defaults if isinstance(root, Function) else {}
    given = {proto.ref_attr_name for proto in node.proto.attribute if proto.ref_attr_name}
    for parameter in sorted(given - set(known)):
        raise ModelError(f"{name} has the parameter {parameter!r}, which a call may leave out")
    text = _of_any_types(schema, version) or _of_node(schema, node, version)
    if not text:
        raise ModelError(f"ONNX defines no function body of {name} in opset {version}")
    body = onnx.FunctionProto.FromString(text)
    stabilized(body)
    _import_default_domain(body, node)
    body.domain, body.name = DOMAIN, node.op_type
    if node.op_type == "AffineGrid" and not node.domain:
        _name_squeezed_axes(body)
    _leave_out_absent_outputs(body, node)
    del body.attribute_proto[:]
    body.attribute_proto.extend(_defaults(schema, node))
    return body


def _import_default_domain(body: onnx.FunctionProto, node: Node) -> None:
    """Import the default domain, if the body uses operators of it without saying the version."""
    imported = {entry.domain for entry in body.opset_import}
    if "" not in imported and any(not inner.domain for inner in body.node):
        version = node.owner.opset("") or onnx.defs.onnx_opset_version()
        body.opset_import.append(onnx.helper.make_opsetid("", version))


def _of_any_types(schema: Any, version: int) -> bytes:
    """Return the serialised body that holds for all dtypes; empty if there is none."""
    # onnx's stub of a schema lacks its functions.
    found = _newest(schema.function_opset_versions, version) if schema.has_function else None
    return b"" if found is None else bytes(schema.get_function_with_opset_version(found))


def _of_node(schema: Any, node: Node, version: int) -> bytes:
    """Return the serialised body for the dtypes and attributes of a node; empty without one."""
    versions = schema.context_dependent_function_opset_versions
    found = _newest(versions, version) if schema.has_context_dependent_function else None
    if found is None:
        return b""
    called = onnx.NodeProto()
    called.CopyFrom(node.proto)
    written = {attribute.name for attribute in called.attribute}
    called.attribute.extend(proto for proto in _defaults(schema, node) if proto.name not in written)
    if any(attribute.ref_attr_name for attribute in called.attribute):
        raise ModelError(f"the call of the function decides an attribute of {node.op_type}")
    # Only which operands are present matters, and the names must differ.
    del called.input[:], called.output[:]
    called.input.extend("" if value is None else f"i{at}" for at, value in enumerate(node.inputs))
    called.output.extend("" if value is None else f"o{at}" for at, value in enumerate(node.outputs))
    text = schema.get_context_dependent_function_with_opset_version(
        found, called.SerializeToString(), list(_types(node))
    )
    return bytes(text)


def _leave_out_absent_outputs(body: onnx.FunctionProto, node: Node) -> None:
    """Drop the last outputs that the node does not have; earlier absent ones repeat another."""
    del body.output[len(node.outputs) :]
    names = list(body.output)
    present = next(name for name, value in zip(names, node.outputs, strict=True) if value)
    kept = zip(names, node.outputs, strict=True)
    body.output[:] = [present if value is None else name for name, value in kept]


def _name_squeezed_axes(body: onnx.FunctionProto) -> None:
    """Name the axis that AffineGrid's body squeezes: without it a batch of 1 goes as well.

    `theta[N,2,3]` is split into two rows `[N,1,3]`, and each is squeezed to `[N,3]`.
    """
    bodies = [entry.g.node for node in body.node for entry in node.attribute if entry.HasField("g")]
    for nodes in (body.node, *bodies):
        for inner in nodes:
            if inner.op_type == "Squeeze" and len(inner.input) == 1:
                inner.input.append("one_1d")


def _newest(versions: list[int], version: int) -> int | None:
    return max((known for known in versions if known <= version), default=None)


def _defaults(schema: Schema, node: Node) -> Iterator[onnx.AttributeProto]:
    """Yield the defaults of the attributes that a node does not have."""
    written = {attribute.name for attribute in node.proto.attribute}
    for name, attribute in attributes_of(schema).items():
        default = attribute.default_value
        if name not in written and default.type != onnx.AttributeProto.UNDEFINED:
            proto = onnx.AttributeProto()
            proto.CopyFrom(default)
            proto.name = name
            yield proto


def _types(node: Node) -> Iterator[bytes]:
    """Yield the serialised type of each operand; an absent operand has an empty one."""
    for value in node.inputs:
        proto = onnx.TypeProto()
        if value is not None:
            kind = value.type
            if not isinstance(kind, TensorType):
                raise ModelError(f"the dtype of {value.name!r} is unknown")
            proto.tensor_type.elem_type = kind.dtype
            for dim in kind.shape or ():
                entry = proto.tensor_type.shape.dim.add()
                if isinstance(dim, int):
                    entry.dim_value = dim
            if kind.shape == ():
                proto.tensor_type.shape.SetInParent()
        yield proto.SerializeToString()
