"""Minimum cuts of networks whose nodes are numbers: Dinic's algorithm on plain lists.

Networks of a placement have a few hundred nodes and are cut by the dozen, so building one must cost
next to nothing.

Source: Dinic 1970, "Algorithm for solution of a problem of maximum flow in networks with power
estimation".
"""

from __future__ import annotations

from collections import deque
from typing import Final

SOURCE: Final = 0
SINK: Final = 1

UNLIMITED: Final = 1 << 200


class Network:
    """Edges with capacities between numbers, of which SOURCE and SINK are two."""

    def __init__(self) -> None:
        # Each edge has its reverse behind it, which has room for what flows.
        self._edges: list[list[int]] = [[], []]
        self._targets: list[int] = []
        self._room: list[int] = []

    def add_node(self) -> int:
        """Return the number of a new node."""
        self._edges.append([])
        return len(self._edges) - 1

    def add_edge(self, source: int, target: int, capacity: int = UNLIMITED) -> None:
        """Add what it costs to cut one node off from another."""
        at = len(self._targets)
        self._targets += (target, source)
        self._room += (capacity, 0)
        self._edges[source].append(at)
        self._edges[target].append(at + 1)

    def sink_side(self) -> list[bool]:
        """Return which nodes a cheapest cut leaves with the sink: the fewest, of several cuts."""
        while True:
            distances = self._distances()
            if not distances[SOURCE]:
                return [bool(distance) for distance in distances]
            self._fill(distances)

    def _distances(self) -> list[int]:
        """Return how far each node is from the sink, from 1; 0 where nothing more can flow."""
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
                    pending.append(source)
        return distances

    def _fill(self, distances: list[int]) -> None:
        """Let flow what can on shortest ways."""
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
                # A dead end: no way leads through it any more.
                distances[node] = 0
                node = targets[path.pop() ^ 1]
            else:
                return

    def _flow_on(self, path: list[int]) -> int:
        """Let flow as much as a path takes; cut it off where it is full, and return that node."""
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
