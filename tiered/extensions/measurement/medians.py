"""Medians with intervals, and drift: what a measurement shows, and what may be noise.

The interval of a median is between two members of the sample (order statistics): each number lies
below the true median with probability 1/2, so the number of those that do is binomial. Nothing else
is assumed of the distribution. Source: David & Nagaraja, Order Statistics, 3rd edition, section
7.1; Le Boudec, Performance Evaluation of Computer and Communication Systems, theorem 2.1.

The interval of a ratio is that of Wilcoxon's signed ranks, between two means of pairs, around the
estimate of Hodges and Lehmann. It assumes that the logarithms of the ratios lie symmetrically, as
those of a model and itself do, since the two processes could be exchanged. It is narrower than the
other one: the sizes of the differences count, not only their signs. Source: Hollander, Wolfe &
Chicken, Nonparametric Statistical Methods, 3rd edition, sections 3.1 to 3.3.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from itertools import combinations_with_replacement
from typing import Final, NamedTuple

CONFIDENCE: Final = 0.99
"""The least probability that the true median is within an interval."""

_LEAST_DRIFT: Final = 0.03
_LEAST_SPREAD: Final = 0.1
_TREND: Final = 0.01
"""The largest probability of a trend by chance."""
_FEWEST: Final = 8
"""The fewest numbers for a trend: below, the normal distribution is no approximation."""


class MedianInterval(NamedTuple):
    """The median of a sample, and the interval that holds the true one.

    Attributes:
        low, high: the ends.
        confidence: the probability that the true median is between them.
    """

    low: float
    median: float
    high: float
    confidence: float


def median_interval(numbers: Sequence[float], confidence: float = CONFIDENCE) -> MedianInterval:
    """Return the median of a sample with the narrowest interval of at least a confidence.

    Of a sample that is too small it is the whole range, and `confidence` says how little that is.
    """
    ordered, place = sorted(numbers), 1
    while place < len(ordered) // 2 and _coverage(len(ordered), place + 1) >= confidence:
        place += 1
    return MedianInterval(
        ordered[place - 1],
        statistics.median(ordered),
        ordered[-place],
        _coverage(len(ordered), place),
    )


def ratio_interval(differences: Sequence[float], confidence: float = CONFIDENCE) -> MedianInterval:
    """Return the interval of a ratio from differences of logarithms, of up to some hundred rounds.

    As `median_interval` does, it gives the whole range of a sample that is too small.
    """
    means = sorted((one + other) / 2 for one, other in _pairs(differences))
    outside, total = _signed_ranks(len(differences)), 2.0 ** len(differences)
    place, below = 1, outside[0]
    while place < len(means) // 2 and 1 - 2 * (below + outside[place]) / total >= confidence:
        below += outside[place]
        place += 1
    return MedianInterval(
        math.exp(means[place - 1]),
        math.exp(statistics.median(means)),
        math.exp(means[-place]),
        1 - 2 * below / total,
    )


def _pairs(numbers: Sequence[float]) -> Iterator[tuple[float, float]]:
    """Yield each pair of numbers once, a number and itself too."""
    return combinations_with_replacement(numbers, 2)


def _signed_ranks(count: int) -> list[int]:
    """Return how many subsets of the ranks 1 to `count` have each sum, from 0 on."""
    ways = [1]
    for rank in range(1, count + 1):
        with_rank = [0] * rank + ways
        ways = [old + new for old, new in zip(ways + [0] * rank, with_rank, strict=True)]
    return ways


def fewest_for(confidence: float = CONFIDENCE) -> int:
    """Return how many numbers a sample needs for an interval of a confidence."""
    count = 1
    while _coverage(count, 1) < confidence:
        count += 1
    return count


def _coverage(count: int, place: int) -> float:
    """Return the probability that a median is between the `place`-th number from both ends."""
    outside = sum(math.comb(count, below) for below in range(place))
    return max(0.0, 1 - outside / 2.0 ** (count - 1))


def drift(numbers: Sequence[float]) -> float | None:
    """Return the last numbers of a series by its first ones; None unless it has a trend.

    The trend is that of the Mann-Kendall test, and its size at least 3 %. Source: Kendall, Rank
    Correlation Methods, chapters 1 and 4; Mann, Nonparametric tests against trend, 1945.
    """
    count = len(numbers)
    if count < _FEWEST:
        return None
    signs = sum(
        (numbers[later] > numbers[at]) - (numbers[later] < numbers[at])
        for at in range(count)
        for later in range(at + 1, count)
    )
    deviation = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    by_chance = math.erfc(max(0, abs(signs) - 1) / deviation / math.sqrt(2))
    third = count // 3
    change = statistics.median(numbers[-third:]) / statistics.median(numbers[:third])
    return change if by_chance <= _TREND and abs(change - 1) >= _LEAST_DRIFT else None


def spread(numbers: Sequence[float]) -> float | None:
    """Return how far the middle half of a series is apart, as a share; None if below 10 %."""
    if len(numbers) < _FEWEST:
        return None
    low, middle, high = statistics.quantiles(numbers, n=4)
    share = (high - low) / middle
    return share if share >= _LEAST_SPREAD else None
