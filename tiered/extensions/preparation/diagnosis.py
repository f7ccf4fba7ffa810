"""What a doctor found: what keeps a model from a target, and the commands that help."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tiered.extensions.preparation.preparation_options import prepare_line
from tiered.extensions.preparation.preparation_result import Prepared
from tiered.extensions.preparation.remedies import Remedy
from tiered.pipeline.result import ModelStatistics

if TYPE_CHECKING:
    from tiered.targets import Coverage


@dataclass(frozen=True)
class Suggestion:
    """A change that makes the result smaller or faster, and what it gains.

    Attributes:
        what, why: the change, in words.
        line: the command that has it.
        before, after: the contents of the result without and with it.
        error: what it costs in accuracy, in words; "" if nothing.
    """

    what: str
    why: str
    line: str
    before: ModelStatistics
    after: ModelStatistics
    error: str = ""


@dataclass(frozen=True)
class Diagnosis:
    """What keeps a model from a target, and what helps.

    Attributes:
        source: the file; "" for none.
        backend: the target; "" for any runtime.
        statistics: of the model as it is.
        coverage: what the target takes of it as it is; None without a target.
        complaint: why no runtime opens it as it is; "" if one does, or there is a target.
        remedies: the changes that were found to be needed.
        made: the result with them.
        complaint_after: why no runtime opens the result.
        failed: remedies that could not be tried, with the reason.
        suggestions: what else would help.
    """

    source: str
    backend: str
    statistics: ModelStatistics
    coverage: Coverage | None
    complaint: str
    remedies: tuple[Remedy, ...]
    made: Prepared
    complaint_after: str
    failed: tuple[str, ...]
    suggestions: tuple[Suggestion, ...]

    @property
    def is_legal(self) -> bool:
        """Whether the model is legal as it is."""
        return not self.complaint and (self.coverage is None or self.coverage.is_met)

    @property
    def is_legal_after(self) -> bool:
        """Whether the result is legal as a whole."""
        coverage = self.made.coverage
        return not self.complaint_after and (coverage is None or coverage.is_met)

    @property
    def has_a_way(self) -> bool:
        """Whether the target takes the result, or at least a part of it that can be cut out."""
        if self.is_legal or self.is_legal_after:
            return True
        coverage = self.made.coverage
        return coverage is not None and not coverage.model and _taken(coverage) > 0

    def commands(self, out: str = "out.onnx") -> list[str]:
        """Return the commands, ready to paste; none if the model is legal as it is."""
        if self.is_legal or not self.has_a_way:
            return []
        lines = self.made.commands(self.source, out)
        if not self.is_legal_after:
            lines.append(partition_line(out, self.backend))
        return lines

    def line(self, out: str = "out.onnx") -> str:
        """Return the one command that does all of them, but for cutting."""
        return prepare_line(self.made.options, self.source, out, host=not self.is_legal_after)

    def record(self) -> dict[str, Any]:
        """Return the diagnosis as plain data: the JSON of `tiered doctor`."""
        coverages = self.coverage, self.made.coverage
        target = [None if each is None else each.record() for each in coverages]
        return {
            "model": self.source,
            "backend": self.backend or None,
            "legal": self.is_legal,
            "legal_after": self.is_legal_after,
            "has_a_way": self.has_a_way,
            "complaint": self.complaint,
            "complaint_after": self.complaint_after,
            "before": self.statistics.record(),
            "after": self.made.after.record(),
            "target_before": target[0],
            "target_after": target[1],
            "remedies": [{"what": each.what, "why": each.why} for each in self.remedies],
            "steps": [each.record() for each in self.made.done],
            "commands": self.commands(),
            "command": self.line(),
            "failed": list(self.failed),
            "suggestions": [
                {
                    "what": each.what,
                    "why": each.why,
                    "command": each.line,
                    "nodes": [each.before.nodes, each.after.nodes],
                    "bytes": [each.before.nbytes, each.after.nbytes],
                    "error": each.error,
                }
                for each in self.suggestions
            ],
        }


def partition_line(file: str, backend: str) -> str:
    """Return the command that writes what a target takes, and the rest, as separate models."""
    folder = f"{os.path.splitext(file)[0]}.parts"
    return shlex.join(["tiered", "partition", file, "--backend", backend, "--as-models", folder])


def _taken(coverage: Coverage) -> int:
    return coverage.nodes - coverage.refused.total()
