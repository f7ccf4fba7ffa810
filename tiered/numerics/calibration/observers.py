"""Observers: what is kept of a tensor, and the range that follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal, NamedTuple, Protocol, get_args

import numpy as np

from tiered.numerics.calibration.thresholds import (
    Histogram,
    entropy_range,
    mse_range,
    percentile_range,
)
from tiered.support.errors import UsageError, did_you_mean

Array = np.ndarray[Any, Any]

Method = Literal["minmax", "percentile", "mse", "entropy"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)

BINS: Final = 2048
"""The bins of a histogram, before its range grows."""

_ENTROPY_BINS: Final = 128
"""Those of the entropy method: as many as onnxruntime's default has; its search is quadratic."""


class Range(NamedTuple):
    """The measured range of a value.

    Attributes:
        low, high: the smallest and largest number that is represented.
        least, most: the smallest and largest number that was seen.
        seen: how many finite numbers were seen.
        masked: how many elements were no numbers: NaN, Inf, masks.
    """

    low: float
    high: float
    least: float
    most: float
    seen: int
    masked: int = 0


class Observer(Protocol):
    """Sees the finite numbers of a value, sample by sample."""

    def observe(self, numbers: Array) -> None: ...

    def bounds(self) -> tuple[float, float]: ...


class MinMax:
    """The smallest and the largest number."""

    def __init__(self) -> None:
        self.least, self.most = np.inf, -np.inf

    def observe(self, numbers: Array) -> None:
        """Extend the range."""
        self.least = min(self.least, float(numbers.min()))
        self.most = max(self.most, float(numbers.max()))

    def bounds(self) -> tuple[float, float]:
        """Return the range; zeros if nothing was seen."""
        return (self.least, self.most) if self.least <= self.most else (0.0, 0.0)


class Clipped:
    """A histogram; the range leaves out rare numbers at the ends.

    Args:
        method: what decides where the range ends.
        percentile: of the numbers, which the method "percentile" keeps.
        levels: how many steps of a range the method "mse" has.
    """

    def __init__(self, method: Method, percentile: float, levels: int) -> None:
        self._method = method
        self._percentile = percentile
        self._levels = levels
        self._histogram = Histogram(_ENTROPY_BINS if method == "entropy" else BINS)

    def observe(self, numbers: Array) -> None:
        """Add numbers to the histogram."""
        self._histogram.add(numbers)

    def bounds(self) -> tuple[float, float]:
        """Return the range by the method."""
        if not self._histogram.total:
            return 0.0, 0.0
        if self._method == "mse":
            return mse_range(self._histogram, self._levels)
        if self._method == "entropy":
            return entropy_range(self._histogram)
        return percentile_range(self._histogram, self._percentile)


class Seen:
    """The finite numbers of one value that are no masks, in an observer.

    Args:
        observer: what sees them.
        mask: numbers below are masks.
        largest: so are numbers of a larger magnitude.
    """

    def __init__(self, observer: Observer, mask: float, largest: float) -> None:
        self._observer = observer
        self._mask = mask
        self._largest = largest
        self._span = MinMax()
        self._count = self._masked = 0

    def observe(self, array: Array) -> None:
        """Look at the elements of a tensor of floats."""
        flat = array.reshape(-1)
        numbers = flat if flat.dtype == np.float32 else flat.astype(np.float32)
        is_number = np.abs(numbers) < self._largest  # False for NaN
        if self._mask > -np.inf:
            is_number &= numbers > self._mask
        kept = numbers if is_number.all() else numbers[is_number]
        self._count += kept.size
        self._masked += flat.size - kept.size
        if kept.size:
            self._span.observe(kept)
            self._observer.observe(kept)

    def range(self) -> Range:
        """Return the range by the method, and what was seen."""
        low, high = self._observer.bounds()
        least, most = self._span.bounds()
        return Range(low, high, least, most, self._count, self._masked)


def observer_of(method: Method, percentile: float, levels: int) -> Observer:
    """Return an observer.

    Raises:
        UsageError: there is no such method.
    """
    if method not in METHODS:
        hint = did_you_mean(method, METHODS)
        raise UsageError(f"no calibration method {method!r}{hint} ({', '.join(METHODS)})")
    return MinMax() if method == "minmax" else Clipped(method, percentile, levels)


def ranges_of(seen: Mapping[str, Seen]) -> dict[str, Range]:
    """Return the range of each value that has at least one number."""
    found = {name: each.range() for name, each in seen.items()}
    return {name: each for name, each in found.items() if each.seen}
