"""Whether a graph is part of its model: bodies and functions leave it with what is around them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph


def is_attached(graph: Graph) -> bool:
    """Return whether a graph is still part of its model."""
    around = graph
    while around.parent_node is not None:
        if around.parent_node.graph is None:
            return False
        around = around.parent_node.graph
    return around is graph.model.main or around in graph.model.functions
