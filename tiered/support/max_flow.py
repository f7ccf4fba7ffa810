"""Minimum cuts of networks whose nodes are numbers: Dinic's algorithm on plain lists.

The networks of expansion moves have a few hundred nodes each and there are dozens of them, so
building one must be cheap.

Source: Dinic 1970, "Algorithm for solution of a problem of maximum flow in networks with power
estimation".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Final

SOURCE: Final = 0
SINK: Final = 1

UNLIMITED: Final = 1 << 400


class Network:
    """A flow network: nodes are numbers, SOURCE and SINK are two of them."""

    def __init__(self, nodes: int = 2) -> None:
        """Make a network of `nodes` nodes, SOURCE and SINK included."""
        # Edge 2k and its reverse 2k+1 are neighbours; `_room` is the residual capacity.
        self._edges: list[list[int]] = [[] for _ in range(nodes)]
        self._targets: list[int] = []
        self._room: list[int] = []

    def add_node(self) -> int:
        """Return the number of a new node."""
        self._edges.append([])
        return len(self._edges) - 1

    def add_edge(self, source: int, target: int, capacity: int = UNLIMITED) -> None:
        """Add an edge; cutting it costs its capacity."""
        self.add_edges([(source, target, capacity, 0)])

    def add_edges(self, edges: Iterable[tuple[int, int, int, int]]) -> None:
        """Add edges: source, target and the costs of cutting in both directions."""
        at, out, targets, room = len(self._targets), self._edges, self._targets, self._room
        for source, target, capacity, back in edges:
            targets += (target, source)
            room += (capacity, back)
            out[source].append(at)
            out[target].append(at + 1)
            at += 2

    def sink_side(self) -> list[bool]:
        """Return which nodes are on the sink side of the minimum cut with the fewest such nodes."""
        while True:
            distances = self._distances()
            if not distances[SOURCE]:
                return [bool(distance) for distance in distances]
            self._fill(distances)

    def _distances(self) -> list[int]:
        """Return the distance of each node to the sink, plus 1; 0 if no residual path exists.

        Nodes that are not nearer than the source have 0 if there is a path from the source.
        """
        distances = [0] * len(self._edges)
        distances[SINK] = 1
        edges, targets, room = self._edges, self._targets, self._room
        pending = deque((SINK,))
        while pending:
            node = pending.popleft()
            further = distances[node] + 1
            for edge in edges[node]:
                source = targets[edge]
                if not distances[source] and room[edge ^ 1]:
                    distances[source] = further
                    if source == SOURCE:
                        return distances
                    pending.append(source)
        return distances

    def _fill(self, distances: list[int]) -> None:
        """Find a blocking flow along shortest paths."""
        edges, targets, room = self._edges, self._targets, self._room
        following = [0] * len(edges)
        path: list[int] = []
        node = SOURCE
        while True:
            if node == SINK:
                node = self._flow_on(path)
            out, at = edges[node], following[node]
            while at < len(out) and not (
                room[out[at]] and distances[targets[out[at]]] == distances[node] - 1
            ):
                at += 1
            following[node] = at
            if at < len(out):
                path.append(out[at])
                node = targets[out[at]]
            elif path:
                # A dead end: no residual path leads through it.
                distances[node] = 0
                node = targets[path.pop() ^ 1]
            else:
                return

    def _flow_on(self, path: list[int]) -> int:
        """Augment along a path; cut it at its first saturated edge and return its source."""
        room = self._room
        amount = min([room[edge] for edge in path])
        full = 0
        for at in reversed(range(len(path))):
            edge = path[at]
            room[edge] -= amount
            room[edge ^ 1] += amount
            if not room[edge]:
                full = at
        node = self._targets[path[full] ^ 1]
        del path[full:]
        return node
