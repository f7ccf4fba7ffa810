"""Groups of nodes without a cycle between them: the contraction of a graph.

A target takes some nodes. Two of them may be in one group unless a path between them leaves the
group and returns. With `connected` a group is one connected part of the graph, otherwise it may
have several. Both forms are maximal: no two groups (no two adjacent ones, with `connected`) can
become one without a cycle, but for the limits below on the searches of `connected`.

Phases, in one sweep: the phase of a node is how often a path to it enters the target again. The
nodes of one phase are a group: an edge or a path never leads from a phase to an earlier one, and
from each phase a path leads through foreign nodes to the next one, so that no two can become one.
With `connected` the connected parts of each phase are groups, and adjacent groups are merged where
no path leads from one to the other through a third one.
"""

from __future__ import annotations

import heapq
from collections.abc import Container, Mapping, Sequence
from typing import Final, NamedTuple

from tiered.graph import Graph, Node

_NEIGHBOURS: Final = 32
"""With how many neighbours on each side a unit is compared."""
_SEARCHED: Final = 256
"""After how many units the search for a path gives up."""
_WINDOW: Final = 2048
"""How far apart in the order two units may be that become one."""


class Group(NamedTuple):
    """The nodes of one target that are together, in topological order."""

    target: str
    nodes: tuple[Node, ...]


def grouped(
    graph: Graph,
    targets: Mapping[Node, str],
    *,
    connected: bool = False,
    fixed: Sequence[Sequence[Node]] = (),
) -> list[Group]:
    """Return the groups of the nodes that have a target, in an order without back edges.

    Targets are taken in the order of their first node; a later one takes the groups of the earlier
    ones as they are.

    Args:
        graph: the graph; captures of bodies count as reads of the node that has the body.
        targets: the target by node; other nodes belong to no group.
        connected: each group is connected.
        fixed: groups that are there already and stay, without a cycle between them.
    """
    nodes = graph.topological_order()
    index = {node: at for at, node in enumerate(nodes)}
    reads = [[index[source] for source in node.predecessors] for node in nodes]
    unit_of = list(range(len(nodes)))
    for whole in fixed:
        _join(unit_of, [index[node] for node in whole])
    names = dict.fromkeys(targets[node] for node in nodes if node in targets)
    groups: list[list[int]] = []
    for name in names:
        own = [targets.get(node) == name for node in nodes]
        found = _groups_of(unit_of, reads, own, connected)
        for part in found:
            _join(unit_of, part)
        groups += found
    place = {unit: at for at, unit in enumerate(order_of_units(unit_of, reads))}
    groups.sort(key=lambda part: place[unit_of[part[0]]])
    return [
        Group(targets[nodes[part[0]]], tuple(nodes[at] for at in sorted(part))) for part in groups
    ]


def _join(unit_of: list[int], part: Sequence[int]) -> None:
    first = min(part)
    for at in part:
        unit_of[at] = first


def has_cycle(graph: Graph, groups: Sequence[Sequence[Node]]) -> bool:
    """Return whether a path leaves one of the groups and returns to it, through any others."""
    return order_of_groups(graph, groups) is None


def order_of_groups(
    graph: Graph, groups: Sequence[Sequence[Node]], copied: Container[Node] = ()
) -> list[int] | None:
    """Return the indices of groups in an order without back edges; None if there is a cycle.

    Args:
        graph: the graph of the nodes.
        groups: sets of nodes; other nodes are alone.
        copied: nodes that each reader has a copy of, so that they impose no order.
    """
    nodes = graph.topological_order()
    index = {node: at for at, node in enumerate(nodes)}
    reads = [
        [index[source] for source in node.predecessors if source not in copied] for node in nodes
    ]
    unit_of = list(range(len(nodes)))
    group_of: dict[int, int] = {}
    for at, part in enumerate(groups):
        places = [index[node] for node in part]
        _join(unit_of, places)
        group_of[min(places)] = at
    order = order_of_units(unit_of, reads)
    if len(order) < len(set(unit_of)):
        return None
    return [group_of[unit] for unit in order if unit in group_of]


def order_of_units(unit_of: Sequence[int], reads: Sequence[Sequence[int]]) -> list[int]:
    """Return the units in topological order, the first nodes first; shorter if there is a cycle."""
    before, after = _edges(unit_of, reads)
    waiting = {unit: len(found) for unit, found in before.items()}
    ready = [unit for unit, count in waiting.items() if not count]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        unit = heapq.heappop(ready)
        order.append(unit)
        for other in after[unit]:
            waiting[other] -= 1
            if not waiting[other]:
                heapq.heappush(ready, other)
    return order


def _edges(
    unit_of: Sequence[int], reads: Sequence[Sequence[int]]
) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
    """Return the units before and after each unit."""
    before: dict[int, set[int]] = {unit: set() for unit in unit_of}
    after: dict[int, set[int]] = {unit: set() for unit in unit_of}
    for at, sources in enumerate(reads):
        unit = unit_of[at]
        for source in sources:
            other = unit_of[source]
            if other != unit:
                before[unit].add(other)
                after[other].add(unit)
    return before, after


