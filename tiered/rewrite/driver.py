"""The driver: runs one rule over a model to its fixed point, looking only where something moved."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from tiered.errors import PassError
from tiered.graph.forms import NoEquivalentForm
from tiered.graph.journal import Entry, Stamp, dirty_nodes
from tiered.rewrite.matcher import Match, match_node
from tiered.rewrite.pattern import Op, Pattern, PatternError, depth, roots, variables
from tiered.rewrite.skip import Skip

if TYPE_CHECKING:
    from tiered.graph.graph import Graph
    from tiered.graph.model import Model
    from tiered.graph.node import Node
    from tiered.graph.value import Value

Result = "Value | Sequence[Value | None] | Skip"
OnSkip = Callable[["Node", Skip], None]
Filter = Callable[[Match], "Skip | None"]

_REWRITES_PER_NODE: Final = 16
"""A rule that rewrites more often than this for each node of the model will not come to an end."""


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
        return frozenset(variables(self.pattern)) | {"node"}

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Return the names that the function asks for, after the graph."""
        signature = inspect.signature(self.function)
        positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = [p.name for p in signature.parameters.values() if p.kind is positional]
        return tuple(names[1:])

    @cached_property
    def anchors(self) -> tuple[Op, ...]:
        return roots(self.pattern)

    @cached_property
    def reach(self) -> int:
        """Return how far below an edit an anchor may stand that the edit concerns."""
        return depth(self.pattern)


def apply_rule(
    rule: Rule,
    model: Model,
    options: Mapping[str, Any],
    *,
    graphs: Sequence[Graph] | None = None,
    since: Stamp | None = None,
    on_skip: OnSkip | None = None,
    accept: Filter | None = None,
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

    Raises:
        PassError: the rule does not come to an end.
    """
    if model.gate.is_shut():
        return
    run = _Run(rule, model, options, on_skip, accept, graphs)
    queue = deque(run.everything() if since is None else run.concerned(since))
    queued = set(queue)
    total = sum(len(graph) for graph in model.graphs())
    budget = _REWRITES_PER_NODE * (total + 1)
    while queue:
        node = queue.popleft()
        queued.discard(node)
        if node.graph is None:
            continue
        mark = model.mark()
        if not run.rewrite(node):
            continue
        if model.gate.is_shut():
            return
        budget -= 1
        if budget == 0:
            raise PassError(f"{rule.name} does not come to an end: it undoes its own rewrites")
        for touched in run.touched(model.journal.since(mark)):
            if touched not in queued:
                queued.add(touched)
                queue.append(touched)


class _Run:
    def __init__(
        self,
        rule: Rule,
        model: Model,
        options: Mapping[str, Any],
        on_skip: OnSkip | None,
        accept: Filter | None,
        graphs: Sequence[Graph] | None,
    ) -> None:
        self.rule = rule
        self.model = model
        self.options = options
        self.on_skip = on_skip
        self.accept = accept
        self.graphs = None if graphs is None else set(graphs)
        self.keys = {anchor.key for anchor in rule.anchors}

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

    def concerned(self, since: Stamp) -> list[Node]:
        journal = self.model.journal
        if journal.kept_since(since) < since.length:
            # Edits that the last run saw were undone since: nothing can be said about the rest.
            return self.everything()
        edits = len(journal) - since.length
        if self.candidates() <= edits:
            # Fewer nodes than edits: to look at them all is less work than to find out which.
            return self.everything()
        return self.touched(journal.since(since.length))

    def candidates(self) -> int:
        """Return how many nodes the rule could be anchored at."""
        graphs = self.model.graphs() if self.graphs is None else self.graphs
        return sum(len(graph._by_op.get(key, ())) for graph in graphs for key in self.keys)

    def touched(self, entries: Iterable[Entry]) -> list[Node]:
        """Return the possible anchors that edits concern: what they touched, and what reads it."""
        frontier = dict.fromkeys(dirty_nodes(entries))
        seen = dict(frontier)
        for _ in range(self.rule.reach):
            below: dict[Node, None] = {}
            for node in frontier:
                for value in node._outputs:
                    for reader in value._users.values() if value is not None else ():
                        if reader not in seen:
                            below[reader] = None
            if not below:
                break
            seen.update(below)
            frontier = below
        keys, graphs = self.keys, self.graphs
        found = [
            node
            for node in seen
            if node.graph is not None
            and (node.domain, node.op_type) in keys
            and (graphs is None or node.graph in graphs)
        ]
        return sorted(found, key=lambda node: node.id)

    # --- one rewrite ------------------------------------------------------------------------------

    def rewrite(self, node: Node) -> bool:
        """Try the rule at one node; tell whether it fired."""
        match = match_node(self.rule.anchors, node)
        if match is None:
            return False
        if isinstance(match, Skip):
            return self._declined(node, match)
        if self.accept is not None:
            refusal = self.accept(match)
            if refusal is not None:
                return self._declined(node, refusal)
        model, mark = self.model, self.model.mark()
        outcome = self._edit(match)
        if isinstance(outcome, Skip):
            model.undo_to(mark)
            return self._declined(node, outcome)
        model.gate.passed(outcome, self.rule.law, node.label, model.journal.since(mark))
        return True

    def _edit(self, match: Match) -> Graph | Skip:
        node, graph, model = match.node, match.node.owner, self.model
        first_new = model.peek_serial()
        model.hint = node.label or None
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
        values = tuple(result) if isinstance(result, tuple | list) else (result,)
        refusal = _cannot_stand_in(node, values)
        if refusal is not None:
            return refusal
        graph.replace(node, values, first_new)
        return graph

    def _declined(self, node: Node, reason: Skip) -> bool:
        if self.on_skip is not None:
            self.on_skip(node, reason)
        return False


def _cannot_stand_in(node: Node, values: Sequence[Value | None]) -> Skip | None:
    """Return why values may not take the place of a node's outputs."""
    if node.is_pinned:
        return Skip("training info or an annotation names a value here")
    for before, after in zip(node._outputs, values, strict=False):
        if before is None or after is None:
            if before is not None and before.is_used:
                raise PassError(f"output {before.name!r} of {node.label!r} is used; give a value")
            continue
        if node.op_type != "Identity" or not before.is_graph_output:
            continue
        # The Identity that would bear the output's name is there already.
        if after.graph is not before.graph or not after.can_be_renamed:
            return Skip("a graph output needs a node of its own")
    return None
