"""Attributes: those that a pattern names must match, all others must have their defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tiered.graph.core.schema import (
    NEWEST,
    AttributeReference,
    Schema,
    decode_attribute,
    default_of,
    schema_of,
)
from tiered.graph.opset.newest_form import NoEquivalentForm, newest_form
from tiered.rewriter.pattern import OpPattern, VariablePattern
from tiered.rewriter.skip import Skip

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.opset.adapter import OperatorForm


def attributes_fit(pattern: OpPattern, node: Node, bindings: dict[str, Any]) -> bool | Skip:
    """Return whether the attributes of a node match a pattern; bind those that it binds.

    Returns:
        A Skip if they match but for one that the call of a local function decides: its value is
        not known, so it equals neither the value in the pattern nor the default.
    """
    if not pattern.attributes and not node.attribute_protos():
        return True
    parameter = None
    if not pattern.ignores_attributes and node.has_references:
        parameter = Skip("{}", node.parameter_reason)
    if pattern.any_attributes and not pattern.attributes:
        return parameter or True
    try:
        form = newest_form(node)
    except NoEquivalentForm:
        return False  # patterns are written in the newest form, which this node has not
    written = node.attribute_protos() if form is None else form.attributes
    named = 0
    for name, wanted in pattern.attributes:
        if name in written:
            named += 1
            actual = decode_attribute(written[name]) if form is None else written[name]
            if isinstance(actual, AttributeReference):
                parameter = Skip("{}", node.parameter_reason)
                continue
        else:
            known = _schema(node, form)
            actual = None if known is None else default_of(known, name)
        if isinstance(wanted, VariablePattern):
            if bindings.setdefault(wanted.name, actual) != actual:
                return False
        elif not _fits(wanted, actual):
            return False
    if pattern.any_attributes or named == len(written):
        return parameter or True
    known = _schema(node, form)
    if known is None:
        return False
    for name in written.keys() - pattern.names:
        actual = decode_attribute(written[name]) if form is None else written[name]
        if isinstance(actual, AttributeReference) and name in known.attributes:
            continue
        if actual != default_of(known, name):
            return False
    return parameter or True


def _schema(node: Node, form: OperatorForm | None) -> Schema | None:
    """Return the schema with the defaults of the attributes that a node does not have."""
    version = node.owner.opset(node.domain) if form is None else NEWEST
    return schema_of(node.op_type, node.domain, version)


def _fits(wanted: Any, actual: Any) -> bool:
    if wanted is ...:
        return True
    if callable(wanted):
        return bool(wanted(actual))
    if isinstance(wanted, tuple) and isinstance(actual, tuple):
        return len(wanted) == len(actual) and all(map(_fits, wanted, actual))
    if isinstance(actual, float) and isinstance(wanted, int | float):
        # Attributes are float32; a literal in a pattern is not.
        return bool(np.float32(wanted) == np.float32(actual))
    return bool(wanted == actual)
