"""Races: which forms beat a reference, decided with as few rounds as the differences allow.

`screen` drops what is clearly no better, and says how good the others seem; what it returns is no
proof. `prove` is one: a test that looks at the interval of the ratio after a few numbers of
rounds, each time with a part of the allowed error (Bonferroni), so that looking often is no way to
a verdict by chance. Source: Jamieson & Talwalkar, Non-stochastic Best Arm Identification, AISTATS
2016 (successive halving); Wald, Sequential Analysis, 1947; Pocock, Biometrika 64, 1977 (looks).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from tiered.extensions.measurement.latency_result import NO_DIFFERENCE
from tiered.extensions.measurement.medians import MedianInterval, ratio_interval
from tiered.extensions.tuning.log import Log
from tiered.extensions.tuning.model_forms import Made
from tiered.support.errors import RuntimeFailure

TOGETHER: Final = 6
"""The most forms that are measured in one round, beside the reference."""
_MOST_BYTES: Final = 1 << 31
"""Bytes of all forms of a round: they are open in one process."""
FEWEST: Final = 4
"""Rounds before a form is dropped."""
ROUNDS: Final = 12
"""Rounds after which a screening ends."""
_SURE: Final = 2.0
"""Standard errors by which a form must be worse, or better, to be decided."""
_TO_DEVIATION: Final = 1.4826
"""The standard deviation of a normal distribution by the median of its absolute deviations."""
USEFUL: Final = 0.004
"""The least gain that is worth more rounds, as a difference of logarithms."""
LOOKS: Final = (10, 14, 20, 32, 56)
"""Numbers of rounds after which a test may end; the last ones are for a busy machine."""
_ERROR: Final = 0.01
"""The most probable false verdict of a test."""
_CONFIDENCE: Final = 1 - _ERROR / len(LOOKS)

FASTER, SLOWER, UNDECIDED = "better", "worse", "undecided"

Clock = Callable[[], bool]
"""Returns whether the time of a stage is over."""
Pair = tuple[int, int]
"""The places of two forms: the first one's cost by the second one's."""


@dataclass(frozen=True)
class Gain:
    """What a race says of a form.

    Attributes:
        ratio: of its cost by that of the reference, with an interval.
        rounds: how many were measured.
        verdict: "better", "worse", "no difference", or "undecided".
    """

    ratio: MedianInterval
    rounds: int
    verdict: str

    @property
    def is_better(self) -> bool:
        return self.verdict == FASTER


class Race:
    """Measures forms beside a reference.

    Args:
        log: measures and remembers.
        is_over: whether the time is over; a round that is known takes none.

    Attributes:
        failures: of forms that could not be measured.
    """

    def __init__(self, log: Log, is_over: Clock) -> None:
        self._log, self._is_over = log, is_over
        self.failures: dict[Made, str] = {}

    def screen(
        self,
        stage: str,
        reference: Made,
        forms: Sequence[Made],
        *,
        only_best: bool = False,
        both_ways: bool = False,
    ) -> dict[Made, Gain]:
        """Return what is known of forms after a few rounds; those without time are left out.

        Args:
            stage: names the rounds in the log.
            reference: measured in each round.
            forms: what is measured beside it.
            only_best: drop what is clearly worse than another form, too.
            both_ways: measure also what seems worse until that is clear.

        Raises:
            RuntimeFailure: the reference fails.
        """
        found: dict[Made, Gain] = {}
        others = [form for form in dict.fromkeys(forms) if form != reference]
        width = width_for(reference)
        for start in range(0, len(others), width):
            heat = others[start : start + width]
            name = f"{stage} {start // width}"
            is_open = _is_unclear if both_ways else _is_open
            found.update(self._heat(name, reference, heat, is_open, only_best=only_best))
        return found

    def _heat(
        self,
        stage: str,
        reference: Made,
        forms: Sequence[Made],
        is_open: Callable[[Sequence[float], float], bool],
        *,
        only_best: bool,
    ) -> dict[Made, Gain]:
        differences: dict[Made, list[float]] = {form: [] for form in forms}
        alive = [*forms]
        for number in range(1 if self._log.is_exact else ROUNDS):
            costs = self._costs(stage, reference, alive, number)
            if costs is None:
                break
            for form in alive:
                differences[form].append(costs[form] - costs[reference])
            if number + 1 >= FEWEST:
                spread = _spread(differences.values())
                alive = [form for form in alive if is_open(differences[form], spread)]
                if only_best:
                    ranges = {form: _range(differences[form], spread) for form in forms}
                    bar = min(high for _, _, high in ranges.values())
                    alive = [form for form in alive if ranges[form][0] <= bar]
        spread = _spread(differences.values())
        is_exact = self._log.is_exact
        return {
            form: exact_gain(known[0]) if is_exact else _gain(known, spread)
            for form, known in differences.items()
            if known and form not in self.failures
        }

    def _costs(
        self, stage: str, reference: Made, alive: list[Made], number: int
    ) -> dict[Made, float] | None:
        """Measure a round, and drop forms that fail; None if the time is over, or without forms."""
        while alive:
            together = [reference, *alive]
            if not self._log.has(stage, together, number) and self._is_over():
                return None
            try:
                costs = self._log.costs(stage, together, number, apart=False)
            except RuntimeFailure:
                failing = self._failing(reference, alive)
                if not failing:
                    raise
                self.failures.update(failing)
                alive[:] = [form for form in alive if form not in failing]
                continue
            return dict(zip(together, costs, strict=True))
        return None

    def _failing(self, reference: Made, forms: Sequence[Made]) -> dict[Made, str]:
        """Return the forms that fail on their own, with the reason; raise if the reference does."""
        self._log.measure([reference])
        failing: dict[Made, str] = {}
        for form in forms:
            try:
                self._log.measure([form])
            except RuntimeFailure as error:
                failing[form] = " ".join(str(error).split())
        return failing

    def prove(self, stage: str, form: Made, reference: Made) -> Gain | None:
        """Return whether a form beats a reference, on fresh rounds.

        None without time for that, or if the form fails.

        Raises:
            RuntimeFailure: the reference fails, or both do side by side.
        """
        if form == reference:
            return same()
        try:
            return self.compare(stage, [form, reference], [(0, 1)]).get((0, 1))
        except RuntimeFailure:
            self.failures.update(self._failing(reference, [form]))
            if form not in self.failures:
                raise
            return None

    def compare(
        self, stage: str, forms: Sequence[Made], pairs: Sequence[Pair], *, apart: bool = False
    ) -> dict[Pair, Gain]:
        """Return a tested verdict for each pair of forms; those without time for it are left out.

        Args:
            stage: names the rounds in the log.
            forms: which are measured side by side.
            pairs: the places of those that are compared.
            apart: whether each has a process of its own. Then the first look is always taken.

        Raises:
            RuntimeFailure: a form fails.
        """
        known: list[list[float]] = []
        found: dict[Pair, Gain] = {}
        for number in range(LOOKS[-1]):  # one round where the costs are exact
            may_end = not apart or number >= LOOKS[0]
            if may_end and not self._log.has(stage, forms, number) and self._is_over():
                break
            known.append(self._log.costs(stage, forms, number, apart=apart))
            is_last = len(known) == LOOKS[-1]
            for pair in pairs:
                if self._log.is_exact:
                    found[pair] = exact_gain(known[0][pair[0]] - known[0][pair[1]])
                elif (
                    len(known) in LOOKS
                    and pair not in found
                    and (verdict := tested(_differences(known, pair), is_last=is_last))
                ):
                    found[pair] = verdict
            if len(found) == len(pairs):
                break
        for pair in pairs:
            if pair not in found and len(known) >= LOOKS[0]:
                verdict = tested(_differences(known, pair), is_last=True)
                assert verdict is not None, "the last look has a verdict"
                found[pair] = verdict
        return found


def width_for(reference: Made) -> int:
    """Return how many forms are measured in one round beside a reference: large ones, few."""
    return max(1, min(TOGETHER, _MOST_BYTES // max(1, reference.nbytes) - 1))


def _differences(rounds: Sequence[Sequence[float]], pair: Pair) -> list[float]:
    return [costs[pair[0]] - costs[pair[1]] for costs in rounds]


def tested(differences: Sequence[float], *, is_last: bool) -> Gain | None:
    """Return the verdict of a test after a look; None to go on.

    Args:
        differences: of logarithms, a round each.
        is_last: whether there is no further look.
    """
    interval, count = ratio_interval(differences, _CONFIDENCE), len(differences)
    if interval.confidence >= _CONFIDENCE:
        if interval.high < 1:
            return Gain(interval, count, FASTER)
        if interval.low > 1:
            return Gain(interval, count, SLOWER)
    # Not even the better end of the interval is a gain that counts.
    if interval.low > math.exp(-USEFUL) or is_last:
        return Gain(interval, count, NO_DIFFERENCE)
    return None


def is_undecided(gain: Gain | None) -> bool:
    """Return whether a test ended without enough time, and does not speak against a proof."""
    if gain is None:
        return True
    is_cut = gain.verdict == NO_DIFFERENCE and 0 < gain.rounds < LOOKS[-1]
    return is_cut and gain.ratio.median < 1 and gain.ratio.low < 1 - USEFUL


def reason_of(gain: Gain | None) -> str:
    """Return what a test says of a form, for readers."""
    return "no time was left to prove it" if gain is None else gain.verdict


def exact_gain(difference: float) -> Gain:
    """Return the verdict on costs without noise."""
    ratio = math.exp(difference)
    verdict = FASTER if difference < 0 else SLOWER if difference > 0 else NO_DIFFERENCE
    return Gain(MedianInterval(ratio, ratio, ratio, 1.0), 1, verdict)


def same() -> Gain:
    """Return the verdict on a form beside itself."""
    return Gain(MedianInterval(1.0, 1.0, 1.0, 1.0), 0, NO_DIFFERENCE)


def _spread(series: Iterable[Sequence[float]]) -> float:
    """Return the typical standard deviation of differences; forms share the noise of a machine.

    It is that of the deviations' median, since a burst of other work makes a few rounds worthless.
    """
    known = [_deviation(each) for each in series if len(each) > 1]
    return max(statistics.median(known), 1e-6) if known else 1e-6


def _deviation(numbers: Sequence[float]) -> float:
    middle = statistics.median(numbers)
    return _TO_DEVIATION * statistics.median(abs(number - middle) for number in numbers)


def _range(differences: Sequence[float], spread: float) -> tuple[float, float, float]:
    """Return the median of differences, and the ends of where it may truly be."""
    middle = statistics.median(differences)
    error = _SURE * spread / math.sqrt(len(differences))
    return middle - error, middle, middle + error


def _is_open(differences: Sequence[float], spread: float) -> bool:
    """Return whether more rounds may show that a form is better by what counts, or are needed."""
    low, _, high = _range(differences, spread)
    return low <= -USEFUL and (len(differences) < FEWEST + 2 or high >= 0)


def _is_unclear(differences: Sequence[float], spread: float) -> bool:
    """Return whether a form may be better or worse."""
    low, _, high = _range(differences, spread)
    return low <= 0 <= high


def _gain(differences: Sequence[float], spread: float) -> Gain:
    low, middle, high = _range(differences, spread)
    if high < 0:
        verdict = FASTER
    elif low > 0:
        verdict = SLOWER
    else:
        verdict = NO_DIFFERENCE if low > -USEFUL else UNDECIDED
    interval = MedianInterval(math.exp(low), math.exp(middle), math.exp(high), 0.95)
    return Gain(interval, len(differences), verdict)
