"""The driver: runs one rule over a model to its fixed point, looking only where something moved."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from tiered.errors import PassError
from tiered.graph.forms import NoEquivalentForm
from tiered.graph.journal import Entry, Stamp, dirty_nodes
from tiered.rewrite.compiler import Program
from tiered.rewrite.matcher import Match, compile_pattern, match_node
from tiered.rewrite.pattern import (
    Chain,
    Op,
    Pattern,
    PatternError,
    Together,
    depth,
    operators,
    roots,
)
from tiered.rewrite.skip import Skip

if TYPE_CHECKING:
    from tiered.graph.graph import Graph
    from tiered.graph.model import Model
    from tiered.graph.node import Node
    from tiered.graph.value import Value

Values = tuple["Value | None", ...]
OnSkip = Callable[["Node", Skip], None]
Filter = Callable[[Match], "Skip | None"]
Approve = Callable[[Sequence[Entry]], "Skip | None"]
OnRewrite = Callable[[Match, Sequence[Entry]], None]

_REWRITES_PER_NODE: Final = 16
"""A rule that rewrites more often than this for each node of the model will not come to an end."""


_NOT_CHOSEN: Final = Skip("not among the rewrites that are tried")


@dataclass(frozen=True)
class Rule:
    """One law: a pattern, and the function that says what stands in its place, or why not."""

    name: str
    pattern: Pattern
    function: Callable[..., Any]
    law: str = ""

    def __post_init__(self) -> None:
        missing = set(self.parameters) - set(self.bound)
        if missing:
            raise PatternError(
                f"{self.name}: the pattern binds no {', '.join(sorted(missing))}; "
                f"it binds {', '.join(sorted(self.bound))}"
            )

    @cached_property
    def bound(self) -> frozenset[str]:
        """Return the names that the function may ask for."""
        return frozenset(self.pattern.bound) | {"node"}

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Return the names that the function asks for, after the graph."""
        signature = inspect.signature(self.function)
        positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = [p.name for p in signature.parameters.values() if p.kind is positional]
        return tuple(names[1:])

    @cached_property
    def keys(self) -> frozenset[tuple[str, str]]:
        """Return (domain, op type) of the nodes that a match may be anchored at."""
        choices = roots(self.pattern)
        anchors = (one.roots[0] if isinstance(one, Together) else one for one in choices)
        return frozenset(anchor.key for anchor in anchors if isinstance(anchor, Op))

    @cached_property
    def operators(self) -> tuple[frozenset[tuple[str, str]], ...]:
        """Return, for each choice of the root, the operators without which it matches nothing."""
        return tuple(map(operators, roots(self.pattern)))

    @cached_property
    def programs(self) -> tuple[Program, ...]:
        """Return the compiled pattern."""
        return compile_pattern(self.pattern)

    @cached_property
    def reach(self) -> int:
        """Return how far below an edit an anchor may stand that the edit concerns."""
        return depth(self.pattern)

    @cached_property
    def links(self) -> frozenset[tuple[str, str]]:
        """Return the operators of which the pattern takes any number in a row."""
        chains = (part for part in self.pattern.walk() if isinstance(part, Chain))
        return frozenset(key for chain in chains for key in chain.kinds)

    @cached_property
    def has_several_roots(self) -> bool:
        return any(isinstance(part, Together) for part in self.pattern.walk())


def apply_rule(
    rule: Rule,
    model: Model,
    options: Mapping[str, Any],
    *,
    graphs: Sequence[Graph] | None = None,
    since: Stamp | None = None,
    on_skip: OnSkip | None = None,
    accept: Filter | None = None,
    approve: Approve | None = None,
    on_rewrite: OnRewrite | None = None,
    once: bool = False,
) -> None:
    """Rewrite until the rule fires nowhere any more.

    Args:
        rule: the law.
        model: the model, edited in place.
        options: the keyword arguments of the rule's function.
        graphs: where to look; all graphs by default.
        since: the moment of the last run of this rule, which left nothing to do: only what was
            edited after it is looked at. None looks everywhere.
        on_skip: told each node that matched and why it was left alone.
        accept: asked before each rewrite; a Skip declines it.
        approve: asked after each rewrite, with its edits; a Skip undoes it.
        on_rewrite: told each match that was rewritten, with the edits.
        once: look at each node that is there now once, in topological order.

    Raises:
        PassError: the rule does not come to an end.
    """
    if model.gate.is_shut() or not any(_has_all(model, each) for each in rule.operators):
        return
    run = _Run(rule, model, options, on_skip, accept, approve, on_rewrite, graphs)
    if once:
        queue = deque(run.in_order())
    else:
        queue = deque(run.everything() if since is None else run.concerned(since))
    if not queue:
        return
    queued = {node.id for node in queue}
    total = sum(len(graph) for graph in model.graphs())
    budget = _REWRITES_PER_NODE * (total + 1)
    while queue:
        node = queue.popleft()
        queued.discard(node.id)
        if not node.is_live:
            continue
        mark = model.mark()
        if not run.rewrite(node):
            continue
        if model.gate.is_shut():
            return
        if once:
            continue
        budget -= 1
        if budget == 0:
            raise PassError(f"{rule.name} does not come to an end: it undoes its own rewrites")
        for touched in run.near(dirty_nodes(model.journal.since(mark))):
            if touched.id not in queued:
                queued.add(touched.id)
                queue.append(touched)


