"""The driver: runs one rule over a model to its fixed point, only where something was edited."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.edit import NODE_EDITS, Edit, Entry, Stamp
from tiered.graph.core.journal import dirty_nodes
from tiered.graph.core.marks import mark_against
from tiered.graph.edits.heirs import inherit_names
from tiered.graph.edits.transactions import is_hidden
from tiered.graph.opset.newest_form import NoEquivalentForm
from tiered.rewriter.compile import Program
from tiered.rewriter.match import Match, match_node
from tiered.rewriter.pattern import Key
from tiered.rewriter.rule import Rule
from tiered.rewriter.skip import Skip
from tiered.rewriter.worklist import Worklist
from tiered.support.errors import PassError

if TYPE_CHECKING:
    from tiered.graph.core.graph import Graph
    from tiered.graph.core.model import ModelState
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

Values = tuple["Value | None", ...]
OnSkip = Callable[["Node", Skip], None]
Filter = Callable[[Match], "Skip | None"]
Approve = Callable[[Sequence[Entry]], "Skip | None"]
OnRewrite = Callable[[Match, Sequence[Entry]], None]

_REWRITES_PER_NODE: Final = 16
"""More rewrites than this for each node of the model mean that the rule does not terminate."""

_NOT_CHOSEN: Final = Skip("not among the rewrites that are tried")


def apply_rule(
    rule: Rule,
    model: ModelState,
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
        since: the end of the last run of this rule, which reached a fixed point: only nodes that
            later edits affect are visited. None visits all.
        on_skip: called with each node that matched and was not rewritten, and the reason.
        accept: called before each rewrite; a Skip declines it.
        approve: called after each rewrite, with its edits; a Skip undoes it.
        on_rewrite: called with each match that was rewritten, and the edits.
        once: visit each node that exists now once, in topological order.

    Raises:
        PassError: the rule does not terminate.
    """
    if model.gate.is_shut():
        return
    worklist = Worklist(rule, model, graphs)
    if once:
        queue = deque(worklist.in_topological_order())
    else:
        queue = deque(worklist.all_anchors() if since is None else worklist.affected_since(since))
    if not queue:
        return
    run = _Run(rule, model, options, on_skip, accept, approve, on_rewrite)
    run.choose_programs()
    # Both are needed from the first rewrite on: most runs make none.
    queued: set[int] | None = None
    budget = 0
    # Values with many users, near edits: followed when the queue is empty, once for all edits.
    wide: dict[Value, None] = {}
    while queue or wide:
        if not queue:
            queue.extend(worklist.around(wide))
            queued = {waiting.id for waiting in queue}
            wide.clear()
            continue
        node = queue.popleft()
        if queued is not None:
            queued.discard(node.id)
            if not node.is_live:
                continue
        mark = model.mark()
        if not run.rewrite(node):
            continue
        if model.gate.is_shut():
            return
        if queued is None:
            queued = {waiting.id for waiting in queue}
            budget = _REWRITES_PER_NODE * (sum(map(len, model.graphs())) + 1)
        edits = model.journal.since(mark)
        # A new node may be the operator that another choice of the root needs.
        if any(run.may_choose_after(entry) for entry in edits):
            run.choose_programs()
        if once:
            continue
        budget -= 1
        if budget == 0:
            raise PassError(f"{rule.name} does not terminate: it undoes its own rewrites")
        for touched in worklist.affected_by(dirty_nodes(edits), wide):
            if touched.id not in queued:
                queued.add(touched.id)
                queue.append(touched)


def rewrite_node(rule: Rule, node: Node, options: Mapping[str, Any]) -> Skip | None:
    """Apply a rule at one node, as a part of a larger rewrite; return why it does not apply.

    The caller undoes the edits made before a Skip.
    """
    match = match_node(rule.programs, node)
    if match is None:
        return Skip("the pattern does not match")
    if isinstance(match, Skip):
        return match
    outcome = _Run(rule, node.owner.model, options, None, None, None, None).edit(match)
    return outcome if isinstance(outcome, Skip) else None


