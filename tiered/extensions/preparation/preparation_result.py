"""What a preparation did: each step with its figures, what stays float, what stays on the host."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tiered.extensions.preparation.done_step import DoneStep
from tiered.extensions.preparation.preparation_options import PrepareOptions
from tiered.extensions.preparation.preparation_steps import PreparationStep
from tiered.extensions.preparation.promise_mark import Carried, together
from tiered.passes.interface.report import Remark
from tiered.pipeline.interface import interface_changes
from tiered.pipeline.leftovers import fixing_options
from tiered.pipeline.result import ModelStatistics
from tiered.support.amounts import counted
from tiered.support.errors import TargetError
from tiered.support.numerics import Promise

if TYPE_CHECKING:
    import onnx

    from tiered.graph import Model
    from tiered.targets import Coverage

_FEW: Final = 3


def _line(step: PreparationStep) -> str:
    level = [] if step.opt_level is None else [f"-O{step.opt_level}"]
    words = ", ".join(level + ([] if step.backend is None else [f"for {step.backend}"]))
    return f"{step.name}{f' ({words})' if words else ''}: {step.text}"


@dataclass(frozen=True)
class Prepared:
    """A model that was prepared, and how.

    Attributes:
        model: the result; `to_proto()`, `save(path)`.
        options: what was asked for.
        done: the steps, in order.
        before, after: the contents of the model.
        seconds: the time of all steps.
        coverage: what the target takes of the result; None without a target.
        error: the error of the whole against the original, in words; "" if it was not measured.
        interface: what differs in the interface.
        source, out: the files; "" for none.
    """

    model: Model
    options: PrepareOptions
    done: Sequence[DoneStep]
    before: ModelStatistics
    after: ModelStatistics
    seconds: float
    coverage: Coverage | None = None
    error: str = ""
    interface: Sequence[str] = ()
    source: str = ""
    out: str = ""

    @property
    def promise(self) -> Promise:
        """The promise of all steps together."""
        return self.carried.promise

    @property
    def carried(self) -> Carried:
        """The promise of all steps, as the metadata of a result has it."""
        return together(each.carried for each in self.done)

    @property
    def is_verified(self) -> bool:
        """Whether every step that changed something was verified by runs."""
        return all(each.is_proved for each in self.done if each.changed)

    @property
    def stays_float(self) -> list[Remark]:
        """The nodes that stay in float, with the reasons."""
        return [remark for each in self.done for remark in each.stays_float]

    @property
    def warnings(self) -> list[str]:
        """What the result is not, or may not be: notes on the model, and failed passes."""
        loud = ("failed", "deprecated", "unmet", "hook", "check", "verify")
        return [
            text
            for each in self.done
            for text in (*each.notes, *(str(r) for r in each.remarks if r.kind in loud))
        ]

    @property
    def pipeline(self) -> list[str]:
        """The steps that changed something, each with its level, its backend and its passes."""
        return [_line(each.step) for each in self.changing]

    @property
    def changing(self) -> list[DoneStep]:
        """The steps that changed something, or the last one."""
        return [each for each in self.done if each.changed] or list(self.done[-1:])

    def commands(self, source: str = "", out: str = "", *more: str) -> list[str]:
        """Return a command for each step that changed something: together they make the same bytes.

        Args:
            source: the file that the first one reads.
            out: the file that the last one writes; others are beside it.
            more: options of the last one.
        """
        source, out = source or self.source or "model.onnx", out or self.out or "prepared.onnx"
        stem, suffix = os.path.splitext(out)
        steps = [each.step for each in self.changing]
        files = [source, *(f"{stem}.step{at}{suffix}" for at in range(1, len(steps))), out]
        lines = []
        for at, step in enumerate(steps):
            is_last = at == len(steps) - 1
            mark = ("--result-of", source) if at else ()
            lines.append(step.line(files[at], files[at + 1], *mark, *(more if is_last else ())))
        return lines

    def check_target(self) -> None:
        """Raise if the target does not take the result.

        Raises:
            TargetError: it names what stays on the host.
        """
        coverage = self.coverage
        if coverage is None or coverage.is_met:
            return
        refused = [f"{name} ({count})" for name, count in coverage.refused.most_common(_FEW)]
        if len(coverage.refused) > _FEW:
            refused.append(counted(len(coverage.refused) - _FEW, "more operator"))
        refused += [str(refusal) for refusal in coverage.model]
        options = fixing_options(self.model) if coverage.backend.shapes == "static" else ""
        dims = f"; dims can be fixed: {options}" if options else ""
        raise TargetError(
            f"{coverage.backend} does not take the result: {', '.join(refused)}{dims}; --host "
            "(host=True) leaves these nodes to the host"
        )

    def to_proto(self) -> onnx.ModelProto:
        """Return the result as a ModelProto."""
        return self.model.to_proto()

    def record(self) -> dict[str, Any]:
        """Return the preparation as plain data: the JSON of `tiered prepare`."""
        backend = self.options.backend
        return {
            "input": self.source,
            "output": self.out or None,
            "opt_level": self.options.opt_level,
            "backend": None if backend is None else str(backend),
            "before": self.before.record(),
            "after": self.after.record(),
            "interface": list(self.interface),
            "steps": [each.record() for each in self.done],
            "pipeline": self.pipeline,
            "commands": self.commands(),
            "verified": self.is_verified,
            "promise": str(self.promise),
            "error_of_whole": self.error,
            "stays_float": [remark.record() for remark in self.stays_float],
            "target": None if self.coverage is None else self.coverage.record(),
            "seconds": self.seconds,
        }


def changes_of(model: Model, origin: onnx.ModelProto | None) -> list[str]:
    """Return what differs in the interface from a model as it was read."""
    model.origin = origin
    return interface_changes(model)