def _groups_of(
    unit_of: list[int], reads: Sequence[Sequence[int]], own: Sequence[bool], connected: bool
) -> list[list[int]]:
    """Return the groups of one target; each is a list of nodes."""
    before, after = _edges(unit_of, reads)
    phases: dict[int, int] = {}
    for unit in order_of_units(unit_of, reads):
        is_own = own[unit]
        phase = int(is_own)
        for source in before[unit]:
            phase = max(phase, phases[source] + (is_own and not own[source]))
        phases[unit] = phase
    mine = [at for at in range(len(unit_of)) if own[at]]
    if connected:
        return _Merger(before, after, own, phases).groups(mine)
    found: dict[int, list[int]] = {}
    for at in mine:
        found.setdefault(phases[at], []).append(at)
    return list(found.values())


class _Merger:
    """Merges adjacent units of one target; the order of the units is kept up to date.

    A unit is compared with its nearest neighbours, and a search ends at a limit, so that the time
    is linear: beyond the limits two units stay apart.
    """

    def __init__(
        self,
        before: dict[int, set[int]],
        after: dict[int, set[int]],
        own: Sequence[bool],
        phases: Mapping[int, int],
    ) -> None:
        self.before, self.after, self.own = before, after, own
        self.root: dict[int, int] = {}
        self._join_phases(phases)
        order = self._order()
        self.at: list[int | None] = list(order)
        self.place = {unit: at for at, unit in enumerate(order)}

    def groups(self, mine: Sequence[int]) -> list[list[int]]:
        """Merge as long as two adjacent units can be, and return the groups."""
        pending = [unit for unit in reversed(self.at) if unit is not None and self.own[unit]]
        queued = set(pending)
        while pending:
            unit = pending.pop()
            queued.discard(unit)
            if self._find(unit) != unit:
                continue
            near = self._nearest(unit, self.after[unit])
            other = next((other for other in near if self._can_join(unit, other)), None)
            if other is None:
                continue
            made = self._merge(unit, other)
            again = [made, *self._nearest(made, self.before[made])]
            for each in sorted(set(again) - queued, key=self.place.__getitem__, reverse=True):
                pending.append(each)
                queued.add(each)
        found: dict[int, list[int]] = {}
        for at in mine:
            found.setdefault(self._find(at), []).append(at)
        return list(found.values())

    def _nearest(self, unit: int, others: set[int]) -> list[int]:
        """Return the next own units among the units before or after one."""
        here, place = self.place[unit], self.place
        own = [other for other in others if self.own[other]]
        return heapq.nsmallest(_NEIGHBOURS, own, key=lambda other: abs(place[other] - here))

    def _find(self, unit: int) -> int:
        root = unit
        while (above := self.root.get(root, root)) != root:
            root = above
        while unit != root:
            self.root[unit], unit = root, self.root.get(unit, root)
        return root

    def _join_phases(self, phases: Mapping[int, int]) -> None:
        """Join the connected parts of each phase: no path leads from one back into it."""
        for unit, sources in self.before.items():
            for source in sources if self.own[unit] else ():
                if self.own[source] and phases[source] == phases[unit]:
                    self.root[self._find(source)] = self._find(unit)
        joined: list[dict[int, set[int]]] = []
        for edges in (self.before, self.after):
            made: dict[int, set[int]] = {}
            for unit, others in edges.items():
                root = self._find(unit)
                made.setdefault(root, set()).update(map(self._find, others))
                made[root].discard(root)
            joined.append(made)
        self.before, self.after = joined

    def _order(self) -> list[int]:
        waiting = {unit: len(sources) for unit, sources in self.before.items()}
        ready = [unit for unit, count in waiting.items() if not count]
        heapq.heapify(ready)
        order: list[int] = []
        while ready:
            order.append(heapq.heappop(ready))
            for other in self.after[order[-1]]:
                waiting[other] -= 1
                if not waiting[other]:
                    heapq.heappush(ready, other)
        return order

    def _can_join(self, first: int, second: int) -> bool:
        """Return whether no path leads from one unit to an adjacent one through a third one."""
        lowest, targets = self.place[first], self.after[first]
        if self.place[second] - lowest > _WINDOW:
            return False
        pending, seen = [second], {first, second}
        while pending:
            if len(seen) > _SEARCHED:
                return False
            for source in self.before[pending.pop()]:
                if source in seen or self.place[source] < lowest:
                    continue
                if source in targets:
                    return False
                seen.add(source)
                pending.append(source)
        return True

    def _merge(self, first: int, second: int) -> int:
        """Merge two adjacent units, and return the one that remains."""
        low, high = self.place[first], self.place[second]
        later = self._reached(first, high)
        kept, gone = first, second
        if self._degree(first) < self._degree(second):
            kept, gone = second, first
        between = [unit for unit in self.at[low + 1 : high] if unit is not None]
        order = [unit for unit in between if unit not in later]
        order += [kept, *(unit for unit in between if unit in later)]
        window: list[int | None] = [*order, *[None] * (high + 1 - low - len(order))]
        self.at[low : high + 1] = window
        for at, unit in enumerate(order, low):
            self.place[unit] = at
        for edges, back in ((self.before, self.after), (self.after, self.before)):
            for other in edges.pop(gone):
                back[other].discard(gone)
                if other != kept:
                    edges[kept].add(other)
                    back[other].add(kept)
            edges[kept].discard(gone)
        self.root[gone] = kept
        return kept

    def _degree(self, unit: int) -> int:
        return len(self.before[unit]) + len(self.after[unit])

    def _reached(self, first: int, high: int) -> set[int]:
        """Return the units that a path from the first one reaches before a place of the order."""
        found: set[int] = set()
        pending = [first]
        while pending:
            for other in self.after[pending.pop()]:
                if other not in found and self.place[other] < high:
                    found.add(other)
                    pending.append(other)
        return found