class _Run:
    def __init__(
        self,
        rule: Rule,
        model: ModelState,
        options: Mapping[str, Any],
        on_skip: OnSkip | None,
        accept: Filter | None,
        approve: Approve | None,
        on_rewrite: OnRewrite | None,
    ) -> None:
        self.rule = rule
        self.model = model
        self.options = options
        self.on_skip = on_skip
        self.accept = accept
        self.approve = approve
        self.on_rewrite = on_rewrite
        self._programs: list[Program] = []
        # The operators of the other programs that the model does not have.
        self._missing: frozenset[Key] = frozenset()

    def choose_programs(self) -> None:
        """Choose the programs whose operators the model has, all of them."""
        missing = self.rule.missing_operators(self.model)
        self._missing = frozenset[Key]().union(*missing)
        chosen = zip(self.rule.programs, missing, strict=True)
        self._programs = [program for program, absent in chosen if not absent]

    def may_choose_after(self, entry: Entry) -> bool:
        """Return whether an edit may have added an operator that a program was missing.

        A search of all graphs after each rewrite would be slow in a model with many bodies.
        """
        edit, subject = entry[:2]
        if edit in NODE_EDITS:
            return (subject.domain, subject.op_type) in self._missing
        return bool(self._missing) and edit in (Edit.ADD_FUNCTION, Edit.EXCHANGE_CONTENT)

    def rewrite(self, node: Node) -> bool:
        """Try the rule at one node; return whether it fired."""
        match = match_node(self._programs, node)
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
        outcome = self.edit(match)
        edits: Sequence[Entry] = ()
        if not isinstance(outcome, Skip):
            edits = model.journal.since(mark)
            outcome = (self.approve(edits) if self.approve is not None else None) or outcome
        if isinstance(outcome, Skip):
            if model.changed_since(mark):
                model.undo_to(mark)
            return self._declined(node, outcome)
        if inherit_names(edits):
            edits = model.journal.since(mark)
        model.gate.passed(outcome, self.rule.law, node.label, edits, tuple(match.nodes))
        if self.on_rewrite is not None:
            self.on_rewrite(match, edits)
        return True

    def edit(self, match: Match) -> Graph | Skip:
        """Make the replacement of a match and redirect its users."""
        node, graph, model = match.node, match.node.owner, self.model
        first_new, label = model.peek_serial(), node.label
        model.hint = label or None
        model.gate.at = label
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
        # Few matches come this far, and reading metadata takes longer than most refusals.
        marked = mark_against(match.nodes)
        if marked:
            return Skip(marked)
        successors = _successors(self.rule, match, result)
        for root, values in successors:
            refusal = why_not_replaceable(root, values)
            if refusal is not None:
                return refusal
        for root, values in successors:
            graph.replace(root, values, first_new)
        return graph

    def _declined(self, node: Node, reason: Skip) -> bool:
        if self.on_skip is not None:
            self.on_skip(node, reason)
        return False


def _successors(rule: Rule, match: Match, result: Any) -> list[tuple[Node, Values]]:
    """Return the replacement of each root.

    Raises:
        PassError: the rule returned too few values or too many.
    """
    results = (result,) if len(match.roots) == 1 else result
    if not isinstance(results, tuple | list) or len(results) != len(match.roots):
        raise PassError(f"{rule.name} must return one value for each of {len(match.roots)} roots")
    found: dict[Node, list[Value | None]] = {}
    for root, output, given in zip(match.roots, match.outputs, results, strict=True):
        values = found.setdefault(root, [None] * len(root._outputs))
        if not isinstance(given, tuple | list):
            values[output] = given
            continue
        for index, (before, after) in enumerate(zip(root._outputs, given, strict=False)):
            if before is not None and after is None and before.is_used:
                raise PassError(f"output {before.name!r} of {root.label!r} is used; return a value")
            values[index] = after
    return [(root, tuple(values)) for root, values in found.items()]


def _has_identity(dtype: int | None) -> bool:
    return dtype is None or DataType(dtype).has_identity


def why_not_replaceable(node: Node, values: Values) -> Skip | None:
    """Return why values cannot replace the outputs of a node."""
    if node.is_pinned:
        return Skip("training info or an annotation names a value here")
    for before, after in zip(node._outputs, values, strict=False):
        if before is None or after is None or not before.is_graph_output:
            continue
        can_stand = after.graph is before.graph and after.can_become_output
        if can_stand and not is_hidden(after, before.name):
            continue
        # An Identity would get the output's name: it exists already, or no runtime has one.
        if node.op_type == "Identity" or not _has_identity(before.dtype):
            return Skip("a graph output needs a node of its own")
    return None
