"""The kinds of passes: a rewrite rule, a function of each graph, of the model, of the proto."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

from tiered.backends.standard import NO_OPERATOR, newer_operator
from tiered.graph import Graph, Model
from tiered.graph.core.journal import Edit, Entry
from tiered.graph.core.marks import is_left_alone, mark_against_edits
from tiered.passes.base import Pass
from tiered.passes.conditions import NO_CONDITIONS, Conditions
from tiered.passes.pass_info import PassInfo
from tiered.passes.run import Allows, PassRun
from tiered.passes.scope_guard import OUTSIDE, Inside, scoped
from tiered.rewriter import Match, Rule, Skip, apply_rule

if TYPE_CHECKING:
    from tiered.context import PassContext
    from tiered.passes.execution import Execution


Operators = tuple[frozenset[tuple[str, str]], ...]
"""Sets of operators as (domain, op type)."""


class Body:
    """The implementation of a pass: its rule or function, and its conditions.

    Args:
        work: the rule or the function.
        conditions: its preconditions and postconditions.
        looks_for: operators, as "Conv" and "com.microsoft::BiasGelu": a model without any of
            them has no work for the function. Empty if that is not known.
    """

    def __init__(
        self,
        work: Any,
        conditions: Conditions = NO_CONDITIONS,
        looks_for: Iterable[str] = (),
    ) -> None:
        self._work = work
        self.conditions = conditions
        self._looks_for = tuple(looks_for)

    @property
    def work(self) -> Any:
        """The rule or the function."""
        return self._work

    @cached_property
    def operators(self) -> Operators | None:
        """Alternatives of required operators: a model has work only if it contains all of one set.

        None if every model may have work, as with conditions, which are always checked.
        """
        if self.conditions:
            return None
        if isinstance(self.work, Rule):
            return self.work.operators
        return tuple(frozenset({key_of(name)}) for name in self._looks_for) or None

    def may_act(self, model: Model) -> bool:
        """Return whether a model, its bodies and local functions may have work for the pass."""
        if self.operators is None:
            return True
        present = model.analysis(operators_in)
        return any(needed <= present for needed in self.operators)


def operators_in(model: Model) -> frozenset[tuple[str, str]]:
    """Return the operators of a model, of its bodies and of its local functions."""
    graphs = model.graphs()
    return frozenset(key for graph in graphs for key, nodes in graph._by_op.items() if nodes)


def key_of(name: str) -> tuple[str, str]:
    """Return (domain, op type) of an operator as it is written: "com.microsoft::BiasGelu"."""
    domain, _, op_type = name.rpartition("::")
    return domain, op_type


class BodyPass(Pass):
    """A pass with a body, which may be loaded at its first run."""

    body: Body

    def __init__(self, *, info: PassInfo, options: Mapping[str, Any], body: Body) -> None:
        super().__init__(info=info, options=options)
        vars(self).update(body=body)

    @property
    def conditions(self) -> Conditions:
        """The conditions of the pass."""
        return self.body.conditions

    def may_act(self, model: Model) -> bool:
        """Return whether the model has the operators that the pass looks for."""
        return self.body.may_act(model)


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
        apply_rule(
            self.rule,
            model,
            self.options,
            graphs=graphs,
            # A graph may have failed the condition before, so all of it is new.
            since=run.looked if graphs is None else None,
            on_skip=run.missed,
            accept=None if run.allows is None else _filter(run.allows),
            approve=self.approval(execution.ctx),
        )
        for graph in filter(_is_attached, graphs or ()):
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


def _approval(
    ctx: PassContext, *, makes_integers: bool
) -> Callable[[Sequence[Entry]], Skip | None]:
    """Return a check of the operators that a rewrite made against the target's table.

    The target must support the exact form of an operator from outside ONNX, and of an integer one
    that replaces a float one. It must have every other operator, unless it lacked a removed one.
    """
    backend = ctx.target

    def replaces_slow(edits: Sequence[Entry]) -> bool:
        removed = (entry[1] for entry in edits if entry[0] is Edit.REMOVE_NODE)
        return any(backend.may_be_slow(node.op_type, node.domain) for node in removed)

    def approve(edits: Sequence[Entry]) -> Skip | None:
        for edit, node, *_ in edits:
            if edit is not Edit.ADD_NODE or not node.is_live:
                continue
            is_new = bool(node.domain) or makes_integers
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


class CallingPass(BodyPass):
    """A pass that calls a function."""

    @property
    def function(self) -> Callable[..., Any]:
        """The function of the graph, the model or the proto, the context and the options."""
        function: Callable[..., Any] = self.body.work
        return function


class FunctionPass(CallingPass):
    """A function of one graph, called with each: the main graph, bodies, local functions."""

    def run(self, model: Model, execution: Execution, run: PassRun) -> None:
        """Call the function with every graph that is still in the model by then."""
        ctx = execution.ctx
        with scoped(model, run) as inside:
            for graph in tuple(model.graphs()):
                if not _is_attached(graph):
                    continue
                if is_left_alone(graph):
                    run.note("missed", Skip("the function is marked to be left alone"))
                    continue
                with as_single_rewrite(self, graph, run, inside):
                    call = partial(self.function, graph, ctx, **self.options)
                    run.returned(self.conditions.around(call, graph, ctx, self.name), graph)


class ModulePass(CallingPass):
    """A function of the whole model."""

    def run(self, model: Model, execution: Execution, run: PassRun) -> None:
        """Call the function with the model."""
        ctx = execution.ctx
        with as_single_rewrite(self, model.main, run, None):
            call = partial(self.function, model, ctx, **self.options)
            run.returned(self.conditions.around(call, model, ctx, self.name), model)


def _is_attached(graph: Graph) -> bool:
    """Return whether a graph is still part of its model."""
    around = graph
    while around.owner is not None:
        if around.owner.graph is None:
            return False
        around = around.owner.graph
    return around is graph.model.main or around in graph.model.functions


@contextmanager
def as_single_rewrite(
    pass_: Pass, graph: Graph, run: PassRun, inside: Inside | None
) -> Iterator[None]:
    """Count the block as one rewrite, unless it counts its own with `graph.rewrite`.

    It is undone beyond the limit of rewrites, and if it edits nodes outside the scope.
    """
    model, gate = graph.model, graph.model.gate
    mark, count = model.mark(), gate.count
    yield
    edits = model.journal.since(mark)
    if not edits:
        return
    if inside is not None and not inside.holds_all(edits):
        model.undo_to(mark)
        run.note("missed", OUTSIDE)
    elif gate.count == count and not pass_.info.analysis:
        marked = mark_against_edits(edits)
        if marked:
            model.undo_to(mark)
            run.note("missed", Skip(marked))
            return
        if gate.lets(graph.name):
            gate.passed(graph, pass_.info.law or pass_.name, "", edits)
        else:
            model.undo_to(mark)
            gate.refuse()
