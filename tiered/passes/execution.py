"""Running a pass: decide, dependencies, hooks, transaction, follow-ups.

Direct calls, members of pipelines and dependencies all run this way.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from tiered.context import PassContext
from tiered.graph import Model, Stamp
from tiered.graph.core.provenance import write_origins
from tiered.passes.decisions import plan_of
from tiered.passes.interface.pass_info import Decision, HeldCheck, Member, PassResult, Place
from tiered.passes.interrupts import interrupted_between_edits
from tiered.passes.planned import ContextSettings, PlannedPass
from tiered.passes.transaction import NOTHING, EditScope, RunState, Transaction, check_acyclic
from tiered.support.errors import CycleError, PassError, PostconditionError

if TYPE_CHECKING:
    from tiered.passes.interface.pass_info import Members, Runnable


class Places(Protocol):
    """A pipeline, as the execution uses it."""

    def places(self, place: Place, /) -> Iterator[Member]: ...


def execute(pass_: Runnable, model: Model, ctx: PassContext, place: Place) -> None:
    """Run a pass on a model; if it raises, the model is exactly as it was before.

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
        execution = Execution(model, context, pass_, place)
        if execution.execute(pass_, execution.place):
            execution.check_acyclic()
        if context.config["provenance.metadata"] and not pass_.info.analysis:
            write_origins(model)
        obey()
    if is_bare and not (last := ctx.report.results[-1]).ran:
        # The context is the call's own, so the caller cannot read the reason from it.
        warn("%s did not run: %s (`.apply` runs it anyway)", last.text, last.reason)


def _sent(members: Members, made: tuple[str, ...] | None) -> Member | None:
    """Send a pipeline what its last member made, and return the next one; None at the end."""
    try:
        return next(members) if made is None else members.send(made)
    except StopIteration:
        return None


def warn(text: str, *told: object) -> None:
    """Tell a caller who has no other place to read it."""
    import logging  # few runs warn

    logging.getLogger("tiered").warning(text, *told)


@contextmanager
def _entered(ctx: PassContext) -> Iterator[PassContext]:
    """Enter the context, if it is not the current one."""
    if PassContext.current() is ctx:
        yield ctx
    else:
        with ctx:
            yield ctx


@contextmanager
def _limited(model: Model, ctx: PassContext) -> Iterator[None]:
    """Reject all rewrites after the last one that the context allows."""
    before = model.gate.limit
    if ctx.rewrite_limit is not None:
        model.gate.limit = ctx.rewrite_limit
    try:
        yield
    finally:
        model.gate.limit = before


