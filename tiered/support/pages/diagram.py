"""Layered layout of a few nodes: producers above consumers, crossings reduced by barycentres."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from networkx import DiGraph

Place = tuple[int, int]
"""The layer from the top, and the column in the layer."""
SWEEPS = 4
"""Passes over the layers, down and up, to reduce crossings."""


@lru_cache(maxsize=4096)  # the rewrites of one rule have few shapes
def places_of(count: int, edges: tuple[tuple[int, int], ...]) -> tuple[Place, ...]:
    """Return the layer and column of each node.

    A source is directly above its first consumer. Nodes of a cycle are in one layer below the
    others.

    Args:
        count: the nodes are the numbers below it; equal choices go to the smaller one.
        edges: from producers to consumers.
    """
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from((one, other) for one, other in edges if one != other)
    layers = _layers(graph)
    for source in [node for node in graph if graph.in_degree(node) == 0]:
        below = [layers[user] for user in graph.successors(source)]
        if below:
            layers[source] = max(0, min(below) - 1)
    rows: list[list[int]] = [[] for _ in range(max(layers.values(), default=-1) + 1)]
    for node in range(count):
        rows[layers[node]].append(node)
    _order([row for row in rows if row], graph)
    found = {
        node: (layer, column)
        for layer, row in enumerate(row for row in rows if row)
        for column, node in enumerate(row)
    }
    return tuple(found[node] for node in range(count))


def _layers(graph: DiGraph) -> dict[int, int]:
    """Return the topological generation of each node."""
    import networkx as nx

    layers: dict[int, int] = {}
    try:
        for layer, members in enumerate(nx.topological_generations(graph)):
            layers.update(dict.fromkeys(members, layer))
    except nx.NetworkXUnfeasible:
        last = max(layers.values(), default=-1) + 1
        layers.update((node, last) for node in graph if node not in layers)
    return layers


def _order(rows: Sequence[list[int]], graph: DiGraph) -> None:
    """Sort each layer by the mean column of the neighbours above, then below, in turn."""
    columns: dict[int, float] = {}
    for row in rows:
        columns.update(_centred(row))
    for sweep in range(SWEEPS):
        is_down = sweep % 2 == 0
        for row in rows if is_down else reversed(rows):
            wanted = {}
            for node in row:
                near: Iterable[int] = graph.pred[node] if is_down else graph.succ[node]
                wanted[node] = _mean([columns[other] for other in near], columns[node])
            row.sort(key=wanted.__getitem__)
            columns.update(_centred(row))


def _centred(row: Sequence[int]) -> Iterator[tuple[int, float]]:
    middle = (len(row) - 1) / 2
    return ((node, at - middle) for at, node in enumerate(row))


def _mean(numbers: Sequence[float], default: float) -> float:
    return sum(numbers) / len(numbers) if numbers else default
