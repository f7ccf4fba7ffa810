"""Running a pass: decide, dependencies, hooks, transaction, follow-ups.

The one way in which passes run, for a direct call, inside a pipeline and as a dependency alike.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from tiered.context import LISTENER, PassContext
from tiered.errors import PassError, PostconditionError, PreconditionError, TieredError
from tiered.graph import Model, RewriteRecord, Stamp
from tiered.graph.core.provenance import write_origins
from tiered.instruments.hooks import Watch
from tiered.passes.history import memory_of
from tiered.passes.interrupts import interrupted_between_edits
from tiered.passes.pass_info import Decision, HeldCheck, PassResult, Place
from tiered.passes.planned import Case, Settings
from tiered.passes.run import PassRun

if TYPE_CHECKING:
    from tiered.passes.pass_info import Runnable

NOTHING: tuple[str, ...] = ()


class Places(Protocol):
    """A pipeline, as the execution uses it."""

    def places(self, place: Place, /) -> Iterator[tuple[Runnable, Place]]: ...


_LOG = logging.getLogger("tiered")


def execute(pass_: Runnable, model: Model, ctx: PassContext, place: Place) -> None:
    """Run a pass on a model; if that raises, the model is as it was, whatever had been done.

    Raises:
        PassError: the pass, or one that it runs, raised.
        TieredError: a check or verification failed, or something was used wrongly.
    """
    is_bare = not PassContext.is_active()
    with (
        interrupted_between_edits() as obey,
        _entered(ctx) as context,
        _limited(model, context),
        model.transaction(),
    ):
        Execution(model, context).execute(pass_, place)
        if context.config["provenance.metadata"] and not pass_.info.analysis:
            write_origins(model)
        obey()
    if is_bare and not (last := ctx.report.results[-1]).ran:
        # Nobody holds this context, so nobody could ask it why nothing happened.
        _LOG.warning("%s did not run: %s (`.apply` runs it anyway)", last.text, last.reason)


@contextmanager
def _entered(ctx: PassContext) -> Iterator[PassContext]:
    """Make the context the one that holds, if it is not."""
    if PassContext.is_active() and PassContext.current() is ctx:
        yield ctx
    else:
        with ctx:
            yield ctx


@contextmanager
def _limited(model: Model, ctx: PassContext) -> Iterator[None]:
    """Let no rewrite through after the last one that the context allows."""
    before = model.gate.limit
    if ctx.rewrite_limit is not None:
        model.gate.limit = ctx.rewrite_limit
    try:
        yield
    finally:
        model.gate.limit = before


class Execution:
    """One outermost call: the passes that it runs share model, context and watchers."""

    def __init__(self, model: Model, ctx: PassContext) -> None:
        self.model = model
        self.ctx = ctx
        self.memory = memory_of(model)
        self.watch = Watch(ctx.watchers, model)
        self._reports = [context.report for context in ctx.chain]
        self._following: list[str] = []
        # By the identities of a pass and its place, both of which a case keeps alive.
        self._cases: dict[tuple[int, int], Case] = {}
        self._places: dict[tuple[int, int], tuple[Place, Sequence[tuple[Runnable, Place]]]] = {}
        # The moment at which a pipeline at its place had nothing left to do; its places, which are
        # kept under the same key, keep the identities alive.
        self._settled: dict[tuple[int, int], Stamp] = {}
        config = tuple(sorted((key, repr(value)) for key, value in ctx.config_set.items()))
        self._checks_view = ctx.config["debug.check_view"]
        # The default backend is always the same, and takes longer to read than many a pass to run.
        backend = ctx.backend.digest if ctx.names_backend else ""
        self._settings = Settings(ctx.opt_level, backend, config)

    def execute(self, pass_: Runnable, place: Place) -> tuple[str, ...]:
        """Run a pass if the context says so; return the names of the passes that changed something.

        Whether the context says so is asked once for a pass at a place.

        Raises:
            PassError: a pass raised.
            TieredError: a check or verification failed, or something was used wrongly.
        """
        key = id(pass_), id(place)
        case = self._cases.get(key)
        if case is None:
            decision = self.ctx.decide(pass_, place)
            case = self._cases[key] = Case.of(pass_, place, decision, self._settings)
        changed: list[str] = []
        decision = self._decide(case, changed)
        if not decision:
            self.watch.skipped(pass_.info, decision)
            self._record(case.result(self.memory, ran=False, reason=decision.reason))
            return tuple(changed)
        own = self._attempt(case)
        followers = self._run_followers(case) if own else NOTHING
        return (*changed, *own, *followers)

    def places(self, pipeline: Places, place: Place) -> Sequence[tuple[Runnable, Place]]:
        """Return each pass of a pipeline with where it stands: the same places at every turn."""
        key = id(pipeline), id(place)
        known = self._places.get(key)
        if known is None:
            # The place is kept with them, as nothing else may have its identity.
            known = self._places[key] = place, tuple(pipeline.places(place))
        return known[1]

    def settle(self, pipeline: Places, place: Place) -> None:
        """Note that a pipeline leaves the model as it is now unchanged."""
        self._settled[id(pipeline), id(place)] = self.model.journal.stamp()

    def is_settled(self, pipeline: Places, place: Place) -> bool:
        """Return whether nothing moved since a pipeline had nothing left to do."""
        stamp = self._settled.get((id(pipeline), id(place)))
        return stamp is not None and not self.model.journal.moved_since(stamp)

    def _decide(self, case: Case, changed: list[str]) -> Decision:
        """Return whether a pass runs now; what it requires did, and `changed` has who did what."""
        decision = case.decision
        if decision and self.watch.is_needed:
            refused = self.watch.veto(case.pass_.info)
            if refused is not None:
                return Decision(False, f"instrument {refused} said no")
        if decision and case.required:
            missing = self._run_dependencies(case, changed)
            if missing:
                return Decision(False, f"needs {missing}, which did not run to its end")
        return decision

    def _run_dependencies(self, case: Case, changed: list[str]) -> str:
        """Run what a pass requires, where the model moved since that last ran.

        Returns:
            the name of the one that did not run, if any; `changed` gets who changed something.
        """
        for needed, place in case.required:
            ended = self.memory.ended.get(needed.text)
            if ended is not None and not self.model.journal.moved_since(ended):
                continue
            changed += self.execute(needed, place)
            if self.memory.ended.get(needed.text) is ended:
                return needed.name
        return ""

    def _run_followers(self, case: Case) -> tuple[str, ...]:
        """Run what follows a pass that changed something; never a pass inside its own following."""
        changed = NOTHING
        self._following.append(case.pass_.name)
        try:
            for follower, place in case.followers:
                if follower.name not in self._following:
                    changed += self.execute(follower, place)
        finally:
            self._following.pop()
        return changed

    # --- one pass ---------------------------------------------------------------------------------

    def _attempt(self, case: Case) -> tuple[str, ...]:
        """Run a pass as a transaction and record what came of it; return who changed the model."""
        memory, journal, gate = self.memory, self.model.journal, self.model.gate
        started = time.perf_counter()
        if not self.watch.is_needed and self._is_idle(case):
            memory.ended[case.pass_.text] = journal.stamp()
            self._record(case.result(memory, seconds=time.perf_counter() - started))
            return NOTHING
        run = PassRun(case.pass_, case.place, allows=case.allows)
        before, rewrites, made_before = journal.stamp(), gate.count, len(memory.changed_by)
        try:
            self._transact(case, run)
        except BaseException as error:
            del memory.changed_by[made_before:]
            seconds = time.perf_counter() - started
            said = f"{type(error).__name__}: {error}"
            try:
                self._record(case.result(memory, seconds=seconds, error=said))
            except TieredError as late:
                error.add_note(f"and in a hook that was told of it: {late}")
            if self.ctx.on_error == "raise" or not isinstance(error, Exception):
                raise
            return NOTHING
        seconds = time.perf_counter() - started
        changed = journal.moved_since(before)
        memory.ended[case.pass_.text] = journal.stamp()
        if changed and case.pass_.info.kind != "pipeline":
            run.changed.append(case.pass_.name)
            memory.changed_by.append(case.pass_.name)
        self._record(
            case.result(
                memory,
                changed=changed,
                rewrites=gate.count - rewrites,
                edits=len(journal) - before.length,
                seconds=seconds,
                **run.notes(),
            )
        )
        return tuple(run.changed)

    def _transact(self, case: Case, run: PassRun) -> None:
        """Run a pass between its hooks; if it or one of them raises, the model is as it was."""
        info, journal = case.pass_.info, self.model.journal
        waiting, before = self.watch.before(info), journal.stamp()
        try:
            if info.kind == "pipeline":
                case.pass_.run(self.model, self, run)
            else:
                self._run_leaf(case, run)
                if case.place.checks and journal.moved_since(before):
                    self.check(case.place.checks, PostconditionError, f"after {case.pass_}")
            told, waiting = waiting, []
            self.watch.after(info, told)
        except BaseException as error:
            journal.undo_to(before.length)
            self.watch.failed(info, waiting, error)
            raise

    def _is_idle(self, case: Case) -> bool:
        """Tell whether nothing that a pass works on is there, or moved since it last looked."""
        looked, journal = self.memory.looked, self.model.journal
        last = None if case.key is None else looked.get(case.key)
        if last is not None and not journal.moved_since(last):
            return True
        if self._checks_view or case.pass_.may_act(self.model):
            return False
        journal.note_touched()
        if case.key is not None:
            looked[case.key] = journal.stamp()
        return True

    def _run_leaf(self, case: Case, run: PassRun) -> None:
        """Run a pass that is no pipeline; where somebody watches, unless it has nothing to do."""
        if self.watch.is_needed and self._is_idle(case):
            return
        pass_, journal, gate = case.pass_, self.model.journal, self.model.gate
        run.looked = self.memory.looked.get(case.key)
        before, refused, around = journal.stamp(), gate.refused, gate.pass_name
        listen = self._listener(run)
        gate.pass_name, gate.at = pass_.name, ""
        around_mark, gate.on_mark = gate.on_mark, run.marked
        gate.listeners.append(listen)
        token = LISTENER.set(run)
        try:
            pass_.run(self.model, self, run)
            if pass_.info.analysis and journal.moved_since(before):
                raise PassError(f"{pass_.name} is an analysis, but it edited the model")
            if self._checks_view:
                self.model.check_view(types=True)
        except TieredError as error:
            error.add_note(f"in pass {pass_}{self._history()}")
            raise
        except Exception as error:
            raise self._blamed(pass_, error) from error
        finally:
            LISTENER.reset(token)
            gate.listeners.remove(listen)
            gate.pass_name, gate.on_mark = around, around_mark
        journal.note_touched()
        if case.key is None:
            return
        # A rule leaves nothing to do for itself; a function may find more in what it made.
        is_done = pass_.info.kind == "rewrite" or not journal.moved_since(before)
        if is_done and gate.refused == refused and gate.is_open:
            self.memory.looked[case.key] = journal.stamp()
        else:
            self.memory.looked.pop(case.key, None)

    def _listener(self, run: PassRun) -> Callable[[RewriteRecord], None]:
        """Return what notes the rewrites of a pass, and tells the instruments that want to know."""
        info, tells = run.pass_.info, self.watch.wants_rewrites

        def listen(record: RewriteRecord) -> None:
            run.applied.append((record.node_name, record.law))
            if tells:
                self.watch.rewrote(info, record)

        return listen

    def _blamed(self, pass_: Runnable, error: Exception) -> PassError:
        """Return the error that names the pass, the rewrite, and what ran before."""
        gate = self.model.gate
        if not isinstance(error, MemoryError | RecursionError):
            complaint = self.model.complaint_as_loaded()
            if complaint is not None:
                return PreconditionError(
                    f"{self.model.label} is not a valid model, and {pass_} cannot work on it: "
                    f"{complaint}"
                )
        where = f"rewrite #{gate.count + 1}" + (f", node {gate.at!r}," if gate.at else "")
        return PassError(
            f"{pass_} failed at {where} of {self.model.label}: "
            f"{type(error).__name__}: {error}{self._history()}"
        )

    def check(self, checks: Iterable[HeldCheck], kind: type[PassError], when: str) -> None:
        """Ask checks about the model; those that are suppressed only say so.

        Raises:
            PassError: of the given kind: one failed.
        """
        for check in checks:
            try:
                check.hold(self.model, kind, when)
            except PassError as error:
                if not check.suppressed:
                    error.add_note(self._history().strip() or "changed before it by no pass")
                    raise
                text = f"{error} (suppressed)"
                for report in self._reports:
                    report.note("check", text)
                _LOG.warning("%s", text)

    def _history(self) -> str:
        made = list(dict.fromkeys(self.memory.changed_by))
        return f"\n  changed before it by {', '.join(made)}" if made else ""

    def _record(self, result: PassResult) -> None:
        for report in self._reports:
            report.results.append(result)
        self.watch.result(result)
