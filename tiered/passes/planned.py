"""A pass at its place: what stays the same each time that its turn comes there."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from tiered.graph import Node
from tiered.passes.history import Memory
from tiered.passes.pass_info import Decision, PassResult, Place, Runnable
from tiered.passes.registry import registry
from tiered.passes.run import Allows


class Settings(NamedTuple):
    """What a context says of more than passes.

    Attributes:
        opt_level: the level.
        backend: the digest of the target; empty where none is named.
        config: the options that are set, and their values as text.
    """

    opt_level: int
    backend: str
    config: tuple[tuple[str, str], ...]


class Case(NamedTuple):
    """A pass that stands somewhere, decided once for a whole run.

    Attributes:
        pass_: the pass.
        place: where it stands.
        decision: whether it runs, as far as the context decides.
        required: the passes that it requires, at their places beside it.
        followers: those that follow once it changed something, likewise.
        allows: which nodes it may rewrite; None for all.
        key: what, with the model, decides the outcome of a run; None for passes that always run.
    """

    pass_: Runnable
    place: Place
    decision: Decision
    required: tuple[tuple[Runnable, Place], ...] = ()
    followers: tuple[tuple[Runnable, Place], ...] = ()
    allows: Allows | None = None
    key: object = None

    def result(self, memory: Memory, *, ran: bool = True, **came_of_it: Any) -> PassResult:
        """Return what is recorded of one turn, where it ran for the reasons of the decision."""
        reason = came_of_it.pop("reason", self.decision.reason)
        info, text, needed_by = self.pass_.info, self.pass_.text, self.place.needed_by
        return PassResult(
            info, text, ran, reason, needed_by=needed_by, model=memory.serial, **came_of_it
        )

    @classmethod
    def of(cls, pass_: Runnable, place: Place, decision: Decision, settings: Settings) -> Case:
        """Return the case of a pass in a context."""
        if not decision:
            return cls(pass_, place, decision)
        info = pass_.info
        required, followers = _beside(pass_, place, info.required, info.followed_by)
        key = _key(pass_, decision, settings) if info.is_node_wise else None
        return cls(pass_, place, decision, required, followers, _allows(pass_, decision), key)


def _beside(
    pass_: Runnable, place: Place, *names: Iterable[str]
) -> list[tuple[tuple[Runnable, Place], ...]]:
    """Return each list of names as passes at the place beside a pass."""
    beside = place.beside(pass_.name)
    return [tuple((registry.named(name), beside) for name in listed) for listed in names]


def _key(pass_: Runnable, decision: Decision, settings: Settings) -> object:
    """Return what decides the outcome of a run besides the model; it must hold no node."""
    # Function passes and conditions see the context, so what it says may matter to them. What any
    # rule makes is held against the target.
    sees = pass_.info.kind == "function" or getattr(pass_, "conditions", None)
    seen = settings if sees else settings.backend
    return pass_.text, hash(pass_.scope), decision.nodes, seen


def _allows(pass_: Runnable, decision: Decision) -> Allows | None:
    """Return which nodes a pass may rewrite, by its own scope and by the entries that fit it."""
    scope, rules = pass_.scope, decision.nodes
    if rules is None:
        return None if scope is None else scope.holds
    if scope is None:
        return rules.allow

    def both(node: Node) -> bool:
        return scope.holds(node) and rules.allow(node)

    return both
