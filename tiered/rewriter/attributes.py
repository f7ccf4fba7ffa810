"""Attributes: those that a pattern names, and that all others have their defaults."""

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
from tiered.graph.opset.convert import NoEquivalentForm, newest_form
from tiered.rewriter.pattern import Op, Var

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.opset.adapter import Form


def attributes_fit(pattern: Op, node: Node, bindings: dict[str, Any]) -> bool:
    """Tell whether the attributes of a node are as a pattern says; bind those that it asks for."""
    if not pattern.attributes and (pattern.any_attributes or not node.proto.attribute):
        return True
    try:
        form = newest_form(node)
    except NoEquivalentForm:
        return False  # the newest form, which the pattern speaks, cannot say what the node says
    written = node.attribute_protos() if form is None else form.attributes
    named = 0
    for name, wanted in pattern.attributes:
        if name in written:
            named += 1
            actual = decode_attribute(written[name]) if form is None else written[name]
            if isinstance(actual, AttributeReference):
                return False
        else:
            known = _schema(node, form)
            actual = None if known is None else default_of(known, name)
        if isinstance(wanted, Var):
            if bindings.setdefault(wanted.name, actual) != actual:
                return False
        elif not _fits(wanted, actual):
            return False
    if pattern.any_attributes or named == len(written):
        return True
    known = _schema(node, form)
    if known is None:
        return False
    for name in written.keys() - pattern.names:
        actual = decode_attribute(written[name]) if form is None else written[name]
        if name not in known.attributes or actual != default_of(known, name):
            return False
    return True


def _schema(node: Node, form: Form | None) -> Schema | None:
    """Return the schema that has the defaults of what a node does not say."""
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
