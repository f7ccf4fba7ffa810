"""Running a pass: decide, dependencies, hooks, transaction, follow-ups.

The one way in which passes run, for a direct call, inside a pipeline and as a dependency alike.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from tiered.context import LISTENER, PassContext
from tiered.control.checks import Check
from tiered.control.decision import Decision, Place
from tiered.control.hooks import Watch
from tiered.control.report import PassResult
from tiered.errors import PassError, PostconditionError, PreconditionError, TieredError
from tiered.graph import Model, Node, RewriteRecord
from tiered.graph.provenance import write_origins
from tiered.graph.validity import complaint_about
from tiered.passes.interrupts import interrupted_between_edits
from tiered.passes.memory import memory_of
from tiered.passes.recording import PassRun
from tiered.passes.scoped import Allows
from tiered.registry import registry

if TYPE_CHECKING:
    from tiered.passes.base import Pass

NOTHING: tuple[str, ...] = ()
_LOG = logging.getLogger("tiered")


def execute(pass_: Pass, model: Model, ctx: PassContext, place: Place) -> None:
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
        settings = tuple(sorted((key, repr(value)) for key, value in ctx.config_set.items()))
        self._checks_view = ctx.config["debug.check_view"]
        # The default backend is always the same, and takes longer to read than many a pass to run.
        backend = ctx.backend.digest if ctx.names_backend else ""
        self._settings = (ctx.opt_level, backend, settings)

    def execute(self, pass_: Pass, place: Place) -> tuple[str, ...]:
        """Run a pass if the context says so; return the names of the passes that changed something.

        Raises:
            PassError: a pass raised.
            TieredError: a check or verification failed, or something was used wrongly.
        """
        decision, changed = self._decide(pass_, place), list[str]()
        if decision and (missing := self._run_dependencies(pass_, place, changed)):
            decision = Decision(False, f"needs {missing}, which did not run to its end")
        if not decision:
            self.watch.skipped(pass_.info, decision)
            self._record(
                PassResult(
                    pass_.info,
                    pass_.text,
                    False,
                    decision.reason,
                    needed_by=place.needed_by,
                    model=self.memory.serial,
                )
            )
            return tuple(changed)
        own = self._attempt(pass_, place, decision)
        followers = self._run_followers(pass_, place) if own else NOTHING
        return (*changed, *own, *followers)

    def _decide(self, pass_: Pass, place: Place) -> Decision:
        decision = self.ctx.decide(pass_, place)
        if decision and (refused := self.watch.veto(pass_.info)) is not None:
            return Decision(False, f"instrument {refused} said no")
        return decision

    def _run_dependencies(self, pass_: Pass, place: Place, changed: list[str]) -> str:
        """Run what the pass requires, where the model moved since that last ran.

        Returns:
            the name of the one that did not run, if any; `changed` gets who changed something.
        """
        for name in pass_.info.required:
            needed = registry.load(name)
            ended = self.memory.ended.get(needed.text)
            if ended is not None and not self.model.journal.moved_since(ended):
                continue
            changed += self.execute(needed, place.beside(pass_.name))
            if self.memory.ended.get(needed.text) is ended:
                return needed.name
        return ""

    def _run_followers(self, pass_: Pass, place: Place) -> tuple[str, ...]:
        """Run what follows a pass that changed something; never a pass inside its own following."""
        changed = NOTHING
        self._following.append(pass_.name)
        try:
            for name in pass_.info.followed_by:
                follower = registry.load(name)
                if follower.name not in self._following:
                    changed += self.execute(follower, place.beside(pass_.name))
        finally:
            self._following.pop()
        return changed

    # --- one pass ---------------------------------------------------------------------------------

    def _attempt(self, pass_: Pass, place: Place, decision: Decision) -> tuple[str, ...]:
        """Run a pass as a transaction and record what came of it; return who changed the model."""
        memory, journal, gate = self.memory, self.model.journal, self.model.gate
        run = PassRun(pass_, place, allows=_allows(pass_, decision))
        before, length, rewrites = journal.stamp(), len(journal), gate.count
        made_before, started = len(memory.changed_by), time.perf_counter()
        result = partial(
            PassResult,
            pass_.info,
            pass_.text,
            True,
            decision.reason,
            needed_by=place.needed_by,
            model=memory.serial,
        )
        try:
            self._transact(run, decision)
        except BaseException as error:
            del memory.changed_by[made_before:]
            seconds = time.perf_counter() - started
            try:
                self._record(result(seconds=seconds, error=f"{type(error).__name__}: {error}"))
            except TieredError as late:
                error.add_note(f"and in a hook that was told of it: {late}")
            if self.ctx.on_error == "raise" or not isinstance(error, Exception):
                raise
            return NOTHING
        seconds = time.perf_counter() - started
        changed = journal.moved_since(before)
        memory.ended[pass_.text] = journal.stamp()
        if changed and pass_.info.kind != "pipeline":
            run.changed.append(pass_.name)
            memory.changed_by.append(pass_.name)
        self._record(
            result(
                changed=changed,
                rewrites=gate.count - rewrites,
                edits=len(journal) - length,
                seconds=seconds,
                **run.notes(),
            )
        )
        return tuple(run.changed)

    def _transact(self, run: PassRun, decision: Decision) -> None:
        """Run a pass between its hooks; if it or one of them raises, the model is as it was."""
        info, journal = run.pass_.info, self.model.journal
        waiting = self.watch.before(info)
        try:
            with self.model.transaction():
                before = journal.stamp()
                if info.kind == "pipeline":
                    run.pass_.run(self.model, self, run)
                else:
                    self._run_leaf(run, decision)
                if run.place.checks and info.kind != "pipeline" and journal.moved_since(before):
                    self.check(run.place.checks, PostconditionError, f"after {run.pass_}")
                told, waiting = waiting, []
                self.watch.after(info, told)
        except BaseException as error:
            self.watch.failed(info, waiting, error)
            raise

    def _run_leaf(self, run: PassRun, decision: Decision) -> None:
        """Run a pass that is no pipeline, unless it has nothing to look at since its last run."""
        info, journal, gate = run.pass_.info, self.model.journal, self.model.gate
        key = self._key(run.pass_, decision)
        if info.is_node_wise:
            run.looked = self.memory.looked.get(key)
            if run.looked is not None and not journal.moved_since(run.looked):
                return
        before, refused = journal.stamp(), gate.refused
        with self._listening(run), self._blaming(run):
            run.pass_.run(self.model, self, run)
            if info.analysis and journal.moved_since(before):
                raise PassError(f"{info.name} is an analysis, but it edited the model")
            if self._checks_view:
                self.model.check_view(types=True)
        journal.note_touched()
        # A rule leaves nothing to do for itself; a function may find more in what it made.
        is_done = info.kind == "rewrite" or not journal.moved_since(before)
        if is_done and gate.refused == refused and gate.is_open:
            self.memory.looked[key] = journal.stamp()
        else:
            self.memory.looked.pop(key, None)

    def _key(self, pass_: Pass, decision: Decision) -> object:
        """Return what, with the model, decides the outcome of a run; it must hold no node."""
        # Function passes and conditions see the context, so what it says may matter to them; and
        # what needs operators of a target asks the context for it.
        info, conditions = pass_.info, getattr(pass_, "conditions", None)
        sees = info.kind == "function" or info.asks_target or conditions
        settings = self._settings if sees else None
        return pass_.text, hash(pass_.scope), decision.nodes, settings

    @contextmanager
    def _listening(self, run: PassRun) -> Iterator[None]:
        """Note the rewrites of a pass, and tell the instruments that want to know of them."""
        gate, info, tells = self.model.gate, run.pass_.info, self.watch.wants_rewrites

        def listen(record: RewriteRecord) -> None:
            run.applied.append((record.node_name, record.law))
            if tells:
                self.watch.rewrote(info, record)

        before, gate.pass_name, gate.at = gate.pass_name, info.name, ""
        gate.listeners.append(listen)
        token = LISTENER.set(run)
        try:
            yield
        finally:
            LISTENER.reset(token)
            gate.listeners.remove(listen)
            gate.pass_name = before

    @contextmanager
    def _blaming(self, run: PassRun) -> Iterator[None]:
        """Make the error of a pass name the pass, the rewrite, and what ran before."""
        try:
            yield
        except TieredError as error:
            error.add_note(f"in pass {run.pass_}{self._history()}")
            raise
        except Exception as error:
            gate = self.model.gate
            if not isinstance(error, MemoryError | RecursionError):
                complaint = complaint_about(self.model)
                if complaint is not None:
                    raise PreconditionError(
                        f"{self.model.label} is not a valid model, and {run.pass_} cannot work on "
                        f"it: {complaint}"
                    ) from error
            where = f"rewrite #{gate.count + 1}" + (f", node {gate.at!r}," if gate.at else "")
            raise PassError(
                f"{run.pass_} failed at {where} of {self.model.label}: "
                f"{type(error).__name__}: {error}{self._history()}"
            ) from error

    def check(self, checks: Iterable[Check], kind: type[PassError], when: str) -> None:
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


def _allows(pass_: Pass, decision: Decision) -> Allows | None:
    """Return which nodes a pass may rewrite, by its own scope and by the entries that fit it."""
    scope, rules = pass_.scope, decision.nodes
    if rules is None:
        return None if scope is None else scope.holds
    if scope is None:
        return rules.allow

    def both(node: Node) -> bool:
        return scope.holds(node) and rules.allow(node)

    return both
