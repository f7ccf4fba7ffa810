"""Opset forms: operators of any opset from 7 on, read and built in their newest form.

Passes and patterns use the newest form of an operator. Reading makes an old attribute a
detached constant value; building writes the form of the graph's opset. If no equivalent exists, a
rewrite declines and no pattern matches. `adapters` has the table of changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from tiered.graph.core.schema import (
    Schema,
    attributes_of,
    decode_attribute,
    default_of,
    input_names,
    schema_of,
)
from tiered.graph.core.types import TensorType, tensor_text
from tiered.graph.core.value import Value
from tiered.graph.opset.adapter import (
    NoEquivalentForm,
    OperatorForm,
    OpsetChange,
    detached,
    says_the_same,
)
from tiered.graph.opset.adapters import CHANGES, READ_ANEW
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node

__all__ = [
    "NoEquivalentForm",
    "detached",
    "has_newest_form",
    "newest_attribute",
    "newest_form",
    "operand_index",
    "operands_of",
    "to_model_form",
]

_BROADCASTING: Final = 7
"""The opset since which operators broadcast without an attribute that says so."""

_COMMON_TYPES: Final = frozenset(
    f"tensor({name})"
    for name in (
        "bfloat16", "bool", "double", "float", "float16", "int16", "int32", "int64", "int8",
        "string", "uint16", "uint32", "uint64", "uint8",
    )
)  # fmt: skip


@lru_cache(maxsize=4096)
def _changes(op_type: str, domain: str, version: int) -> tuple[OpsetChange, ...]:
    """Return the changes after an opset version, the newest first."""
    if domain:
        return ()
    return tuple(change for change in CHANGES.get(op_type, ()) if version < change.since)


@lru_cache(maxsize=256)
def _earliest(op_type: str, domain: str, version: int) -> tuple[OpsetChange, ...]:
    """Return what the first opsets write in another way: broadcasting before 7 is said."""
    if domain or not 0 < version < _BROADCASTING:
        return ()
    from tiered.graph.opset.earliest import EARLIEST  # few models are as old

    return tuple(change for change in EARLIEST.get(op_type, ()) if version < change.since)


@lru_cache(maxsize=4096)
def readings(op_type: str, version: int) -> tuple[OpsetChange, ...]:
    """Return the changes that matter to a reader, the oldest first."""
    changes = reversed(_changes(op_type, "", version))
    return tuple(change for change in changes if change.read is not says_the_same)


def newest_form(node: Node) -> OperatorForm | None:
    """Return a node in the newest form of its operator; None if it has this form already.

    Raises:
        NoEquivalentForm: the newest form cannot express the node.
    """
    if node.op_type not in READ_ANEW or node.domain:
        return None
    version = node.owner.opset()
    return form_at(node, version) if readings(node.op_type, version) else None


def form_at(node: Node, version: int) -> OperatorForm:
    """Return a node in the newest form of its operator, read as one of an opset version.

    Raises:
        NoEquivalentForm: the newest form cannot express the node.
    """
    attributes = {name: decode_attribute(proto) for name, proto in node.attribute_protos().items()}
    outputs = len(node._outputs) - sum(value is None for value in node._outputs)
    form = OperatorForm(node.op_type, version, list(node._inputs), attributes, outputs)
    for change in readings(node.op_type, version):
        change.read(form)
    return form


def has_newest_form(node: Node) -> bool:
    """Return whether the newest form of its operator can express a node."""
    try:
        newest_form(node)
    except NoEquivalentForm:
        return False
    return True


def operands_of(node: Node) -> Sequence[Value | None]:
    """Return the operands in the newest form, unchanged if there is no such form."""
    try:
        form = newest_form(node)
    except NoEquivalentForm:
        return node._inputs
    return node._inputs if form is None else form.operands


def newest_attribute(node: Node, name: str) -> Any:
    """Return an attribute of the newest form; if it is absent, that form's default.

    Raises:
        NoEquivalentForm: the newest form cannot express the node.
    """
    form = newest_form(node)
    if form is None:
        return node.attr(name)
    if name in form.attributes:
        return form.attributes[name]
    schema = schema_of(node.op_type, node.domain)
    return None if schema is None else default_of(schema, name)


def operand_index(node: Node, name: str) -> int:
    """Return the index of an operand in the newest form.

    Raises:
        ModelError: the operator has no operand of this name.
    """
    schema = schema_of(node.op_type, node.domain)
    names = input_names(schema) if schema is not None else ()
    if name not in names:
        raise ModelError(
            f"{node.op_type} has no operand {name!r}; it has {', '.join(names) or 'none'}"
        )
    return names.index(name)


def to_model_form(
    graph: Graph,
    op_type: str,
    domain: str,
    inputs: Sequence[Value | None],
    attributes: Mapping[str, Any],
    outputs: int | None = None,
) -> tuple[list[Value | None], dict[str, Any]]:
    """Return inputs and attributes of an operator as the graph's opset writes them.

    Raises:
        NoEquivalentForm: the opset has no such operator, attribute, operand, setting or dtype.
    """
    version = graph.opset(domain)
    schema = schema_of(op_type, domain, version) if version else None
    newest = schema_of(op_type, domain)
    if newest is not None and (schema is None or schema.deprecated):
        raise NoEquivalentForm(f"opset {version} of domain {domain!r} has no {op_type}")
    written = {name: value for name, value in attributes.items() if value is not None}
    form = OperatorForm(op_type, version, list(inputs), written, outputs)
    while form.operands and form.operands[-1] is None:
        form.operands.pop()
    for change in (*_changes(op_type, domain, version), *_earliest(op_type, domain, version)):
        change.write(form)
    if schema is not None:
        _check_operands(form, schema, newest or schema)
        _check_attributes(form, schema, newest or schema)
    return [_attached(graph, value) for value in form.operands], form.attributes


def _check_operands(form: OperatorForm, schema: Schema, newest: Schema) -> None:
    least, most, operands = schema.min_input, schema.max_input, form.operands
    if not least <= len(operands) <= most:
        raise form.declines(f"has {least} to {most} operands, not {len(operands)}")
    for place, value in enumerate(operands):
        refused = _refused_types(schema, newest, place)
        # Most operators never changed their dtypes; for them the dtype is not needed.
        kind = value.type if value is not None and refused else None
        if isinstance(kind, TensorType) and tensor_text(kind.dtype) in refused:
            raise form.declines(f"does not take {tensor_text(kind.dtype)} as operand {place}")


@lru_cache(maxsize=4096)
def _refused_types(schema: Schema, newest: Schema, place: int) -> frozenset[str]:
    """Return the common dtypes that an operand may have now, but not in the schema's time."""
    if schema.since_version == newest.since_version:
        return frozenset()
    formal = schema.inputs[min(place, len(schema.inputs) - 1)]
    now = newest.inputs[min(place, len(newest.inputs) - 1)]
    return _COMMON_TYPES & (now.types - formal.types)


def _check_attributes(form: OperatorForm, schema: Schema, newest: Schema) -> None:
    written = form.attributes
    for name, value in list(written.items()):
        if name in attributes_of(schema) and _is_default(value, default_of(schema, name)):
            # A default is not written, to save bytes.
            del written[name]
        elif name not in attributes_of(schema):
            if not _is_default(value, default_of(newest, name)):
                raise form.declines(f"has no attribute {name!r}")
            del written[name]


def _is_default(value: Any, default: Any) -> bool:
    if isinstance(value, list):
        value = tuple(value)
    if isinstance(value, float) and isinstance(default, float):
        # Not by ==, to which -0.0 is 0.0.
        return repr(value) == repr(default)
    return bool(default is not None and value == default)


def _attached(graph: Graph, value: Value | None) -> Value | None:
    """Return the value itself, or for a detached constant a constant of the graph."""
    if value is None or value.graph is not None or value.default is None:
        return value
    return graph.constant(value.default, value.name)
