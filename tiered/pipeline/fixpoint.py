"""Fixpoint: passes in order, until nothing changes any more."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

from tiered.errors import UsageError
from tiered.graph import Model
from tiered.options import Option
from tiered.passes import Pass
from tiered.pipeline.base import Pipeline

if TYPE_CHECKING:
    from tiered.passes.execution import Execution
    from tiered.passes.recording import PassRun


class Fixpoint(Pipeline):
    """Passes in order, again and again until none of them changes anything.

    Args:
        passes: passes or text, as for Sequential.
        max_rounds: how often at most; by default the config option `fixpoint.max_rounds`. Hitting
            it is a remark which names the passes that still change something.
        name: what entries call the group.
        opt_level: the level below which the whole group does not run.

    Raises:
        PassNotFoundError: an unknown name.
        UsageError: two of the passes conflict, so that they might never come to an end.
    """

    OPTIONS = (
        Option("name", str, ""),
        Option("max_rounds", int | None, None),
        Option("opt_level", int, 0),
    )

    def __init__(
        self,
        passes: Iterable[Pass | str] = (),
        *,
        max_rounds: int | None = None,
        name: str = "",
        opt_level: int = 0,
    ) -> None:
        if max_rounds is not None and max_rounds < 1:
            raise UsageError(f"max_rounds takes an integer from 1, not {max_rounds!r}")
        given = {"name": name, "max_rounds": max_rounds, "opt_level": opt_level}
        self._fill(passes, name, "fix", self.OPTIONS, given)
        _check_conflicts(self)

    def _made_of(self, passes: Iterable[Pass | str], **options: Any) -> Self:
        return type(self)(passes, **options)

    def run(self, model: Model, execution: Execution, run: PassRun) -> None:
        """Run all passes until a round changes nothing."""
        rounds = self.options["max_rounds"] or execution.ctx.config["fixpoint.max_rounds"]
        changed: list[str] = []
        for _ in range(rounds):
            changed = []
            for pass_, place in self.places(run.place):
                changed += execution.execute(pass_, place)
            if not changed:
                return
            run.changed += changed
        names = ", ".join(dict.fromkeys(changed))
        run.say("found", f"no fixed point after {rounds} rounds: {names} still change the model")

    @cached_property
    def text(self) -> str:
        return f"fix{self._options_text()}({self.inner})"


def _check_conflicts(fixpoint: Fixpoint) -> None:
    members = list(fixpoint.leaves())
    names = {member.name for member in members}
    for member in members:
        for enemy in names.intersection(member.info.conflicts):
            raise UsageError(f"{member.name} and {enemy} undo each other: never in one fixed point")
