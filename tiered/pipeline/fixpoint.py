"""Fixpoint: passes in order, repeated until nothing changes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Self

from tiered.graph import Model
from tiered.pipeline.pipeline_base import GROUPS, Pipeline
from tiered.pipeline.text import passes_of
from tiered.support.errors import UsageError
from tiered.support.typed_options import Option

if TYPE_CHECKING:
    from tiered.passes import PassLike
    from tiered.passes.execution import Execution
    from tiered.passes.interface.pass_info import Members
    from tiered.passes.pass_run import PassRun


_UNWATCHED_ROUNDS: Final = 2
"""Rounds without a search for cycles: most fixed points are reached by then."""


class Fixpoint(Pipeline):
    """Passes in order, repeated until none of them changes anything.

    Args:
        passes: passes or text, as for Sequential.
        max_rounds: the limit of rounds; by default the config option `fixpoint.max_rounds`. At the
            limit, a remark names the passes that still change something. Passes that undo each
            other are stopped when the model reaches an earlier state, with a remark on them.
        name: what entries call the group.
        opt_level: the level below which the whole group does not run.

    Raises:
        PassNotFoundError: an unknown name.
        UsageError: two of the passes conflict, so that they might never reach a fixed point.
    """

    OPTIONS = (
        Option("name", str, ""),
        Option("max_rounds", int | None, None),
        Option("opt_level", int, 0),
    )

    def __init__(
        self,
        passes: Iterable[PassLike] = (),
        *,
        max_rounds: int | None = None,
        name: str = "",
        opt_level: int = 0,
    ) -> None:
        if max_rounds is not None and max_rounds < 1:
            raise UsageError(f"max_rounds takes an integer from 1, not {max_rounds!r}")
        given = {"name": name, "max_rounds": max_rounds, "opt_level": opt_level}
        self._fill(passes_of(passes), name, "fix", self.OPTIONS, given)
        _check_conflicts(self)

    def _made_of(self, passes: Iterable[PassLike], **options: Any) -> Self:
        return type(self)(passes, **options)

    def run(self, model: Model, execution: Execution, run: PassRun) -> Members:
        """Yield the passes until none changes anything any more, or until they form a cycle.

        The end is when each has run once since the last change, wherever in a round that was. In
        a fixed point around this one, its next run yields nothing unless others changed the model.
        """
        if execution.is_settled(self, run.place):
            return
        rounds = self.options["max_rounds"] or execution.ctx.config["fixpoint.max_rounds"]
        changed: list[str] = []
        states, places, unchanged = _States(), execution.places(self, run.place), 0
        for number in range(rounds):
            changed = []
            for pass_, place in places:
                made = yield pass_, place
                unchanged = 0 if made else unchanged + 1
                if unchanged == len(places):
                    run.changed += changed
                    execution.settle(self, run.place)
                    return
                changed += made
                if made and number >= _UNWATCHED_ROUNDS and (cycle := states.add(model, made)):
                    run.changed += changed
                    run.note("found", _remark_on(cycle))
                    return
            if not places:
                return
            run.changed += changed
        names = ", ".join(dict.fromkeys(changed))
        run.note("found", f"no fixed point after {rounds} rounds: {names} still change the model")

    @cached_property
    def text(self) -> str:
        return f"fix{self._options_text()}({self.inner})"


# By either name: a group of one's own named `fixpoint` would run once.
GROUPS["fix"] = GROUPS["fixpoint"] = Fixpoint


class _States:
    """The states of the model after each change, and the passes that made them."""

    def __init__(self) -> None:
        self._places: dict[bytes, int] = {}
        self._makers: list[tuple[str, ...]] = []

    def add(self, model: Model, makers: tuple[str, ...]) -> list[str]:
        """Record a state; return the passes that form a cycle back to an earlier one, or []."""
        self._makers.append(makers)
        # Most fixed points are reached before they search for cycles.
        from tiered.graph.queries.structural_hash import fingerprint

        state = fingerprint(model)
        if state not in self._places:
            self._places[state] = len(self._makers)
            return []
        cycle = self._makers[self._places[state] :]
        return list(dict.fromkeys(name for names in cycle for name in names))


def _remark_on(cycle: list[str]) -> str:
    names = ", ".join(cycle[:-1])
    match len(cycle):
        case 1:
            return f"no fixed point: {cycle[0]} undoes its own changes"
        case 2:
            return f"no fixed point: {names} and {cycle[-1]} undo each other"
        case _:
            return f"no fixed point: {names} and {cycle[-1]} form a cycle"


def _check_conflicts(fixpoint: Fixpoint) -> None:
    members = list(fixpoint.leaves())
    names = {member.name for member in members}
    for member in members:
        for enemy in names.intersection(member.info.conflicts):
            raise UsageError(f"{member.name} and {enemy} undo each other: never in one fixed point")
