"""PlannedPass: a pass at its place in a pipeline, decided once for all its runs there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tiered.graph import Node
from tiered.passes.interface.pass_info import Decision, Member, PassResult, Place, Runnable
from tiered.passes.interface.registry import registry
from tiered.passes.pass_run import Allows, Memory
from tiered.support.records import Record


class ContextSettings(Record):
    """The settings of a context that may change the outcome of a pass.

    Attributes:
        opt_level: the level.
        backend: the digest of the target; empty if none is named.
        config: the options that are set, and their values as text.
    """

    opt_level: int
    backend: str
    config: tuple[tuple[str, str], ...]


class PlannedPass(NamedTuple):
    """A pass at one place, decided once for one outermost call.

    Attributes:
        pass_: the pass.
        place: its place in the pipeline.
        decision: the decision of the context.
        required: the passes that it requires, at their places beside it.
        followers: the passes that run after it if it changed something, likewise.
        allows: which nodes it may rewrite; None for all.
        key: what determines the outcome of a run on a model; None for passes that always run.
    """

    pass_: Runnable
    place: Place
    decision: Decision
    required: tuple[Member, ...] = ()
    followers: tuple[Member, ...] = ()
    allows: Allows | None = None
    key: object = None

    def result(self, memory: Memory, *, ran: bool = True, **outcome: Any) -> PassResult:
        """Return the result of one run; its reason is that of the decision unless given."""
        reason = outcome.pop("reason", self.decision.reason)
        info, text, needed_by = self.pass_.info, self.pass_.text, self.place.needed_by
        return PassResult(
            info, text, ran, reason, needed_by=needed_by, model=memory.serial, **outcome
        )

    def idle(self, memory: Memory, seconds: float) -> PassResult:
        """Return the result of a run with nothing to do: as `result`, but several times faster."""
        pass_, reason = self.pass_, self.decision.reason
        return PassResult(
            pass_.info, pass_.text, True, reason, False, 0, 0, seconds, None, self.place.needed_by,
            memory.serial,
        )  # fmt: skip

    @classmethod
    def of(
        cls, pass_: Runnable, place: Place, decision: Decision, settings: ContextSettings
    ) -> PlannedPass:
        """Return the plan for a pass with this decision."""
        if not decision:
            return cls(pass_, place, decision)
        info = pass_.info
        required, followers = _beside(pass_, place, info.required, info.followed_by)
        key = _key(pass_, decision, settings) if info.is_node_wise else None
        return cls(pass_, place, decision, required, followers, _allows(pass_, decision), key)


def _beside(pass_: Runnable, place: Place, *names: Iterable[str]) -> list[tuple[Member, ...]]:
    """Return the passes of each list of names, at the place beside a pass."""
    if not any(names):
        return [() for _ in names]
    beside = place.beside(pass_.name)
    return [tuple((registry.named(name), beside) for name in listed) for listed in names]


def _key(pass_: Runnable, decision: Decision, settings: ContextSettings) -> object:
    """Return what determines the outcome of a run on a model; it must hold no node."""
    # Function passes and conditions see the context, so its settings may matter to them. The
    # results of any rule are checked against the target.
    sees = pass_.info.kind == "function" or getattr(pass_, "conditions", None)
    seen = settings if sees else settings.backend
    return pass_.text, hash(pass_.scope), decision.nodes, seen


def _allows(pass_: Runnable, decision: Decision) -> Allows | None:
    """Return which nodes a pass may rewrite, by its own scope and by node rules of the context."""
    scope, rules = pass_.scope, decision.nodes
    if rules is None:
        return None if scope is None else scope.holds
    if scope is None:
        return rules.allow

    def both(node: Node) -> bool:
        return scope.holds(node) and rules.allow(node)

    return both