class Execution(RunState):
    """One outermost call: the passes that it runs share model, context and watchers."""

    def __init__(self, model: Model, ctx: PassContext, pass_: Runnable, place: Place) -> None:
        super().__init__(model, ctx)
        self._following: list[str] = []
        # The stamp at which a pipeline at its place had nothing left to do; the plan, which has
        # the same keys, keeps the identities alive.
        self._settled: dict[tuple[int, int], Stamp] = {}
        config = tuple(sorted((key, repr(value)) for key, value in ctx.config_set.items()))
        # The default backend never changes, and reading it takes longer than many passes.
        backend = ctx.backend.digest if ctx.names_backend else ""
        self._settings = ContextSettings(ctx.opt_level, backend, config)
        self._plan = plan_of(pass_, place, ctx, self._settings)
        self._skips: dict[tuple[int, int], PassResult] = {}

    @property
    def place(self) -> Place:
        """The place of the outermost pass, the same object in all calls with this plan."""
        return self._plan.place

    def execute(self, pass_: Runnable, place: Place) -> tuple[str, ...]:
        """Run a pass if the context allows it; return the names of passes that edited the model.

        The decision is made once per pass and place. All steps of a run are in this function, so
        that the stack trace of a failing pass has one frame per pipeline around it.

        Raises:
            PassError: a pass raised.
            TieredError: a check or verification failed, or something was used wrongly.
        """
        key = id(pass_), id(place)
        planned = self._plan.planned.get(key)
        if planned is None:
            decision = self.ctx.decide(pass_, place)
            planned = PlannedPass.of(pass_, place, decision, self._settings)
            planned = self._plan.planned.setdefault(key, planned)
        is_watched = self.watch.is_needed
        if not is_watched and not planned.decision.run:
            self._record_skip(key, planned)
            return NOTHING
        changed: list[str] = []
        decision = planned.decision
        if is_watched or planned.required:
            decision = self._decide(planned, changed)
        if not decision.run:
            self.watch.skipped(pass_.info, decision)
            self.record(planned.result(self.memory, ran=False, reason=decision.reason))
            return tuple(changed)
        started = time.perf_counter()
        if not is_watched and self._is_idle(planned):
            self.memory.ended[pass_.text] = self.model.journal.stamp()
            self.record(planned.idle(self.memory, time.perf_counter() - started))
            return tuple(changed)
        transaction = Transaction(self, planned, started)
        run = transaction.run
        try:
            transaction.begin()
            if pass_.info.kind == "pipeline":
                members: Members = pass_.run(self.model, self, run)
                made: tuple[str, ...] | None = None
                while (member := _sent(members, made)) is not None:
                    made = self.execute(*member)
            elif not is_watched or not self._is_idle(planned):
                with EditScope(self, planned, run) as scope:
                    pass_.run(self.model, self, run)
                    scope.check()
                if transaction.has_edits:
                    self.check(place.checks, PostconditionError, f"after {pass_}")
            transaction.end()
        except BaseException as error:
            if not transaction.roll_back(error):
                raise
            return tuple(changed)
        own = transaction.commit()
        followers = self._run_followers(planned) if own else NOTHING
        return (*changed, *own, *followers)

    def places(self, pipeline: Places, place: Place) -> Sequence[Member]:
        """Return each pass of a pipeline with its place: the same places in every round."""
        key, places = (id(pipeline), id(place)), self._plan.places
        known = places.get(key)
        if known is None:
            # The place is kept with them, as nothing else may have its identity.
            known = places.setdefault(key, (place, tuple(pipeline.places(place))))
        return known[1]

    def settle(self, pipeline: Places, place: Place) -> None:
        """Note that a pipeline leaves the model as it is now unchanged."""
        self._settled[id(pipeline), id(place)] = self.model.journal.stamp()

    def is_settled(self, pipeline: Places, place: Place) -> bool:
        """Return whether nothing moved since a pipeline had nothing left to do."""
        stamp = self._settled.get((id(pipeline), id(place)))
        return stamp is not None and not self.model.journal.moved_since(stamp)

    def check(self, checks: Iterable[HeldCheck], kind: type[PassError], when: str) -> None:
        """Apply checks to the model; a failure of a suppressed one is only reported.

        Raises:
            PassError: of the given kind: one failed.
        """
        for check in checks:
            try:
                check.hold(self.model, kind, when)
            except PassError as error:
                if not check.suppressed:
                    error.add_note(self.history.strip() or "changed before it by no pass")
                    raise
                text = f"{error} (suppressed)"
                for report in self.reports:
                    report.note("check", text)
                warn("%s", text)

    def check_acyclic(self) -> None:
        """Raise if the passes made a cycle.

        Raises:
            PassError: they did; the error names those that changed the model.
        """
        try:
            check_acyclic(self.model)
        except CycleError as error:
            text = f"the passes failed on {self.model.label}: {error}{self.history}"
            raise PassError(text) from error

    def _record_skip(self, key: tuple[int, int], planned: PlannedPass) -> None:
        """Record that a pass does not run here: the same result in each round."""
        result = self._skips.get(key)
        if result is None:
            reason = planned.decision.reason
            result = self._skips[key] = planned.result(self.memory, ran=False, reason=reason)
        for report in self.reports:
            report.results.append(result)

    def _decide(self, planned: PlannedPass, changed: list[str]) -> Decision:
        """Run the pass's dependencies, then return whether it runs now.

        Appends to `changed` the names of the passes that edited the model.
        """
        decision = planned.decision
        if not decision:
            return decision
        refused = self.watch.veto(planned.pass_.info)
        if refused is not None:
            return Decision(False, f"instrument {refused} said no")
        missing = self._run_dependencies(planned, changed)
        if missing:
            return Decision(False, f"needs {missing}, which did not run to its end")
        return decision

    def _run_dependencies(self, planned: PlannedPass, changed: list[str]) -> str:
        """Run the passes that a pass requires, if the model moved since their last run.

        Returns:
            the name of the first that did not run, or ""; `changed` gets those that edited.
        """
        for needed, place in planned.required:
            ended = self.memory.ended.get(needed.text)
            if ended is not None and not self.model.journal.moved_since(ended):
                continue
            changed += self.execute(needed, place)
            if self.memory.ended.get(needed.text) is ended:
                return needed.name
        return ""

    def _run_followers(self, planned: PlannedPass) -> tuple[str, ...]:
        """Run the followers of a pass that changed something; never a pass within its own."""
        changed = NOTHING
        self._following.append(planned.pass_.name)
        try:
            for follower, place in planned.followers:
                if follower.name not in self._following:
                    changed += self.execute(follower, place)
        finally:
            self._following.pop()
        return changed

    def _is_idle(self, planned: PlannedPass) -> bool:
        """Return whether a pass has nothing to work on, or nothing new since it last looked."""
        looked, journal = self.memory.looked, self.model.journal
        last = None if planned.key is None else looked.get(planned.key)
        if last is not None and not journal.moved_since(last):
            return True
        if self.checks_view or planned.pass_.may_act(self.model):
            return False
        journal.note_touched()
        if planned.key is not None:
            looked[planned.key] = journal.stamp()
        return True
