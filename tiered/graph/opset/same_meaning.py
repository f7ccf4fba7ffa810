"""The check that nodes have the same meaning at another opset version, without conversion."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tiered.graph.core.schema import Schema, attributes_of, default_of, schema_in_use, schema_of
from tiered.graph.opset.adapter import NoEquivalentForm, OperatorForm
from tiered.graph.opset.newest_form import form_at, readings
from tiered.graph.queries.formals import dtype_name, formal_of
from tiered.graph.queries.schema_check import check_node_at
from tiered.support.errors import ModelError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node

_NAMED: Final = 5
"""How many nodes an error names."""


def check_import(root: Graph, domain: str, version: int | None) -> None:
    """Raise if nodes of a main graph or function would become invalid at a version of a domain.

    Raises:
        ModelError: some would, or would change their meaning; None stands for no version.
    """
    before = root.opset(domain)
    if before == 0:
        return
    functions = {function.id for function in root.model.functions}
    wrong, count = list[str](), 0
    for node in root.walk():
        if node.domain != domain or node.callee in functions:
            continue
        reason = why_not_at(node, before, version)
        if reason is not None:
            count += 1
            if len(wrong) < _NAMED:
                wrong.append(f"node {node.label!r} ({node.op_type}) {reason}")
    if wrong:
        more = f"; and {count - _NAMED} more" if count > _NAMED else ""
        target = "drop the import" if version is None else f"import version {version}"
        raise ModelError(
            f"{root!r} cannot {target} of domain {domain or 'ai.onnx'!r} instead of version "
            f"{before}: {'; '.join(wrong)}{more}; convert the nodes first"
        )


def why_not_at(node: Node, before: int, version: int | None) -> str | None:
    """Return how a node differs at another version; None if it does not, or if it is unknown."""
    if version is None:
        return "uses it"
    own = schema_in_use(node.op_type, node.domain, before)
    other = schema_of(node.op_type, node.domain, version)
    if own is None and other is None:
        return None
    if own is None or other is None:
        return f"is unknown to version {before if own is None else version}"
    if own.since_version == other.since_version:
        return None
    return next(_differences(node, own, other, before, version), None)


def _differences(
    node: Node, own: Schema, other: Schema, before: int, version: int
) -> Iterator[str]:
    since = f"{other.name}-{other.since_version}"
    if other.deprecated:
        yield f"is deprecated in {since}"
    for name in node.attribute_protos():
        if name not in attributes_of(other) and name in attributes_of(own):
            yield f"has the attribute {name!r}, which {since} lacks"
    try:
        check_node_at(node, version)
    except ModelError as error:
        yield f"does not fit {since}: {error}"
    for name in attributes_of(own):
        is_absent = name in attributes_of(other) and not node.has_attr(name)
        if is_absent and repr(default_of(own, name)) != repr(default_of(other, name)):
            yield f"has the default of {name!r}, which differs in {since}"
    for place, value in enumerate(node.inputs):
        formal = formal_of(other, place)
        if value is not None and value.dtype is not None and value.dtype not in formal.dtypes:
            yield f"reads {dtype_name(value.dtype)}, which {since} does not take"
    if not node.domain and not _reads_the_same(node, before, version):
        yield f"has another meaning in {since}"


def _reads_the_same(node: Node, before: int, version: int) -> bool:
    """Return whether the newest form of a node is the same from both versions."""
    if min(before, version) < _OLDEST:
        return False
    if not readings(node.op_type, before) and not readings(node.op_type, version):
        return True
    try:
        one, other = form_at(node, before), form_at(node, version)
    except NoEquivalentForm:
        return False
    return _said(one) == _said(other)


def _said(form: OperatorForm) -> tuple[list[int], str]:
    return [id(value) for value in form.operands], repr(form.attributes)


_OLDEST: Final = 7
"""The oldest opset version that the table of forms covers."""
