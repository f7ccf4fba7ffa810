"""The form of a node at another opset: what `Model.set_opset` writes.

A form goes from one opset to the next change of its operator, and to the next, up or down, through
the rows of the tables of forms: `adapters.CHANGES`, which builders and patterns share, and those
that only a conversion needs: `meanings.MEANINGS` has conditions, `earliest.EARLIEST` what opsets
before 7 wrote otherwise.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import onnx
from onnx.defs import OpSchema

from tiered.graph.core.schema import (
    Schema,
    attributes_of,
    decode_attribute,
    default_of,
    schema_in_use,
    schema_of,
)
from tiered.graph.core.types import OpaqueType, TensorType, tensor_text
from tiered.graph.opset.adapter import NoEquivalentForm, OperatorForm, OpsetChange
from tiered.graph.opset.adapters import CHANGES
from tiered.graph.opset.earliest import EARLIEST
from tiered.graph.opset.meanings import INSTEAD, MEANINGS
from tiered.support.amounts import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value
    from tiered.graph.opset.adapter import OperatorForm


def form_between(node: Node, before: int, after: int) -> OperatorForm | None:
    """Return the form at one opset of a node of the default domain that is written for another.

    Args:
        node: the node.
        before: the opset that its form is of.
        after: the opset of the result.

    Returns:
        None where the node has the same form at both.

    Raises:
        NoEquivalentForm: the opset has no form that means the same.
    """
    own = schema_in_use(node.op_type, "", before)
    there = schema_of(node.op_type, "", after)
    if own is None and there is None:
        return None
    if own is not None and there is not None and own.since_version == there.since_version:
        return None
    form = _form(node, before)
    if own is None:
        raise form.declines(f"is unknown to opset {before}")
    rows = _rows(node.op_type, before, after)
    if rows and node.parameter_reason is not None:
        raise form.declines(f"cannot change: {node.parameter_reason}")
    written = dict(form.attributes)
    _apply(form, before, after)
    form.version = after
    there = schema_of(form.op_type, "", after)
    if there is None or there.deprecated:
        raise NoEquivalentForm(_missing(form.op_type, there, before, after))
    _check_attributes(form, written, own, there)
    form.changed = _changed(written, form.attributes)
    reason = misfit(node, form, own, there)
    if reason is not None:
        raise NoEquivalentForm(reason)
    return form


def _form(node: Node, version: int) -> OperatorForm:
    attributes = {name: decode_attribute(proto) for name, proto in node.attribute_protos().items()}
    outputs = len(node._outputs) - sum(value is None for value in node._outputs)
    return OperatorForm(node.op_type, version, list(node._inputs), attributes, outputs)


def _apply(form: OperatorForm, before: int, after: int) -> None:
    """Take a form through all changes between two opsets, up or down."""
    is_up, version = before < after, before
    # The rows ask for the older opset: reading it, and writing it.
    form.version, form.target = min(before, after), after
    while rows := _rows(form.op_type, version, after):
        op_type = form.op_type
        for change in rows:
            (change.read if is_up else change.write)(form)
            if form.op_type != op_type:
                version = change.since if is_up else change.since - 1
                break
        else:
            return


@lru_cache(maxsize=8192)
def _rows(op_type: str, before: int, after: int) -> tuple[OpsetChange, ...]:
    """Return the changes between two opsets, in the order in which a form passes them."""
    replaced = {change.since for change in INSTEAD.get(op_type, ())}
    shared = [change for change in CHANGES.get(op_type, ()) if change.since not in replaced]
    own = (*MEANINGS.get(op_type, ()), *INSTEAD.get(op_type, ()), *EARLIEST.get(op_type, ()))
    newest_first = sorted((*own, *shared), key=lambda change: -change.since)
    low, high = sorted((before, after))
    between = [change for change in newest_first if low < change.since <= high]
    return tuple(reversed(between) if before < after else between)


def _check_attributes(
    form: OperatorForm, written: dict[str, Any], own: Schema, there: Schema
) -> None:
    """Drop attributes that the opset lacks where they have their default.

    Raises:
        NoEquivalentForm: one says something else.
    """
    newest = schema_of(form.op_type, "") or own
    for name, value in list(form.attributes.items()):
        if name in attributes_of(there):
            continue
        if name in written and name not in attributes_of(own):
            continue  # of nobody's schema: whoever runs the model decides
        default = default_of(own, name)
        default = default_of(newest, name) if default is None else default
        if default is None or repr(_plain(value)) != repr(_plain(default)):
            raise form.declines(f"has no attribute {name!r}")
        del form.attributes[name]
    for name, entry in attributes_of(there).items():
        if entry.required and name not in form.attributes:
            raise form.declines(f"needs the attribute {name!r}")


def _missing(op_type: str, there: Schema | None, before: int, after: int) -> str:
    if there is not None:
        return f"{op_type} is deprecated in opset {after}"
    if after < before:
        return f"opset {after} has no {op_type}, which opset {first_version(op_type)} brought"
    return f"opset {after} has no {op_type} any more"


def _changed(before: dict[str, Any], after: dict[str, Any]) -> frozenset[str]:
    """Return the attributes of both that say something else."""
    both = before.keys() & after.keys()
    return frozenset(
        name for name in both if repr(_plain(before[name])) != repr(_plain(after[name]))
    )


def _plain(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@lru_cache(maxsize=1024)
def first_version(op_type: str) -> int:
    """Return the opset that brought an operator of the default domain."""
    schemas = onnx.defs.get_all_schemas_with_history()
    return min(
        schema.since_version
        for schema in schemas
        if schema.name == op_type and schema.domain in ("", "ai.onnx")
    )


# --- Whether the operands and outputs of a node have types that a schema takes --------------------

_VARIADIC = OpSchema.FormalParameterOption.Variadic


def misfit(node: Node, form: OperatorForm, own: Schema, other: Schema) -> str | None:
    """Return why a schema does not take a form of a node; None if it does.

    Args:
        node: the node, with its outputs.
        form: its operator, operands and attributes in the form of the schema.
        own: the schema that it has now.
        other: the schema that it would have.
    """
    count, outputs = len(form.operands), node._outputs
    if not other.min_input <= count <= other.max_input:
        return f"{_name(other)} takes {_operands(other.min_input, other.max_input)}"
    if len(outputs) > other.max_output:
        return f"{_name(other)} has at most {counted(other.max_output, 'output')}"
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
    kind = value.type
    if isinstance(kind, TensorType):
        return tensor_text(kind.dtype)
    return _proto_text(kind.serialized) if isinstance(kind, OpaqueType) else None


@lru_cache(maxsize=256)
def _proto_text(serialized: bytes) -> str | None:
    return _text(onnx.TypeProto.FromString(serialized))


def _text(proto: onnx.TypeProto) -> str | None:
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return tensor_text(proto.tensor_type.elem_type)
    if kind == "sparse_tensor_type":
        return f"sparse_{tensor_text(proto.sparse_tensor_type.elem_type)}"
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


def _operands(least: int, most: int) -> str:
    return counted(most, "operand") if least == most else f"{least} to {most} operands"
