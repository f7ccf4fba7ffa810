"""A step that was done: its figures, its verdict, and what it left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tiered.extensions.preparation.preparation_steps import PreparationStep
from tiered.extensions.preparation.promise_mark import Carried, carried_by
from tiered.passes.interface.report import Remark
from tiered.pipeline.result import ModelStatistics
from tiered.support.numerics import Promise

if TYPE_CHECKING:
    from tiered.pipeline.result import OptimizeResult
    from tiered.targets import Coverage


@dataclass(frozen=True)
class DoneStep:
    """A step, and what came of it.

    Attributes:
        step: the step.
        changed: whether the model is different since.
        before, after: the contents of the model.
        seconds: the time that the passes and the verification took.
        verdict: what verification proved; "" if it was off.
        carried: the promise of the passes that changed something.
        largest: the largest difference of an element of the outputs.
        taken, refused: how many nodes the target takes and refuses after it; None without one.
        remarks: of the run.
        notes: on the model.
    """

    step: PreparationStep
    changed: bool
    before: ModelStatistics
    after: ModelStatistics
    seconds: float
    verdict: str
    is_proved: bool
    carried: Carried
    largest: float
    taken: int | None
    refused: int | None
    remarks: Sequence[Remark] = ()
    notes: Sequence[str] = ()

    @classmethod
    def of(
        cls, step: PreparationStep, result: OptimizeResult, coverage: Coverage | None
    ) -> DoneStep:
        """Return a step with the figures of its run."""
        verify = result.verify
        changing = result.report.changing()
        return cls(
            step=step,
            changed=bool(changing),
            before=result.before,
            after=result.after,
            seconds=result.seconds,
            verdict="" if verify is None else str(verify.verdict),
            is_proved=verify is not None and verify.verdict.word in ("yes", "nothing to verify"),
            carried=carried_by(result.report.results),
            largest=0.0 if verify is None else verify.largest,
            taken=None if coverage is None else coverage.nodes - coverage.refused.total(),
            refused=None if coverage is None else coverage.refused.total(),
            remarks=tuple(result.remarks),
            notes=tuple(result.model.notes),
        )

    @property
    def promise(self) -> Promise:
        """The promise of the passes that changed something."""
        return self.carried.promise

    @property
    def is_conversion(self) -> bool:
        """Whether the step converted to another precision."""
        return bool(self.step.precision) and self.changed

    @property
    def stays_float(self) -> list[Remark]:
        """The nodes that a conversion left as they are, with the reasons."""
        return self._said("missed")

    @property
    def found(self) -> list[str]:
        """What a conversion found: shares, errors, what a budget returned to float."""
        return [each.reason for each in self._said("analysis")]

    def record(self) -> dict[str, Any]:
        """Return the step as plain data."""
        return {
            "name": self.step.name,
            "what": self.step.what,
            "passes": self.step.text,
            "opt_level": self.step.opt_level,
            "backend": None if self.step.backend is None else str(self.step.backend),
            "changed": self.changed,
            "nodes": self.after.nodes,
            "bytes": self.after.nbytes,
            "taken": self.taken,
            "refused": self.refused,
            "verdict": self.verdict,
            "promise": str(self.promise),
            "largest_difference": self.largest,
            "found": self.found,
            "seconds": self.seconds,
        }

    def _said(self, kind: str) -> list[Remark]:
        if not self.step.precision or self.step.passes is None:
            return []
        names = {leaf.name for leaf in self.step.passes.leaves()}
        return [each for each in self.remarks if each.kind == kind and each.pass_name in names]
