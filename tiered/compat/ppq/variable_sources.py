"""Sources of variables: they may be exchanged, and taken away while the variable is read.

ONNX has no tensor without a source. While one is missing, a node that no runtime has computes the
variable; it is no operation, and goes when the variable gets a source again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tiered.compat.ppq.detached import NOWHERE
from tiered.graph import Node, Value
from tiered.graph.edits import surgery
from tiered.support.amounts import counted
from tiered.support.errors import ModelError

_DOMAIN: Final = "tiered.compat.ppq"
_KIND: Final = "NoSource"


def is_missing(node: Node | None) -> bool:
    """Return whether a node stands for a source that is missing."""
    return node is not None and (node.domain, node.op_type) == (_DOMAIN, _KIND)


def operations_among(nodes: Iterable[Node]) -> list[Node]:
    """Return the nodes that are operations."""
    return [node for node in nodes if not is_missing(node)]


def source_of(value: Value) -> Node | None:
    """Return the node of the operation that computes a value; None if there is none."""
    return None if is_missing(value.producer) else value.producer


def take_away(value: Value) -> None:
    """Let no operation compute a value; its source gets a new output in its place."""
    node = source_of(value)
    if node is None:
        return
    graph = node.owner
    if not value.is_used:
        outputs = [surgery.new_value(graph) if each is value else each for each in node.outputs]
        graph.set_outputs(node, outputs)
        return
    with graph.model.transaction():
        missing = graph.add_node(_KIND, (), 1, domain=_DOMAIN)
        graph.exchange_outputs(missing, 0, node, value.index)


def give(value: Value, node: Node) -> None:
    """Let an operation compute a value, in place of its source if it has one.

    Raises:
        ModelError: the operation has no output left for it, or the value is an input or a constant.
    """
    if value.producer is node:
        return
    if value.is_constant or value.is_graph_input:
        raise ModelError(f"{value.name!r} is an input or a parameter, so it has no source")
    with node.owner.model.transaction():
        _put(node, _free_output(node), value)


def join(value: Value, other: Value) -> None:
    """Let all users of a value without a source read another one; it goes.

    Raises:
        ModelError: an operation computes it.
    """
    missing = other.producer if is_missing(other.producer) else None
    if missing is None:
        value.owner.join(value, other)
        return
    graph = missing.owner
    with graph.model.transaction():
        graph.replace_uses(other, value)
        if missing.graph is not None:
            graph.remove_node(missing)


def exchange(node: Node, index: int, value: Value) -> None:
    """Let a node compute another value at one place; the former one has no source then.

    Raises:
        ModelError: the value has another source, or is an input or a constant.
    """
    old = node.outputs[index]
    if old is value:
        return
    if value.is_constant or value.is_graph_input or (source_of(value) not in (None, node)):
        raise ModelError(f"{value.name!r} has a source already: {node.label!r} cannot be it")
    with node.owner.model.transaction():
        if old is not None and old.is_used:
            take_away(old)
        _put(node, index, value)


def _put(node: Node, place: int, value: Value) -> None:
    """Let a node compute a value at a place, which may be absent or further than its last one."""
    graph, before, outputs = node.owner, value.producer, list(node.outputs)
    if before is None or outputs[place : place + 1] in ([], [None]):
        outputs[place : place + 1] = [surgery.new_value(graph) if before else value]
        graph.set_outputs(node, outputs)
    if before is not None:
        graph.exchange_outputs(node, place, before, value.index)
        if is_missing(before):
            graph.remove_node(before)


def _free_output(node: Node) -> int:
    """Return the place of a further output, or of one without readers if there is no room.

    Raises:
        ModelError: there is none.
    """
    schema, count = node.schema, len(node.outputs)
    if schema is None or count < schema.max_output:
        return count
    for place, value in enumerate(node.outputs):
        if value is None or not value.is_used:
            return place
    raise ModelError(
        f"operation {node.label!r} has {counted(count, 'output')}, and {node.op_type} "
        "no more: all are used"
    )


def remove(node: Node) -> None:
    """Remove an operation with the parameters that only it reads; what it computes may be read."""
    graph = node.owner
    with graph.model.transaction():
        for value in node.used_outputs.values():
            take_away(value)
        graph.delete(node)


def is_free(value: Value) -> bool:
    """Return whether a value is in no graph yet."""
    return value.graph is not None and value.graph.name == NOWHERE
