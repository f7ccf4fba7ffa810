"""A budget on the outputs of a model, and the search for what must return to float to meet it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np

from tiered.graph.core.dtypes import is_float
from tiered.support.errors import UsageError, VerificationError

Array = np.ndarray[Any, Any]
T = TypeVar("T")


class Budget(NamedTuple):
    """How far the outputs of a model may move.

    Attributes:
        metric: "cosine", "sqnr" (dB), "relative" (L2 error / L2 norm), "max_abs" or "mean_abs".
        limit: the least or the largest number that is allowed.
    """

    metric: str
    limit: float

    @property
    def is_least(self) -> bool:
        """Return whether the limit is the least number that is allowed."""
        return METRICS[self.metric].is_least

    def holds(self, measured: float) -> bool:
        """Return whether a measured number is within the limit; NaN never is."""
        return measured >= self.limit if self.is_least else measured <= self.limit

    def measure(self, expected: Mapping[str, Any], actual: Mapping[str, Any]) -> float | None:
        """Return the metric of the worst output; None if none has an element to compare.

        Of outputs of integers, booleans and strings the elements that differ count: `relative` and
        `mean_abs` are their share, `max_abs` is 1 if there are any, `sqnr` and `cosine` are those
        of an error of that share. Without an output of floats there is no signal: all elements
        must be equal then for `sqnr` and `cosine`. Beside outputs of floats without a finite number
        integers that are equal are no measure.

        Args:
            expected: the outputs of the original, by name. They are not rounded.
            actual: those of the other model, in any dtype of floats.
        """
        metric = METRICS[self.metric]
        pairs = list(_pairs(expected, actual))
        has_floats = any(is_float(value.dtype) for value, _ in pairs)
        found = [_measured(metric, value, other, has_floats=has_floats) for value, other in pairs]
        worst = self.worst_of(found)
        floats = [
            each
            for each, (value, _) in zip(found, pairs, strict=True)
            if is_float(value.dtype) and value.size
        ]
        is_blind = bool(floats) and all(each is None for each in floats)
        return None if is_blind and worst == metric.best else worst

    def worst_of(self, measured: Iterable[float | None]) -> float | None:
        """Return the worst of the numbers that were measured; None if there is none."""
        known = [each for each in measured if each is not None]
        worst: Callable[[list[float]], float] = min if self.is_least else max
        return worst(known) if known else None

    def __str__(self) -> str:
        return f"{self.metric}{'>=' if self.is_least else '<='}{self.limit:.12g}"


def is_less_finite(expected: Any, actual: Any) -> bool:
    """Return whether an output of floats has NaN or infinities where the original is finite."""
    outputs = (expected, actual)
    if not all(isinstance(each, np.ndarray) and is_float(each.dtype) for each in outputs):
        return False
    if actual.shape != expected.shape:
        return False
    a, b = (np.isfinite(each.astype(np.float64)) for each in outputs)
    return bool((a & ~b).any())


class _Metric(NamedTuple):
    """A measure of two vectors of float64; `best` is that of equal ones, `worst` of any others.

    `of_share` is that of outputs without noise, from the share of the elements that differ.
    """

    function: Callable[[Array, Array], float]
    of_share: Callable[[float], float]
    is_least: bool
    best: float
    worst: float


def _pairs(expected: Mapping[Any, Any], actual: Mapping[Any, Any]) -> Iterator[tuple[Array, Any]]:
    """Yield each tensor of the original, with that of the other model; sequences by element."""
    for name, value in expected.items():
        other = actual.get(name)
        if isinstance(value, np.ndarray):
            yield value, other
        elif isinstance(value, list):
            others = other if isinstance(other, list) else []
            if len(others) != len(value):
                yield np.zeros(1, np.float32), None  # the worst there is
            yield from _pairs(dict(enumerate(value)), dict(enumerate(others)))


def _measured(metric: _Metric, expected: Array, actual: Any, *, has_floats: bool) -> float | None:
    """Return a metric of one output; the worst number if shapes, NaN or Inf differ.

    None if there is no element to compare.
    """
    if not isinstance(actual, np.ndarray) or actual.shape != expected.shape:
        return metric.worst
    if not is_float(expected.dtype):
        return _differing(metric, expected, actual, has_floats=has_floats)
    a, b = (array.astype(np.float64).ravel() for array in (expected, actual))
    is_finite = np.isfinite(a)
    if not np.array_equal(a[~is_finite], b[~is_finite], equal_nan=True):
        return metric.worst
    a, b = a[is_finite], b[is_finite]
    if not np.isfinite(b).all():
        return metric.worst
    if not a.size:
        return None
    return metric.best if np.array_equal(a, b) else metric.function(a, b)


def _differing(
    metric: _Metric, expected: Array, actual: Array, *, has_floats: bool
) -> float | None:
    """Return a metric of the share of the elements that differ."""
    if not expected.size:
        return None
    share = float(np.mean(expected != actual))
    if not share:
        return metric.best
    return metric.of_share(share) if has_floats or not metric.is_least else metric.worst


def _cosine(a: Array, b: Array) -> float:
    norms = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(a @ b) / norms if norms else 0.0


def _relative(a: Array, b: Array) -> float:
    norm = float(np.linalg.norm(a))
    return float(np.linalg.norm(b - a)) / norm if norm else math.inf


def _decibels(a: Array, b: Array) -> float:
    return _decibels_of(_relative(a, b))


def _decibels_of(error: float) -> float:
    return -20 * math.log10(error) if 0 < error < math.inf else -math.inf


def _largest(a: Array, b: Array) -> float:
    return float(np.abs(a - b).max())


def _mean(a: Array, b: Array) -> float:
    return float(np.abs(a - b).mean())


def _share(share: float) -> float:
    return share


METRICS: Final = {
    "cosine": _Metric(_cosine, lambda share: 1.0 - share, True, 1.0, -1.0),
    "sqnr": _Metric(_decibels, _decibels_of, True, math.inf, -math.inf),
    "relative": _Metric(_relative, _share, False, 0.0, math.inf),
    "max_abs": _Metric(_largest, lambda share: 1.0, False, 0.0, math.inf),
    "mean_abs": _Metric(_mean, _share, False, 0.0, math.inf),
}

_FORM: Final = re.compile(r"\s*(\w+)\s*(>=|<=)\s*(\S+?)(?:(?<=\d)\s*dB)?\s*")


def budget_of(text: str) -> Budget:
    """Return the budget that a string describes, as `cosine>=0.999` or `sqnr>=20dB`.

    Raises:
        UsageError: the string is none, or names no metric.
    """
    found = _FORM.fullmatch(text)
    metric = METRICS.get(found[1]) if found else None
    if found is None or metric is None:
        raise UsageError(
            f"{text!r} is no budget: expected a metric and a limit, as cosine>=0.999; "
            f"metrics: {', '.join(METRICS)}"
        )
    sign = ">=" if metric.is_least else "<="
    if found[2] != sign:
        raise UsageError(f"{text!r}: a limit of {found[1]} is written {found[1]}{sign}{found[3]}")
    try:
        limit = float(found[3])
    except ValueError as error:
        raise UsageError(f"{text!r}: {found[3]!r} is no number") from error
    if math.isnan(limit):
        raise UsageError(f"{text!r}: no number is within a limit of NaN")
    return Budget(found[1], limit)


class Returned(NamedTuple, Generic[T]):
    """What a search found.

    Attributes:
        items: what has to return to float, the worst first.
        measured: the metric of the outputs without these.
        runs: how often the outputs were measured.
    """

    items: tuple[T, ...]
    measured: float
    runs: int


def meet(
    ranked: Sequence[T],
    measure: Callable[[Sequence[T]], float | None],
    budget: Budget,
    what: str,
) -> Returned[T]:
    """Return the fewest items, from the worst on, without which a budget holds.

    The count doubles until the budget holds, and is then bisected: so the outputs are measured
    about 2 log2(n) times. More items need not be better; the result was always measured.

    Args:
        ranked: what may return to float, the worst first.
        measure: returns the metric of the outputs while some items are float; None if they have
            no element to compare.
        budget: the limit.
        what: the items, in words: "products".

    Raises:
        VerificationError: the budget does not hold with all items in float, or no output was
            measured.
    """
    known = dict[int, float]()

    def holds(count: int) -> bool:
        found = measure(ranked[:count])
        if found is None:
            raise VerificationError(
                f"the budget {budget} cannot be met: no output was measured, as none of them has "
                "an element that can be compared; give inputs for which the outputs have some"
            )
        known[count] = found
        return budget.holds(found)

    enough, too_few = 0, -1
    while not holds(enough):
        if enough == len(ranked):
            raise VerificationError(
                f"the budget {budget} cannot be met: {budget.metric} is {known[enough]:.6g} with "
                f"all {len(ranked)} {what} in float"
            )
        too_few, enough = enough, min(max(2 * enough, 1), len(ranked))
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if holds(middle):
            enough = middle
        else:
            too_few = middle
    return Returned(tuple(ranked[:enough]), known[enough], len(known))