def _has_all(model: Model, keys: Iterable[tuple[str, str]]) -> bool:
    """Tell whether a model has a node of each of these operators."""
    graphs = tuple(model.graphs())
    return all(any(graph._by_op.get(key) for graph in graphs) for key in keys)


class _Run:
    def __init__(
        self,
        rule: Rule,
        model: Model,
        options: Mapping[str, Any],
        on_skip: OnSkip | None,
        accept: Filter | None,
        approve: Approve | None,
        on_rewrite: OnRewrite | None,
        graphs: Sequence[Graph] | None,
    ) -> None:
        self.rule = rule
        self.model = model
        self.options = options
        self.on_skip = on_skip
        self.accept = accept
        self.approve = approve
        self.on_rewrite = on_rewrite
        self.graphs = None if graphs is None else set(graphs)
        self.keys = rule.keys

    # --- where to look ----------------------------------------------------------------------------

    def everything(self) -> list[Node]:
        found: list[Node] = []
        for graph in self.model.graphs():
            if self.graphs is not None and graph not in self.graphs:
                continue
            here: dict[int, Node] = {}
            for key in self.keys:
                here.update(graph._by_op.get(key, {}))
            found += (here[serial] for serial in sorted(here))
        return found

    def in_order(self) -> list[Node]:
        """Return every possible anchor in topological order."""
        return [
            node
            for graph in self.model.graphs()
            if self.graphs is None or graph in self.graphs
            for node in graph.topological_order()
            if (node.domain, node.op_type) in self.keys
        ]

    def concerned(self, since: Stamp) -> list[Node]:
        """Return the possible anchors that edits since then concern."""
        journal = self.model.journal
        if journal.kept_since(since) < since.length:
            # Edits that the last run saw were undone since: nothing can be said about the rest.
            return self.everything()
        touched = journal.note_touched()
        latest = takewhile(lambda node: touched[node] > since.length, reversed(touched))
        dirty = [node for node in latest if node.is_live]
        if not dirty or self.rule.has_several_roots or len(dirty) < self.candidates():
            return self.near(dirty)
        near = _Near(touched, since.length, self.rule)
        return [node for node in self.everything() if near.holds(node)]

    def candidates(self) -> int:
        """Return how many nodes the rule could be anchored at."""
        graphs = self.model.graphs() if self.graphs is None else self.graphs
        return sum(len(graph._by_op.get(key, ())) for graph in graphs for key in self.keys)

    def near(self, dirty: Iterable[Node]) -> list[Node]:
        """Return the possible anchors that nodes concern which were edited: these, and readers."""
        seen = dict.fromkeys(dirty)
        if self.rule.has_several_roots:
            # From one root up to what it shares with another, and down to that.
            seen.update(self._spread(seen, _producers))
        seen.update(self._spread(seen, _readers))
        keys, graphs = self.keys, self.graphs
        found = [
            node
            for node in seen
            if (node.domain, node.op_type) in keys
            and node.is_live
            and (graphs is None or node.graph in graphs)
        ]
        return sorted(found, key=lambda node: node.id) if len(found) > 1 else found

    def _spread(
        self, start: Mapping[Node, None], neighbours: Callable[[Node], Iterable[Node]]
    ) -> dict[Node, None]:
        """Return what lies as many steps away as the pattern is deep; links are no steps."""
        seen, links = dict(start), self.rule.links
        frontier = list(start)
        for _ in range(self.rule.reach):
            beyond: list[Node] = []
            while frontier:
                for node in neighbours(frontier.pop()):
                    if node not in seen:
                        seen[node] = None
                        is_link = (node.domain, node.op_type) in links
                        (frontier if is_link else beyond).append(node)
            frontier = beyond
        return seen

    # --- one rewrite ------------------------------------------------------------------------------

    def rewrite(self, node: Node) -> bool:
        """Try the rule at one node; tell whether it fired."""
        match = match_node(self.rule.programs, node)
        if match is None:
            return False
        if isinstance(match, Skip):
            return self._declined(node, match)
        if self.accept is not None:
            refusal = self.accept(match)
            if refusal is not None:
                return self._declined(node, refusal)
        model, mark = self.model, self.model.mark()
        if model.gate.chosen is not None and not model.gate.lets(node.label):
            return self._declined(node, _NOT_CHOSEN)
        outcome = self._edit(match)
        edits = model.journal.since(mark)
        if self.approve is not None and not isinstance(outcome, Skip):
            outcome = self.approve(edits) or outcome
        if isinstance(outcome, Skip):
            model.undo_to(mark)
            return self._declined(node, outcome)
        model.gate.passed(outcome, self.rule.law, node.label, edits, tuple(match.nodes))
        if self.on_rewrite is not None:
            self.on_rewrite(match, edits)
        return True

    def _edit(self, match: Match) -> Graph | Skip:
        node, graph, model = match.node, match.node.owner, self.model
        first_new = model.peek_serial()
        model.hint = node.label or None
        model.gate.at = node.label
        bindings = match.bindings
        arguments = [node if name == "node" else bindings[name] for name in self.rule.parameters]
        try:
            result = self.rule.function(graph, *arguments, **self.options)
        except NoEquivalentForm as error:
            return Skip("{}", error)
        finally:
            model.hint = None
        if isinstance(result, Skip):
            return result
        successors = _successors(self.rule, match, result)
        for root, values in successors:
            refusal = cannot_stand_in(root, values)
            if refusal is not None:
                return refusal
        for root, values in successors:
            graph.replace(root, values, first_new)
        return graph

    def _declined(self, node: Node, reason: Skip) -> bool:
        if self.on_skip is not None:
            self.on_skip(node, reason)
        return False


