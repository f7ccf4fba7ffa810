"""The driver: runs one rule over a model to its fixed point, looking only where something moved."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from tiered.errors import PassError
from tiered.graph.core.dtypes import DataType
from tiered.graph.core.journal import NODE_EDITS, Edit, Entry, Stamp, dirty_nodes
from tiered.graph.core.marks import mark_against
from tiered.graph.core.names import is_hidden
from tiered.graph.opset.convert import NoEquivalentForm
from tiered.rewriter.compile import Program
from tiered.rewriter.match import Match, match_node
from tiered.rewriter.rule import Key, Rule
from tiered.rewriter.skip import Skip
from tiered.rewriter.worklist import Anchors

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
"""A rule that rewrites more often than this for each node of the model will not come to an end."""


_WITHOUT_IDENTITY: Final = frozenset(
    {
        DataType.FLOAT4E2M1, DataType.FLOAT6E2M3, DataType.FLOAT6E3M2,
        DataType.INT2, DataType.INT4, DataType.UINT2, DataType.UINT4,
    }
)  # fmt: skip
"""The dtypes that onnxruntime may move and cast, but has no Identity for."""

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
    if model.gate.is_shut():
        return
    anchors = Anchors(rule, model, graphs)
    if once:
        queue = deque(anchors.in_order())
    else:
        queue = deque(anchors.everything() if since is None else anchors.concerned(since))
    if not queue:
        return
    run = _Run(rule, model, options, on_skip, accept, approve, on_rewrite)
    run.choose_programs()
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
        edits = model.journal.since(mark)
        # What was made may be what another choice of the root needs.
        if any(run.may_choose_after(entry) for entry in edits):
            run.choose_programs()
        if once:
            continue
        budget -= 1
        if budget == 0:
            raise PassError(f"{rule.name} does not come to an end: it undoes its own rewrites")
        for touched in anchors.near(dirty_nodes(edits)):
            if touched.id not in queued:
                queued.add(touched.id)
                queue.append(touched)


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
        # What the model lacks of the other programs' operators.
        self._lacking: frozenset[Key] = frozenset()

    def choose_programs(self) -> None:
        """Take the programs of which the model has all operators now."""
        lacking = self.rule.lacking_in(self.model)
        self._lacking = frozenset[Key]().union(*lacking)
        chosen = zip(self.rule.programs, lacking, strict=True)
        self._programs = [program for program, lacks in chosen if not lacks]

    def may_choose_after(self, entry: Entry) -> bool:
        """Tell whether an edit may have brought an operator for want of which a program was left.

        To look through all graphs after each rewrite would take long where there are many bodies.
        """
        edit, subject = entry[:2]
        if edit in NODE_EDITS:
            return (subject.domain, subject.op_type) in self._lacking
        return bool(self._lacking) and edit in (Edit.ADD_FUNCTION, Edit.EXCHANGE_CONTENT)

    def rewrite(self, node: Node) -> bool:
        """Try the rule at one node; tell whether it fired."""
        match = match_node(self._programs, node)
        if match is None:
            return False
        if isinstance(match, Skip):
            return self._declined(node, match)
        if self.accept is not None:
            refusal = self.accept(match)
            if refusal is not None:
                return self._declined(node, refusal)
        marked = mark_against(match.nodes)
        if marked:
            return self._declined(node, Skip(marked))
        model, mark = self.model, self.model.mark()
        if model.gate.chosen is not None and not model.gate.lets(node.label):
            return self._declined(node, _NOT_CHOSEN)
        outcome = self._edit(match)
        edits: Sequence[Entry] = ()
        if not isinstance(outcome, Skip):
            edits = model.journal.since(mark)
            outcome = (self.approve(edits) if self.approve is not None else None) or outcome
        if isinstance(outcome, Skip):
            model.undo_to(mark)
            return self._declined(node, outcome)
        model.gate.passed(outcome, self.rule.law, node.label, edits, tuple(match.nodes))
        if self.on_rewrite is not None:
            self.on_rewrite(match, edits)
        return True

    def _edit(self, match: Match) -> Graph | Skip:
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
        if before is None or after is None or not before.is_graph_output:
            continue
        can_stand = after.graph is before.graph and after.can_become_output
        if can_stand and not is_hidden(after, before.name):
            continue
        # An Identity would bear the output's name: it is there already, or no runtime has one.
        if node.op_type == "Identity" or before.dtype in _WITHOUT_IDENTITY:
            return Skip("a graph output needs a node of its own")
    return None
