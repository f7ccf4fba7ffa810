"""What the outputs of a tuned model may differ by, and how a form is held to it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from tiered.extensions.debug import compare_models
from tiered.extensions.measurement.subjects import ModelLike
from tiered.runtime.inputs.samples import Source
from tiered.support.errors import RuntimeFailure, UsageError, VerificationError
from tiered.support.numerics import Numerics, is_within

_COSINE: Final = re.compile(r"cosine>=(?P<least>\d?\.?\d+)")


@dataclass(frozen=True)
class OutputTolerance:
    """How far outputs may move.

    Attributes:
        numerics: the class of the passes that may run, and of the comparison.
        cosine: the least cosine of each output; None without one.
    """

    numerics: Numerics
    cosine: float | None = None

    @property
    def level(self) -> int:
        """The highest level that keeps its promise within the budget."""
        if self.cosine is not None:
            return 4
        return 2 if self.numerics is Numerics.EXACT else 3

    @property
    def reference(self) -> int:
        """The level that a tuned form must beat."""
        return min(self.level, 3)

    def allows(self, numerics: Numerics) -> bool:
        """Return whether passes of a numeric class may run."""
        return is_within(numerics, self.numerics)

    def fault(
        self,
        first: ModelLike,
        second: str,
        inputs: Sequence[Source],
        seed: int,
        shapes: Mapping[str, Sequence[int | str]] | None = None,
    ) -> str:
        """Run two models and return how the second one exceeds the budget; "" if it does not."""
        try:
            found = compare_models(
                first,
                second,
                inputs=inputs,
                seed=seed,
                numerics=None if self.cosine is not None else self.numerics,
                min_cosine=self.cosine,
                shapes=shapes,
            )
            found.raise_if_different("it")
        except (RuntimeFailure, VerificationError) as error:
            return " ".join(str(error).split())
        return "its outputs cannot be compared" if found.is_empty and found.trials else ""

    def __str__(self) -> str:
        return self.numerics.value if self.cosine is None else f"cosine>={self.cosine:g}"


def parse_budget(text: str) -> OutputTolerance:
    """Parse a budget: exact, reassociating, or `cosine>=0.999`.

    Raises:
        UsageError: it is none.
    """
    packed = "".join(text.split())
    if packed in (Numerics.EXACT.value, Numerics.REASSOCIATING.value):
        return OutputTolerance(Numerics(packed))
    found = _COSINE.fullmatch(packed)
    if found is not None and 0 < float(found["least"]) <= 1:
        return OutputTolerance(Numerics.LOSSY, float(found["least"]))
    raise UsageError(
        f"--budget {text!r}: expected exact, reassociating, or a least cosine of the outputs "
        "above 0 and at most 1, as in 'cosine>=0.999'"
    )
