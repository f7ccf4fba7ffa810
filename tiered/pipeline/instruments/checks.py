"""Checks: functions of the model that must hold after every pass that changed something."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tiered.passes.policy.pipeline_checks import checks_of
from tiered.pipeline.instruments.stacks import Stacks
from tiered.support.errors import PostconditionError

if TYPE_CHECKING:
    from tiered.graph import Model, Stamp
    from tiered.passes import Pass
    from tiered.passes.interface.pass_info import PassInfo


class Checks:
    """Fails each pass after which a check does not hold: it is undone like any pass that raises.

    `Sequential(checks=...)` does the same for one pipeline.

    Args:
        checks: functions of the model, which fail by raising or returning False; analysis passes;
            or their names.

    Raises:
        UsageError: one is none of these.
    """

    def __init__(self, *checks: Callable[[Model], object] | Pass | str) -> None:
        self.checks = checks_of(checks)
        self._before: Stacks[Stamp] = Stacks()

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        self._before.push(model, model.journal.stamp())

    def run_after_pass(self, model: Model, info: PassInfo) -> None:
        before = self._before.pop(model)
        if info.kind != "pipeline" and model.journal.moved_since(before):
            for check in self.checks:
                check.hold(model, PostconditionError, f"after {info.name}")

    def run_after_pass_failed(self, model: Model, info: PassInfo, error: BaseException) -> None:
        self._before.pop(model)
