"""What is expected of a measurement: `B<=0.9*A`."""

from __future__ import annotations

import re
import string
from typing import Final, NamedTuple

from tiered.extensions.measurement.medians import MedianInterval
from tiered.support.errors import UsageError

LETTERS: Final = string.ascii_uppercase
"""The models by their places."""

_CLAIM: Final = re.compile(
    r"(?P<of>[A-Z])(?P<relation><=|>=|<|>)(?:(?P<factor>\d+(?:\.\d+)?)\*)?(?P<to>[A-Z])"
)
_EXPECTED: Final = "expected two models and perhaps a factor, as in B<=0.9*A, B<A or A>=2*C"


class Claim(NamedTuple):
    """An expectation: the latency of one model relative to another's.

    Attributes:
        of, to: the places of the models.
        relation: one of <=, <, >= and >.
        factor: of the second latency.
    """

    of: int
    relation: str
    factor: float
    to: int

    def __str__(self) -> str:
        factor = "" if self.factor == 1 else f"{self.factor:g}*"
        return f"{LETTERS[self.of]}{self.relation}{factor}{LETTERS[self.to]}"

    def holds(self, ratio: MedianInterval) -> bool:
        """Return whether the whole interval of a ratio is on the expected side."""
        match self.relation:
            case "<=":
                return ratio.high <= self.factor
            case "<":
                return ratio.high < self.factor
            case ">=":
                return ratio.low >= self.factor
        return ratio.low > self.factor

    def is_refuted(self, ratio: MedianInterval) -> bool:
        """Return whether the whole interval of a ratio is on the other side."""
        if self.relation in ("<=", "<"):
            return ratio.low > self.factor
        return ratio.high < self.factor


def parse_claim(text: str, count: int) -> Claim:
    """Parse an expectation about some models.

    Args:
        text: as in `B<=0.9*A`; blanks do not count.
        count: of the models.

    Raises:
        UsageError: it does not parse, or names a model that is not there.
    """
    found = _CLAIM.fullmatch("".join(text.split()))
    if found is None:
        raise UsageError(f"--expect {text!r}: {_EXPECTED}")
    of, to = (LETTERS.index(found[name]) for name in ("of", "to"))
    last = LETTERS[count - 1]
    if max(of, to) >= count:
        there = "A is the only model" if count == 1 else f"the models are A to {last}"
        raise UsageError(f"--expect {text!r}: no model {LETTERS[max(of, to)]}; {there}")
    if of == to:
        raise UsageError(f"--expect {text!r}: one model on both sides; {_EXPECTED}")
    factor = float(found["factor"] or 1)
    if not factor:
        raise UsageError(f"--expect {text!r}: the factor is 0; {_EXPECTED}")
    return Claim(of, found["relation"], factor, to)
