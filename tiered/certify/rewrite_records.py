"""What a run of `--certify` found, rewrite by rewrite, and its summary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from tiered.certify.axioms import RUNTIME
from tiered.certify.checker import Proof
from tiered.certify.problem import Problem
from tiered.support.amounts import counted

Word = Literal["bits", "reals", "run", "refuted", "unproved", "interface"]
SAID: Final[Mapping[Word, str]] = {
    "bits": "bit for bit",
    "reals": "over the reals",
    "run": "by runs",
    "interface": "change the interface",
    "refuted": "REFUTED",
    "unproved": "not proved",
}


@dataclass
class Certified:
    """One rewrite and what is known of it.

    Attributes:
        number: of the rewrite in its run; 0 for edits beside rewrites.
        level: of its pass.
        word: how it was proved, or that it was not.
        proof: of the checker; None where nothing that is computed changed.
        problem: the region, if it is kept.
        reason: why there is no proof.
        inputs: the values of the borders of a region that show that it is refuted.
    """

    number: int
    pass_name: str
    law: str
    anchor: str
    level: int | None
    word: Word
    proof: Proof | None = None
    problem: Problem | None = None
    reason: str = ""
    inputs: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_proved(self) -> bool:
        return self.word in ("bits", "reals")

    @property
    def how(self) -> str:
        """How it was proved, or what is known of it."""
        what: str = SAID[self.word]
        if self.proof is not None and self.is_proved:
            runtime = sorted(self.proof.axioms & RUNTIME.keys())
            what += f" (by axioms of the runtime: {', '.join(runtime)})" if runtime else ""
            what += f" (constants within {self.proof.bound:.2g} ulps)" if self.proof.bound else ""
            what += " for all sizes" if self.proof.is_for_all else ""
        return f"{what}: {self.reason}" if self.reason else what

    def __str__(self) -> str:
        return f"#{self.number} {self.pass_name}: {self.how}"


@dataclass
class Findings:
    """All rewrites of a run."""

    rewrites: list[Certified] = field(default_factory=list)

    def counts(self) -> Mapping[Word, int]:
        """Return how many rewrites were proved in each way."""
        found = Counter(each.word for each in self.rewrites)
        return {word: found[word] for word in SAID if found[word]}

    def left(self) -> Sequence[Certified]:
        """Return the rewrites without a proof."""
        return [each for each in self.rewrites if not each.is_proved]

    def __str__(self) -> str:
        if not self.rewrites:
            return "no rewrites"
        counts = ", ".join(f"{count:,} {SAID[word]}" for word, count in self.counts().items())
        named = [each.proof for each in self.rewrites if each.proof and each.proof.has_named_sizes]
        found = f"{counted(len(self.rewrites), 'rewrite')}: {counts}"
        for_all = sum(proof.is_for_all for proof in named)
        return found + (f"; {for_all:,} of {len(named):,} of named sizes for all" if named else "")
