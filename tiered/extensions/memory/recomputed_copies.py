"""Copies of nodes that compute a tensor again, marked so that they are not merged with the first.

The mark is an entry of the metadata of a node (`tiered.graph.core.marks`), with the number of the
run that made the copies. Rewrites pass it on to the nodes that they make of marked ones.
"""

from __future__ import annotations

from collections.abc import Iterable

from tiered.graph import Graph, Model, Node, Value, is_deterministic
from tiered.graph.core.marks import METADATA_SINCE, RECOMPUTED
from tiered.rewriter import Skip


def why_not_copied(value: Value) -> Skip | None:
    """Return why the node that computes a value must not run twice; None if it may."""
    producer = value.producer
    assert producer is not None
    if producer.bodies:
        return Skip("the node of '{}' has bodies", value.name)
    if not is_deterministic(producer):
        return Skip("the node of '{}' is random or unknown", value.name)
    return None


def first_free_mark(model: Model) -> int:
    """Return the number after the largest mark of the main graph."""
    texts = (node.metadata.get(RECOMPUTED, "") for node in model.main.nodes)
    numbers = (int(text) for each in texts for text in each.split("; ") if text.isdecimal())
    return max(numbers, default=0) + 1


def copy_marked(
    graph: Graph, nodes: Iterable[Node], stands: dict[Value, Value | None], mark: int
) -> list[Node]:
    """Copy nodes of a graph, and mark the copies if the IR version has metadata of nodes.

    Args:
        graph: the graph.
        nodes: its nodes, producers first.
        stands: values that the copies read instead of others; their outputs are added.
        mark: copies of different marks stay apart.
    """
    copies = graph.copy_nodes(nodes, stands)
    if graph.model.ir_version >= METADATA_SINCE:
        for node in copies:
            graph.set_metadata(node, {**node.metadata, RECOMPUTED: str(mark)})
    return copies


def maker_of(value: Value) -> Node:
    """Return the node that makes a value, which the caller knows to be there."""
    assert value.producer is not None
    return value.producer
