"""The worklist of a rule: all nodes that may be anchors of a match, or those that edits affect."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tiered.graph.core.edit import Stamp
from tiered.rewriter.pattern import Key
from tiered.rewriter.rule import Rule

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value


_FEW: Final = 4
"""The number of anchors that can be tried in the time that finds those near one node."""

_WIDE: Final = 64
"""A value with more users than this is followed once for many edits, not for each of them."""


class Worklist:
    """The nodes that matches of a rule could be anchored at.

    Args:
        rule: the law.
        model: the model to search.
        graphs: the graphs to search; all of them by default.
    """

    def __init__(
        self, rule: Rule, model: ModelState, graphs: Sequence[Graph] | None = None
    ) -> None:
        self.rule = rule
        self.model = model
        self.graphs = None if graphs is None else set(graphs)
        self.keys = rule.keys

    def all_anchors(self) -> list[Node]:
        """Return every possible anchor, by serial number in each graph."""
        found: list[Node] = []
        for graph in self.model.graphs():
            if self.graphs is not None and graph not in self.graphs:
                continue
            here: dict[int, Node] = {}
            for key in self.keys:
                here.update(graph._by_op.get(key, {}))
            found += [here[serial] for serial in sorted(here)]
        rare = self._rare(len(found))
        if rare is None:
            return found
        near = set(self.affected_by(rare))
        return [node for node in found if node in near]

    def _rare(self, count: int) -> list[Node] | None:
        """Return nodes such that every match contains one; None if they are too many."""
        rule, left = self.rule, count // _FEW
        if rule.has_several_roots or max(map(len, rule.operators)) == 1:
            return None
        indices = [graph._by_op for graph in self.model.graphs()]
        found: dict[Key, list[Node]] = {}
        for needed, missing in zip(rule.operators, rule.missing_operators(self.model), strict=True):
            if missing:
                continue
            nodes = {
                key: [node for index in indices for node in index.get(key, {}).values()]
                for key in needed
            }
            rarest = min(nodes, key=lambda key: (len(nodes[key]), key))
            if rarest not in found:
                found[rarest] = nodes[rarest]
                left -= len(nodes[rarest])
            if left < 0:
                return None
        return [node for nodes in found.values() for node in nodes]

    def in_topological_order(self) -> list[Node]:
        """Return every possible anchor in topological order."""
        return [
            node
            for graph in self.model.graphs()
            if self.graphs is None or graph in self.graphs
            for node in graph.topological_order()
            if (node.domain, node.op_type) in self.keys
        ]

    def affected_since(self, since: Stamp) -> list[Node]:
        """Return the possible anchors that edits since a moment affect."""
        journal = self.model.journal
        if journal.kept_since(since) < since.length:
            # Edits that the last run saw were undone since, so any anchor may be affected.
            return self.all_anchors()
        touched = journal.note_touched()
        # With more touched nodes than possible anchors, each anchor is examined instead.
        most = len(touched) if self.rule.has_several_roots else self.candidates()
        dirty: list[Node] = []
        for node, at in reversed(touched.items()):
            if at <= since.length:
                break
            if node.is_live:
                if len(dirty) == most:
                    near = Affected(touched, since.length, self.rule)
                    return [anchor for anchor in self.all_anchors() if near.holds(anchor)]
                dirty.append(node)
        return self.affected_by(dirty)

    def candidates(self) -> int:
        """Return how many nodes the rule could be anchored at."""
        graphs = self.model.graphs() if self.graphs is None else self.graphs
        return sum(len(graph._by_op.get(key, ())) for graph in graphs for key in self.keys)

    def affected_by(
        self, dirty: Iterable[Node], wide: dict[Value, None] | None = None
    ) -> list[Node]:
        """Return the possible anchors that edited nodes affect: these and their consumers.

        Args:
            dirty: the nodes.
            wide: takes the values with many users, which are then not followed; `around` does it
                for all of them later. None follows them at once.
        """
        seen = dict.fromkeys(dirty)
        if self.rule.has_several_roots:
            # From one root up to a value that it shares with another root, and down to that root.
            seen.update(self._spread(seen, _producers, wide))
        seen.update(self._spread(seen, _readers, wide))
        keys, graphs = self.keys, self.graphs
        found = [
            node
            for node in seen
            if (node.domain, node.op_type) in keys
            and node.is_live
            and (graphs is None or node.graph in graphs)
        ]
        return sorted(found, key=lambda node: node.id) if len(found) > 1 else found

    def around(self, wide: Iterable[Value]) -> list[Node]:
        """Return the possible anchors that edits near values with many users affect."""
        return self.affected_by(user for value in wide for user in value._users.values())

    def _spread(
        self,
        start: Mapping[Node, None],
        neighbours: Callable[[Node, dict[Value, None] | None], Iterable[Node]],
        wide: dict[Value, None] | None,
    ) -> dict[Node, None]:
        """Return the nodes within the depth of the pattern; links of a chain do not count."""
        seen, links = dict(start), self.rule.links
        frontier = list(start)
        for _ in range(self.rule.reach):
            beyond: list[Node] = []
            while frontier:
                for node in neighbours(frontier.pop(), wide):
                    if node not in seen:
                        seen[node] = None
                        is_link = (node.domain, node.op_type) in links
                        (frontier if is_link else beyond).append(node)
            frontier = beyond
        return seen


class Affected:
    """Whether a node was touched after some moment, or lies within a pattern's reach below one.

    It agrees with `Worklist.affected_by`, for one node: faster where most nodes were touched.
    """

    def __init__(self, touched: Mapping[Node, int], since: int, rule: Rule) -> None:
        self.touched = touched
        self.since = since
        self.rule = rule

    def holds(self, anchor: Node) -> bool:
        """Return whether edits affect a node that a match could be anchored at."""
        touched, since, links = self.touched, self.since, self.rule.links
        if touched.get(anchor, 0) > since:
            return True
        seen, frontier = {anchor}, [anchor]
        for left in range(self.rule.reach, -1, -1):
            beyond: list[Node] = []
            while frontier:
                node = frontier.pop()
                is_link = (node.domain, node.op_type) in links
                if not is_link and not left:
                    continue
                # The inputs of a link are no step further.
                further = frontier if is_link else beyond
                for value in node._inputs:
                    above = None if value is None else value.producer
                    if above is None or above in seen:
                        continue
                    if touched.get(above, 0) > since:
                        return True
                    seen.add(above)
                    further.append(above)
            frontier = beyond
        return False


def _producers(node: Node, wide: dict[Value, None] | None) -> Iterator[Node]:
    """Yield the producers of the inputs of a node, and the other consumers of these inputs."""
    for value in node._inputs:
        if value is not None:
            yield from _users(value, wide)
            if value.producer is not None:
                yield value.producer


def _readers(node: Node, wide: dict[Value, None] | None) -> Iterator[Node]:
    for value in node._outputs:
        if value is not None:
            yield from _users(value, wide)


def _users(value: Value, wide: dict[Value, None] | None) -> Iterable[Node]:
    """Return the users of a value; note it in `wide` instead if they are many."""
    if wide is None or len(value._users) <= _WIDE:
        return value._users.values()
    wide[value] = None
    return ()
