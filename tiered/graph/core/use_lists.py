"""The links between values and nodes.

These functions write neither the journal nor a proto; the primitives of `Graph` do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tiered.graph.core.live_dag import Slot, add_slot, drop_slot, new_dag, slot_of
from tiered.graph.core.value import SLOT_BITS

if TYPE_CHECKING:
    import networkx as nx

    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value


def add_use(value: Value, node: Node, index: int) -> None:
    """Note that input `index` of the node reads the value."""
    value._users[node.id << SLOT_BITS | index] = node
    home, graph = value.graph, node.graph
    if home is graph:
        assert graph is not None
        if graph._dag is not None and value.producer is not None:
            add_slot(graph._dag, value.producer, node, slot_of(value.index, index))
    else:
        _add_capture(value, graph)


def drop_use(value: Value, node: Node, index: int) -> None:
    """Note that input `index` of the node no longer reads the value."""
    del value._users[node.id << SLOT_BITS | index]
    home, graph = value.graph, node.graph
    if home is graph:
        assert graph is not None
        if graph._dag is not None and value.producer is not None:
            drop_slot(graph._dag, value.producer, node, slot_of(value.index, index))
    else:
        _drop_capture(value, graph)


def add_output_use(value: Value, graph: Graph) -> None:
    """Record that the value is an output of the graph: its own graph, or a body below it."""
    value.output_of = (*value.output_of, graph)
    if value.graph is not graph:
        _add_capture(value, graph)


def drop_output_use(value: Value, graph: Graph) -> None:
    remaining = list(value.output_of)
    remaining.remove(graph)
    value.output_of = tuple(remaining)
    if value.graph is not graph:
        _drop_capture(value, graph)


def _add_capture(value: Value, graph: Graph | None) -> None:
    home = value.graph
    while graph is not None and graph is not home:
        owner = graph.parent_node
        assert owner is not None, f"{value.name!r} is not visible where it is used"
        captured = owner._captured
        if captured is None:
            captured = owner._captured = {}
        captured[value] = captured.get(value, 0) + 1
        graph = owner.graph
        if graph is home and graph is not None:
            captures = value._captures
            if captures is None:
                captures = value._captures = {}
            captures[owner] = captures.get(owner, 0) + 1
            if captures[owner] == 1:
                graph._order = None
                if graph._dag is not None and value.producer is not None:
                    add_slot(graph._dag, value.producer, owner, slot_of(value.index, None))


def _drop_capture(value: Value, graph: Graph | None) -> None:
    home = value.graph
    while graph is not None and graph is not home:
        owner = graph.parent_node
        assert owner is not None
        assert owner._captured is not None
        _count_down(owner._captured, value)
        graph = owner.graph
        if graph is home and graph is not None:
            assert value._captures is not None
            if _count_down(value._captures, owner):
                graph._order = None
                if graph._dag is not None and value.producer is not None:
                    drop_slot(graph._dag, value.producer, owner, slot_of(value.index, None))


def _count_down(counts: dict[Any, int], key: Any) -> bool:
    """Decrement a count; return whether it is now 0."""
    if counts[key] > 1:
        counts[key] -= 1
        return False
    del counts[key]
    return True


@contextmanager
def unlinked(*values: Value) -> Iterator[None]:
    """Unregister the uses of values during the block, and register them again after it."""
    uses = [(value, node, slot) for value in values for node, slot in value.users]
    outputs = [(value, graph) for value in values for graph in value.output_of]
    for value, node, slot in uses:
        drop_use(value, node, slot)
    for value, graph in outputs:
        drop_output_use(value, graph)
    yield
    for value, graph in outputs:
        add_output_use(value, graph)
    for value, node, slot in uses:
        add_use(value, node, slot)


def link_inputs(node: Node) -> None:
    for index, value in enumerate(node._inputs):
        if value is not None:
            add_use(value, node, index)


def unlink_inputs(node: Node) -> None:
    for index, value in enumerate(node._inputs):
        if value is not None:
            drop_use(value, node, index)


def link_bodies(node: Node) -> None:
    """Link the values that the bodies of the node capture, and take the names of the bodies."""
    for body in node.bodies:
        _take_names(body)
        for inner in body._nodes.values():
            for index, read in enumerate(inner._inputs):
                if read is not None and read.graph is not body:
                    add_use(read, inner, index)
            link_bodies(inner)
        for value in body._outputs:
            if value.graph is not body:
                add_output_use(value, body)


def unlink_bodies(node: Node) -> None:
    """Undo `link_bodies`: outer values must not list bodies of a removed node as users."""
    for body in node.bodies:
        _release_names(body)
        for value in body._outputs:
            if value.graph is not body:
                drop_output_use(value, body)
        for inner in body._nodes.values():
            unlink_bodies(inner)
            for index, read in enumerate(inner._inputs):
                if read is not None and read.graph is not body:
                    drop_use(read, inner, index)


def enter_function(function: Graph) -> None:
    """Take all names of a local function that is added back to the model."""
    _take_names(function)
    for node in function._nodes.values():
        link_bodies(node)


def leave_function(function: Graph) -> None:
    """Release all names of a local function."""
    for node in function._nodes.values():
        unlink_bodies(node)
    _release_names(function)


def _take_names(graph: Graph) -> None:
    for name in _value_names(graph):
        graph.model.names.take(name)
    for node in graph._nodes.values():
        if node.proto.name:
            graph.model.node_names.take(node.proto.name)


def _release_names(graph: Graph) -> None:
    for name in _value_names(graph):
        graph.model.names.release(name)
    for node in graph._nodes.values():
        if node.proto.name:
            graph.model.node_names.release(node.proto.name)


def _value_names(graph: Graph) -> list[str]:
    """Return the names that a graph takes: values, file names, stale declarations."""
    stale = [info.name for value, info in graph.declarations if value is None and info.name]
    return [*graph._values, *stale, *graph.file_names.values()]


# --- networkx -------------------------------------------------------------------------------------


def build_dag(graph: Graph) -> nx.DiGraph[Node]:
    """Return the DiGraph of a graph's nodes; each edge has the sorted tuple of its slots."""
    nodes = graph.nodes
    return new_dag(nodes, _edges(graph, nodes))


def _edges(graph: Graph, nodes: Iterable[Node]) -> Iterator[tuple[Node, Node, list[Slot]]]:
    for node in nodes:
        found: dict[Node, list[Slot]] = {}
        for value in node.captured if node._captured else ():
            if value.graph is graph and value.producer is not None:
                found.setdefault(value.producer, []).append(slot_of(value.index, None))
        for index, operand in enumerate(node._inputs):
            if operand is not None and operand.graph is graph and operand.producer is not None:
                found.setdefault(operand.producer, []).append(slot_of(operand.index, index))
        for tail, slots in found.items():
            yield tail, node, slots
