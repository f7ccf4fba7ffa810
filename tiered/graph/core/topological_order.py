"""The topological order: stable, without recursion, and with an error that names a cycle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from tiered.support.errors import CycleError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.node import Node


def sort_nodes(graph: Graph) -> tuple[Node, ...]:
    """Return the nodes, producers first.

    A depth-first walk in the order that was set, else in that of the serial numbers: a sorted list
    stays unchanged, and a new node comes directly before its first consumer.

    Raises:
        CycleError: the graph has a cycle; the message names it.
    """
    order: list[Node] = []
    # Serial numbers, because a set of nodes calls the hash of each.
    done: set[int] = set()
    for node in _in_places(graph):
        if node.id in done:
            continue
        for value in node._inputs:
            if value is not None:
                producer = value.producer
                if producer is not None and producer.id not in done and value.graph is graph:
                    _visit(graph, node, done, order)
                    break
        else:
            if node._captured:
                _visit(graph, node, done, order)
            else:
                done.add(node.id)
                order.append(node)
    return tuple(order)


def _in_places(graph: Graph) -> Sequence[Node]:
    """Return the nodes in the order that was set; new nodes follow by serial number."""
    places = graph._places
    if not places:
        return graph.nodes
    return sorted(graph.nodes, key=lambda node: places.get(node.id, len(places)))


def producers(graph: Graph, node: Node) -> list[Node]:
    """Return the nodes of this graph that the node reads, itself or in its bodies."""
    found = [
        value.producer
        for value in node._inputs
        if value is not None and value.producer is not None and value.graph is graph
    ]
    if node._captured:
        found += [
            value.producer
            for value in node.captured
            if value.producer is not None and value.graph is graph
        ]
    return found


def _visit(graph: Graph, start: Node, done: set[int], order: list[Node]) -> None:
    stack = [(start, iter(producers(graph, start)))]
    open_nodes = {start.id}
    while stack:
        node, pending = stack[-1]
        for producer in pending:
            if producer.id in done:
                continue
            if producer.id in open_nodes:
                path = [entry.label for entry, _ in stack] + [producer.label]
                cycle = " <- ".join(path[path.index(producer.label) :])
                raise CycleError(f"graph {graph.name!r} has a cycle: {cycle}")
            open_nodes.add(producer.id)
            stack.append((producer, iter(producers(graph, producer))))
            break
        else:
            stack.pop()
            open_nodes.discard(node.id)
            done.add(node.id)
            order.append(node)


def sort_part(nodes: Iterable[Node]) -> list[Node]:
    """Return some nodes of an acyclic graph, producers first; the others are not visited."""
    part = sorted(nodes)
    # Producers outside of the part count as done.
    missing = {node.id for node in part}
    order: list[Node] = []
    for start in part:
        stack = [start]
        while stack:
            node = stack[-1]
            before = [
                producer
                for producer in producers(node.owner, node)
                if producer.id in missing and producer is not node
            ]
            if before and node.id in missing:
                stack += reversed(before)
                continue
            stack.pop()
            if node.id in missing:
                missing.discard(node.id)
                order.append(node)
    return order
