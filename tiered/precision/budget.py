"""A budget on the outputs of a model, and the search for what must return to float to meet it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

import numpy as np

from tiered.errors import UsageError
from tiered.graph.core.dtypes import is_float

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
        return _METRICS[self.metric].is_least

    def holds(self, measured: float) -> bool:
        """Return whether a measured number is within the limit; NaN never is."""
        return measured >= self.limit if self.is_least else measured <= self.limit

    def measure(self, expected: Mapping[str, Any], actual: Mapping[str, Any]) -> float:
        """Return the metric of the worst output of floats; the best number if there is none.

        Args:
            expected: the outputs of the original, by name. They are not rounded.
            actual: those of the other model, in any dtype of floats.
        """
        metric = _METRICS[self.metric]
        found = [
            _measured(metric, value, actual.get(name))
            for name, value in expected.items()
            if isinstance(value, np.ndarray) and is_float(value.dtype)
        ]
        return (min if metric.is_least else max)(found, default=metric.best)

    def worst_of(self, measured: Sequence[float]) -> float:
        """Return the worst of the numbers of several runs."""
        metric = _METRICS[self.metric]
        return (min if metric.is_least else max)(measured, default=metric.best)

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
    """A measure of two vectors of float64; `best` is that of equal ones, `worst` of any others."""

    function: Callable[[Array, Array], float]
    is_least: bool
    best: float
    worst: float


def _measured(metric: _Metric, expected: Array, actual: Any) -> float:
    """Return a metric of one output; the worst number if shapes, NaN or Inf differ."""
    if not isinstance(actual, np.ndarray) or actual.shape != expected.shape:
        return metric.worst
    a, b = (array.astype(np.float64).ravel() for array in (expected, actual))
    is_finite = np.isfinite(a)
    if not np.array_equal(a[~is_finite], b[~is_finite], equal_nan=True):
        return metric.worst
    a, b = a[is_finite], b[is_finite]
    if not np.isfinite(b).all():
        return metric.worst
    return metric.best if np.array_equal(a, b) else metric.function(a, b)


def _cosine(a: Array, b: Array) -> float:
    norms = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(a @ b) / norms if norms else 0.0


def _relative(a: Array, b: Array) -> float:
    norm = float(np.linalg.norm(a))
    return float(np.linalg.norm(b - a)) / norm if norm else math.inf


def _decibels(a: Array, b: Array) -> float:
    error = _relative(a, b)
    return -20 * math.log10(error) if 0 < error < math.inf else -math.inf


_METRICS: Final = {
    "cosine": _Metric(_cosine, True, 1.0, -1.0),
    "sqnr": _Metric(_decibels, True, math.inf, -math.inf),
    "relative": _Metric(_relative, False, 0.0, math.inf),
    "max_abs": _Metric(lambda a, b: float(np.abs(a - b).max()), False, 0.0, math.inf),
    "mean_abs": _Metric(lambda a, b: float(np.abs(a - b).mean()), False, 0.0, math.inf),
}

_FORM: Final = re.compile(r"\s*(\w+)\s*(>=|<=)\s*(\S+?)(?:(?<=\d)\s*dB)?\s*")


def budget_of(text: str) -> Budget:
    """Return the budget that a string describes, as `cosine>=0.999` or `sqnr>=20dB`.

    Raises:
        UsageError: the string is none, or names no metric.
    """
    found = _FORM.fullmatch(text)
    metric = _METRICS.get(found[1]) if found else None
    if found is None or metric is None:
        raise UsageError(
            f"{text!r} is no budget: expected a metric and a limit, as cosine>=0.999; "
            f"metrics: {', '.join(_METRICS)}"
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
        holds: whether that is within the budget; if not, all items are returned.
        runs: how often the outputs were measured.
    """

    items: tuple[T, ...]
    measured: float
    holds: bool
    runs: int


def fewest_returned(
    ranked: Sequence[T], measure: Callable[[Sequence[T]], float], budget: Budget
) -> Returned[T]:
    """Return the fewest items, from the worst on, without which a budget holds.

    The count doubles until the budget holds, and is then bisected: so the outputs are measured
    about 2 log2(n) times. More items need not be better; the result was always measured.

    Args:
        ranked: what may return to float, the worst first.
        measure: returns the metric of the outputs while some items are float.
        budget: the limit.
    """
    known = dict[int, float]()

    def holds(count: int) -> bool:
        known[count] = measure(ranked[:count])
        return budget.holds(known[count])

    enough, too_few = 0, -1
    while not holds(enough):
        if enough == len(ranked):
            return Returned(tuple(ranked), known[enough], False, len(known))
        too_few, enough = enough, min(max(2 * enough, 1), len(ranked))
    while enough - too_few > 1:
        middle = (enough + too_few) // 2
        if holds(middle):
            enough = middle
        else:
            too_few = middle
    return Returned(tuple(ranked[:enough]), known[enough], True, len(known))
