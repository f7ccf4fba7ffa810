"""One run of one pass as a transaction: its hooks, its undo, its errors and its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType

from tiered.context import LISTENER, PassContext
from tiered.graph import Model, RewriteRecord
from tiered.passes.interface.hooks import Watch, Watcher
from tiered.passes.interface.pass_info import PassResult
from tiered.passes.pass_run import PassRun, memory_of
from tiered.passes.planned import PlannedPass
from tiered.support.errors import (
    CycleError,
    OperatorError,
    PassError,
    PreconditionError,
    TieredError,
)
from tiered.support.memory_limit import check_memory

NOTHING: tuple[str, ...] = ()


class RunState:
    """The state of one outermost call: model, context, watchers and reports."""

    def __init__(self, model: Model, ctx: PassContext) -> None:
        self.model = model
        self.ctx = ctx
        self.memory = memory_of(model)
        self.watch = Watch(ctx.watchers, model)
        self.reports = [context.report for context in ctx.chain]
        self.checks_view = ctx.config["debug.check_view"]

    def record(self, result: PassResult) -> None:
        """Report the outcome of one decision to all contexts and instruments."""
        for report in self.reports:
            report.results.append(result)
        self.watch.result(result)

    @property
    def history(self) -> str:
        """The passes that changed the model so far, as the last line of an error."""
        made = list(dict.fromkeys(self.memory.changed_by))
        return f"\n  changed before it by {', '.join(made)}" if made else ""


class Transaction:
    """One run of a pass: announced to hooks, undone if it fails, and recorded.

    Plain calls in a `try` block, so that it adds no frame to the stack trace of a failing pass.
    """

    def __init__(self, state: RunState, planned: PlannedPass, started: float) -> None:
        model = state.model
        self.run = PassRun(planned.pass_, planned.place, allows=planned.allows)
        self._state = state
        self._planned = planned
        self._started = started
        self._before = model.journal.stamp()
        self._rewrites = model.gate.count
        self._changed_before = len(state.memory.changed_by)
        self._announced: Sequence[Watcher] = ()

    @property
    def has_edits(self) -> bool:
        """Whether the model changed since the beginning."""
        return self._state.model.journal.moved_since(self._before)

    def begin(self) -> None:
        """Announce the run to the hooks.

        Raises:
            MemoryLimitError: the run holds more memory than it may.
        """
        check_memory()
        self._announced = self._state.watch.before(self._planned.pass_.info)

    def end(self) -> None:
        """Announce the end of the run; a hook that raises fails it."""
        announced, self._announced = self._announced, ()
        self._state.watch.after(self._planned.pass_.info, announced)

    def commit(self) -> tuple[str, ...]:
        """Record the run as done; return the names of the passes that changed the model."""
        state, planned, run = self._state, self._planned, self.run
        seconds, changed = time.perf_counter() - self._started, self.has_edits
        model, memory = state.model, state.memory
        memory.ended[planned.pass_.text] = model.journal.stamp()
        if changed and planned.pass_.info.kind != "pipeline":
            run.changed.append(planned.pass_.name)
            memory.changed_by.append(planned.pass_.name)
        state.record(
            planned.result(
                memory,
                changed=changed,
                rewrites=model.gate.count - self._rewrites,
                edits=len(model.journal) - self._before.length,
                seconds=seconds,
                **run.notes(),
            )
        )
        return tuple(run.changed)

    def roll_back(self, error: BaseException) -> bool:
        """Undo the run and record its failure; return whether the context skips such errors."""
        state, planned = self._state, self._planned
        seconds = time.perf_counter() - self._started
        state.model.journal.undo_to(self._before.length)
        del state.memory.changed_by[self._changed_before :]
        state.watch.failed(planned.pass_.info, self._announced, error)
        text = f"{type(error).__name__}: {error}"
        try:
            state.record(planned.result(state.memory, seconds=seconds, error=text))
        except TieredError as late:
            error.add_note(f"and a hook raised after that: {late}")
        return isinstance(error, Exception) and state.ctx.on_error != "raise"


class EditScope:
    """The block in which a pass that is no pipeline edits the model.

    The gate, the context and the notes of nodes belong to the pass within the block, and an error
    that leaves it names the pass, the rewrite, and the passes that changed the model before.
    """

    def __init__(self, state: RunState, planned: PlannedPass, run: PassRun) -> None:
        self._state = state
        self._planned = planned
        self._run = run

    def __enter__(self) -> EditScope:
        state, run = self._state, self._run
        journal, gate = state.model.journal, state.model.gate
        run.looked = state.memory.looked.get(self._planned.key)
        self._before, self._refused = journal.stamp(), gate.refused
        self._outer = gate.pass_name, gate.on_mark
        self._listen = _listener(state, run)
        gate.pass_name, gate.at, gate.on_mark = run.pass_.name, "", run.marked
        gate.listeners.append(self._listen)
        self._token = LISTENER.set(run)
        return self

    def check(self) -> None:
        """Check what every pass promises of its edits.

        Raises:
            PassError: an analysis edited the model, or with `debug.check_view` the view is wrong.
            CycleError: the pass made a cycle.
        """
        pass_, model = self._run.pass_, self._state.model
        is_edited = model.journal.moved_since(self._before)
        if pass_.info.analysis and is_edited:
            raise PassError(f"{pass_.name} is an analysis, but it edited the model")
        if is_edited and not pass_.info.is_built_in:
            check_acyclic(model)
        if self._state.checks_view:
            model.check_view(types=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        state, pass_ = self._state, self._run.pass_
        named = None
        if isinstance(error, CycleError) and state.model.journal.moved_since(self._before):
            named = PassError(f"{pass_} failed on {state.model.label}: {error}{state.history}")
        elif isinstance(error, TieredError) and not isinstance(error, OperatorError):
            error.add_note(f"in pass {pass_}{state.history}")
        elif error is not None and not isinstance(error, KeyboardInterrupt):
            named = self._named(error)
        LISTENER.reset(self._token)
        gate = state.model.gate
        gate.listeners.remove(self._listen)
        gate.pass_name, gate.on_mark = self._outer
        if named is not None and named is not error:
            raise named from error
        if error is None:
            self._note_looked()

    def _note_looked(self) -> None:
        """Remember the moment up to which the pass found nothing more to do."""
        journal, gate = self._state.model.journal, self._state.model.gate
        looked, key = self._state.memory.looked, self._planned.key
        journal.note_touched()
        if key is None:
            return
        # A rule runs until it matches nowhere; a function may find more in its own results.
        is_rule = self._run.pass_.info.kind == "rewrite"
        is_done = is_rule or not journal.moved_since(self._before)
        if is_done and gate.refused == self._refused and gate.is_open:
            looked[key] = journal.stamp()
        else:
            looked.pop(key, None)

    def _named(self, error: BaseException) -> PassError:
        """Return an error that names the pass, the rewrite, and the passes before it."""
        model, pass_ = self._state.model, self._run.pass_
        if not isinstance(error, MemoryError | RecursionError | TimeoutError):
            complaint = model.complaint_as_loaded()
            if complaint is not None:
                return PreconditionError(
                    f"{model.label} is not a valid model, and {pass_} cannot work on it: "
                    f"{complaint}"
                )
        if isinstance(error, OperatorError):
            error.add_note(f"in pass {pass_}{self._state.history}")
            return error
        gate = model.gate
        where = f"rewrite #{gate.count + 1}" + (f", node {gate.at!r}," if gate.at else "")
        return PassError(
            f"{pass_} failed at {where} of {model.label}: "
            f"{type(error).__name__}: {error}{self._state.history}"
        )


def check_acyclic(model: Model) -> None:
    """Raise if a graph has a cycle.

    Raises:
        CycleError: it has.
    """
    for graph in model.graphs():
        graph.topological_order()


def _listener(state: RunState, run: PassRun) -> Callable[[RewriteRecord], None]:
    """Return a function that notes the rewrites of a pass and informs the instruments of them."""
    info, informs = run.pass_.info, state.watch.wants_rewrites

    def listen(record: RewriteRecord) -> None:
        run.applied.append((record.node_name, record.law))
        if informs:
            state.watch.rewrote(info, record)

    return listen
