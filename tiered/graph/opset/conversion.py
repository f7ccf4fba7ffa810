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

from tiered.graph.core.schema import (
    Schema,
    attributes_of,
    decode_attribute,
    default_of,
    schema_in_use,
    schema_of,
)
from tiered.graph.opset.adapter import Change, Form, NoEquivalentForm
from tiered.graph.opset.adapters import CHANGES
from tiered.graph.opset.earliest import EARLIEST
from tiered.graph.opset.meanings import INSTEAD, MEANINGS
from tiered.graph.opset.type_fit import misfit

if TYPE_CHECKING:
    from tiered.graph.core.node import Node

def form_between(node: Node, before: int, after: int) -> Form | None:
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
    if any(value is not None and _is_parameter(value) for value in form.operands):
        raise form.declines("needs a constant that the call of the function gives")
    reason = misfit(node, form, own, there)
    if reason is not None:
        raise NoEquivalentForm(reason)
    return form


def _form(node: Node, version: int) -> Form:
    attributes = {name: decode_attribute(proto) for name, proto in node.attribute_protos().items()}
    outputs = len(node._outputs) - sum(value is None for value in node._outputs)
    return Form(node.op_type, version, list(node._inputs), attributes, outputs)


def _is_parameter(value: Any) -> bool:
    return value.graph is None and value.default is None


def _apply(form: Form, before: int, after: int) -> None:
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
def _rows(op_type: str, before: int, after: int) -> tuple[Change, ...]:
    """Return the changes between two opsets, in the order in which a form passes them."""
    replaced = {change.since for change in INSTEAD.get(op_type, ())}
    shared = [change for change in CHANGES.get(op_type, ()) if change.since not in replaced]
    own = (*MEANINGS.get(op_type, ()), *INSTEAD.get(op_type, ()), *EARLIEST.get(op_type, ()))
    newest_first = sorted((*own, *shared), key=lambda change: -change.since)
    low, high = sorted((before, after))
    between = [change for change in newest_first if low < change.since <= high]
    return tuple(reversed(between) if before < after else between)


def _check_attributes(form: Form, written: dict[str, Any], own: Schema, there: Schema) -> None:
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
        name
        for name in both
        if before[name] is not after[name]
        and repr(_plain(before[name])) != repr(_plain(after[name]))
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
