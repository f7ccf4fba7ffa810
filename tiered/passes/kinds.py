"""The kinds of passes: a rewrite rule, a function of each graph, of the model, of the proto."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tiered.graph import Edit, Graph, Model, Node
from tiered.graph.journal import Entry
from tiered.passes.base import Pass
from tiered.passes.recording import Allows, PassRun
from tiered.rewrite import Match, Rule, Skip, apply_rule

if TYPE_CHECKING:
    from tiered.passes.execution import Execution

OUTSIDE = Skip("not wholly inside the scope")


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class RewritePass(Pass):
    """One rule, wherever its pattern matches, until it matches nowhere any more."""

    rule: Rule

    def run(self, model: Model, execution: Execution, run: PassRun) -> None:
        """Apply the rule to what was edited since it last looked."""
        apply_rule(
            self.rule,
            model,
            self.options,
            since=run.looked,
            on_skip=run.missed,
            accept=None if run.allows is None else _filter(run.allows),
        )


def _filter(allows: Allows) -> Callable[[Match], Skip | None]:
    return lambda match: None if all(map(allows, match.nodes)) else OUTSIDE


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FunctionPass(Pass):
    """A function of one graph, called with each: the main graph, bodies, local functions."""

    function: Callable[..., Any]

    def run(self, model: Model, execution: Execution, run: PassRun) -> None:
        """Call the function with every graph that is still there when its turn comes."""
        for graph in tuple(model.graphs()):
            if not _is_attached(graph):
                continue
            with one_rewrite(self, graph, run):
                outcome = self.function(graph, execution.ctx, **self.options)
                run.returned(outcome, graph)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ModulePass(Pass):
    """A function of the whole model."""

    function: Callable[..., Any]

    def run(self, model: Model, execution: Execution, run: PassRun) -> None:
        """Call the function with the model."""
        with one_rewrite(self, model.main, run):
            outcome = self.function(model, execution.ctx, **self.options)
            run.returned(outcome, model)


def _is_attached(graph: Graph) -> bool:
    """Tell whether a graph is still part of its model."""
    around = graph
    while around.owner is not None:
        if around.owner.graph is None:
            return False
        around = around.owner.graph
    return around is graph.model.main or around in graph.model.functions


@contextmanager
def one_rewrite(pass_: Pass, graph: Graph, run: PassRun) -> Iterator[None]:
    """Make the block one numbered rewrite, unless it numbers its own with `graph.rewrite`.

    It is undone beyond the limit, and where it reaches out of the scope.
    """
    model, gate = graph.model, graph.model.gate
    mark, count, first_new = model.mark(), gate.count, model.peek_serial()
    yield
    edits = model.journal.since(mark)
    if not edits:
        return
    if run.allows is not None and not _is_inside(edits, run.allows, first_new):
        model.undo_to(mark)
        run.say("missed", OUTSIDE)
    elif gate.count == count and not pass_.info.analysis:
        if gate.is_open:
            gate.passed(graph, pass_.info.law or pass_.name, "", edits)
        else:
            model.undo_to(mark)
            gate.refuse()


def _is_inside(edits: Sequence[Entry], allows: Allows, first_new: int) -> bool:
    """Tell whether edits touch only nodes that are new or inside, and readers of such nodes."""
    for edit, subject, *rest in edits:
        if not isinstance(subject, Node) or subject.id >= first_new or allows(subject):
            continue
        producer = rest[1].producer if edit is Edit.SET_INPUT and rest[1] is not None else None
        if producer is None or not (producer.id >= first_new or allows(producer)):
            return False
    return True