class _Near:
    """Whether a node was touched after some moment, or lies within a pattern's reach below one.

    The same as `_Run.near` says, asked of one node: where most were touched, that is soon told.
    """

    def __init__(self, touched: Mapping[Node, int], since: int, rule: Rule) -> None:
        self.touched = touched
        self.since = since
        self.rule = rule

    def holds(self, anchor: Node) -> bool:
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
                # What a link reads is no step further.
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


def _producers(node: Node) -> Iterable[Node]:
    """Yield what a node reads from, and what else reads that."""
    for value in node._inputs:
        if value is not None:
            yield from value._users.values()
            if value.producer is not None:
                yield value.producer


def _readers(node: Node) -> Iterable[Node]:
    for value in node._outputs:
        if value is not None:
            yield from value._users.values()


def _successors(rule: Rule, match: Match, result: Any) -> list[tuple[Node, Values]]:
    """Return what stands in the place of each root.

    Raises:
        PassError: the rule gives too few values or too many.
    """
    results = (result,) if len(match.roots) == 1 else result
    if not isinstance(results, tuple | list) or len(results) != len(match.roots):
        raise PassError(f"{rule.name} gives no value for each of the {len(match.roots)} roots")
    found: dict[Node, list[Value | None]] = {}
    for root, output, given in zip(match.roots, match.outputs, results, strict=True):
        values = found.setdefault(root, [None] * len(root._outputs))
        if not isinstance(given, tuple | list):
            values[output] = given
            continue
        for index, (before, after) in enumerate(zip(root._outputs, given, strict=False)):
            if before is not None and after is None and before.is_used:
                raise PassError(f"output {before.name!r} of {root.label!r} is used; give a value")
            values[index] = after
    return [(root, tuple(values)) for root, values in found.items()]


def cannot_stand_in(node: Node, values: Values) -> Skip | None:
    """Return why values may not take the place of a node's outputs."""
    if node.is_pinned:
        return Skip("training info or an annotation names a value here")
    for before, after in zip(node._outputs, values, strict=False):
        if before is None or after is None:
            continue
        if node.op_type != "Identity" or not before.is_graph_output:
            continue
        # The Identity that would bear the output's name is there already.
        if after.graph is not before.graph or not after.can_be_renamed:
            return Skip("a graph output needs a node of its own")
    return None
