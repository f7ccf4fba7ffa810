"""Rewrite passes: one rule, and the target's approval of what it makes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tiered.graph import Graph, Model, Node
from tiered.graph.core.edit import Edit, Entry
from tiered.graph.queries.attached import is_attached
from tiered.passes.kinds.body import BodyPass
from tiered.passes.pass_run import Allows, PassRun
from tiered.passes.scope_guard import OUTSIDE
from tiered.rewriter import Match, Rule, Skip, apply_rule
from tiered.targets.shared_rules import NO_OPERATOR, in_newer_opset, newer_operator

if TYPE_CHECKING:
    from tiered.context import PassContext
    from tiered.passes.execution import Execution
    from tiered.targets import Backend
    from tiered.targets.any_runtime import AnyRuntime


class RewritePass(BodyPass):
    """One rule, applied until its pattern matches nowhere."""

    @property
    def rule(self) -> Rule:
        """The rule: its pattern, and the function that makes the replacement."""
        rule: Rule = self.body.work
        return rule

    def run(self, model: Model, execution: Execution, run: PassRun) -> None:
        """Apply the rule to all nodes that were edited since its last run."""
        graphs = self._graphs(model, execution, run) if self.conditions else None
        approve = self.approval(execution.ctx)
        model.gate.refusal = None if approve is None else partial(_refusal, execution.ctx.target)
        try:
            apply_rule(
                self.rule,
                model,
                self.options,
                graphs=graphs,
                # A graph may have failed the condition before, so all of it is new.
                since=run.looked if graphs is None else None,
                on_skip=run.missed,
                accept=None if run.allows is None else _filter(run.allows),
                approve=approve,
                once=self.rule.once,
            )
        finally:
            model.gate.refusal = None
        for graph in filter(is_attached, graphs or ()):
            self.conditions.hold_after(graph, execution.ctx, self.name)

    def approval(self, ctx: PassContext) -> Callable[[Sequence[Entry]], Skip | None] | None:
        """Return a check of rewrites against the target of a context; None without a target."""
        if not self.info.asks_target and not ctx.names_backend:
            return None
        return _approval(ctx, makes_integers=bool(self.info.quantization))

    def _graphs(self, model: Model, execution: Execution, run: PassRun) -> list[Graph]:
        """Return the graphs that meet the condition of the pass."""
        ready = []
        for graph in model.graphs():
            skip = self.conditions.skip_of(graph, execution.ctx, self.name)
            if skip is None:
                ready.append(graph)
            else:
                run.note("missed", skip)
        return ready


def _filter(allows: Allows) -> Callable[[Match], Skip | None]:
    return lambda match: None if all(map(allows, match.nodes)) else OUTSIDE


def _refusal(backend: Backend | AnyRuntime, graph: Graph, op_type: str, domain: str) -> str | None:
    """Return why a target has no operator, in the words of `_approval`; None if it may have it."""
    if backend.supports(op_type, domain):
        return None
    if graph.model.function(domain, op_type) is not None:
        return None
    reason = in_newer_opset(op_type, graph.opset()) or NO_OPERATOR
    return f"{backend} does not take {op_type}: {reason}"


def _approval(
    ctx: PassContext, *, makes_integers: bool
) -> Callable[[Sequence[Entry]], Skip | None]:
    """Return a check of the operators that a rewrite made against the target's table.

    The target must support the exact form of an operator from outside ONNX, of one at an older
    opset than ONNX has it, and of an integer one that replaces a float one. It must have every
    other operator, unless it lacked a removed one. Calls of local functions are none of these.
    """
    backend = ctx.target

    def replaces_slow(edits: Sequence[Entry]) -> bool:
        removed = (entry[1] for entry in edits if entry[0] is Edit.REMOVE_NODE)
        return any(backend.may_be_slow(node.op_type, node.domain) for node in removed)

    def is_first_early(node: Node, edits: Sequence[Entry]) -> bool:
        if not node.is_early:
            return False
        removed = (entry[1] for entry in edits if entry[0] is Edit.REMOVE_NODE)
        return not any(other.is_op(node.op_type) for other in removed)

    def approve(edits: Sequence[Entry]) -> Skip | None:
        for edit, node, *_ in edits:
            if edit is not Edit.ADD_NODE or not node.is_live:
                continue
            if node.owner.model.function(*node.callee) is not None:
                continue  # a call: the function was there before
            is_new = bool(node.domain) or makes_integers or is_first_early(node, edits)
            if is_new and (refused := backend.refusals(node)):
                reason = refused[0]
                if reason == NO_OPERATOR:
                    reason = newer_operator(node) or reason
                return Skip("{} does not take {}: {}", backend, node.op_type, reason)
            if is_new and backend.runs_slowly(node) and not replaces_slow(edits):
                return Skip("{} is slower than its parts for this dtype", node.op_type)
            if not backend.has(node) and all(
                backend.has(entry[1]) for entry in edits if entry[0] is Edit.REMOVE_NODE
            ):
                return Skip("{} has no {}, and has what it would replace", backend, node.op_type)
        return None

    return approve
