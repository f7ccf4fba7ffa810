"""Attributes: those that a pattern names, and that all others have their defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tiered.graph.forms import NoEquivalentForm, newest_form
from tiered.graph.schema import NEWEST, AttributeReference, default_of, schema_of
from tiered.rewrite.pattern import Op, Var

if TYPE_CHECKING:
    from tiered.graph.node import Node

def attributes_fit(pattern: Op, node: Node, bindings: dict[str, Any]) -> bool:
    """Tell whether the attributes of a node are as a pattern says; bind those that it asks for."""
    if not pattern.attributes and (pattern.any_attributes or not node.proto.attribute):
        return True
    try:
        form = newest_form(node)
    except NoEquivalentForm:
        return False  # the newest form, which the pattern speaks, cannot say what the node says
    if form is None:
        written, version = node.attribute_protos(), node.owner.opset(node.domain)
    else:
        written, version = form.attributes, NEWEST
    schema = schema_of(node.op_type, node.domain, version)

    def read(name: str) -> Any:
        if name in written:
            return node.attr(name) if form is None else form.attributes[name]
        return None if schema is None else default_of(schema, name)

    for name, wanted in pattern.attributes:
        actual = read(name)
        if isinstance(actual, AttributeReference):
            return False
        if isinstance(wanted, Var):
            if bindings.setdefault(wanted.name, actual) != actual:
                return False
        elif not _fits(wanted, actual):
            return False
    if pattern.any_attributes:
        return True
    # All others have their defaults.
    return all(
        schema is not None and name in schema.attributes and read(name) == default_of(schema, name)
        for name in written
        if name not in pattern.names
    )


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
