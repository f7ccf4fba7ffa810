"""The verdict on a run that was to be verified: what was proved, and what was not.

- yes: outputs were compared after the passes that changed something, and the promises hold.
- in part: the same, but some passes could not be verified; remarks name them.
- nothing to verify: no pass changed what is computed, so nothing ran.
- no: passes changed something, and nothing could be compared.
- structure only: that alone was asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tiered.runtime.compare.outputs import left_out
from tiered.support.errors import TargetError

if TYPE_CHECKING:
    from tiered.runtime.compare.outputs import Comparison
    from tiered.verify.methods import VerificationMethod

Word = Literal["yes", "in part", "nothing to verify", "no", "structure only"]


@dataclass(frozen=True)
class Verdict:
    """What a run proved.

    Attributes:
        word: one of the five.
        why: the reason of "nothing to verify" and "no", and what was left out of the others.
    """

    word: Word
    why: str = ""

    @property
    def is_proved(self) -> bool:
        """Whether outputs were compared after every pass that changed something."""
        return self.word == "yes"

    def __str__(self) -> str:
        return f"{self.word}{f' ({self.why})' if self.why else ''}"

    def raise_if_not(self) -> None:
        """Raise if nothing that was asked for could be verified.

        Raises:
            TargetError: the message has the reason.
        """
        if self.word == "no":
            raise TargetError(f"not verified: {self.why}")


def verdict_of(ways: Sequence[VerificationMethod]) -> Verdict:
    """Return the verdict on passes, by how each that changed something was verified."""
    if not ways:
        return Verdict("nothing to verify", "no pass changed anything")
    done = [way for way in ways if way.by in ("model", "region")]
    left = list(dict.fromkeys(str(way) for way in ways if way.by == "nothing"))
    if not done and not left:
        return Verdict("nothing to verify", "no pass changed what is computed")
    if not done:
        return Verdict("no", "; ".join(left))
    if left:
        return Verdict("in part", "; ".join(left))
    return Verdict("yes", ", ".join(dict.fromkeys(name for way in done for name in way.left_out)))


def why_empty(comparisons: Sequence[Comparison], reasons: Sequence[str]) -> str:
    """Return why the numbers of no output were compared; "" if those of one were.

    Args:
        comparisons: one for each sample.
        reasons: why outputs are not among them.
    """
    if not all(comparison.is_empty for comparison in comparisons):
        return ""
    said = [*dict.fromkeys([*reasons, *left_out(comparisons)])]
    return "; ".join(said) or "the models have no output in common"
