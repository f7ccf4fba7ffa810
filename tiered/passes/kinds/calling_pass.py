"""Passes that call a function: with each graph, or with the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from tiered.graph import Graph, Model
from tiered.graph.core.marks import is_left_alone, mark_against_edits
from tiered.graph.queries.attached import is_attached
from tiered.passes.base import Pass
from tiered.passes.kinds.body import BodyPass
from tiered.passes.pass_run import PassRun
from tiered.passes.scope_guard import OUTSIDE, Inside, scoped
from tiered.rewriter import Skip

if TYPE_CHECKING:
    from tiered.passes.execution import Execution


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
                if not is_attached(graph):
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
