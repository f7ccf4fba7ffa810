"""Observers: what is kept of a tensor, and the range that follows from it."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, Literal, NamedTuple, Protocol, get_args

import numpy as np

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
        oversized: how many of these are finite and no masks.
    """

    low: float
    high: float
    least: float
    most: float
    seen: int
    masked: int = 0
    oversized: int = 0


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
        self._count = self._masked = self._oversized = 0

    def observe(self, array: Array) -> None:
        """Look at the elements of a tensor of floats."""
        flat = array.ravel()
        numbers = flat.astype(np.float32, copy=False)
        is_number = np.abs(numbers) < self._largest  # False for NaN
        if self._mask > -np.inf:
            is_number &= numbers > self._mask
        kept = numbers if is_number.all() else numbers[is_number]
        self._count += kept.size
        self._masked += flat.size - kept.size
        if kept.size < flat.size:
            is_oversized = np.isfinite(numbers) & (np.abs(numbers) >= self._largest)
            self._oversized += int(np.count_nonzero(is_oversized & (numbers > self._mask)))
        if kept.size:
            self._span.observe(kept)
            self._observer.observe(kept)

    def range(self) -> Range:
        """Return the range by the method, and what was seen."""
        low, high = self._observer.bounds()
        least, most = self._span.bounds()
        return Range(low, high, least, most, self._count, self._masked, self._oversized)


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


# --- Where a range ends: percentiles and entropy as onnxruntime computes them, or least squares ---

_MOST_GROWTH: Final = 8.0
"""Beyond this factor, old counts go into bins of the new width: the number of bins stays bounded.
"""

_TINY: Final = float(np.finfo(np.float32).tiny)

_SHARES: Final = np.concatenate([np.linspace(1.0, 0.5, 26), np.linspace(0.45, 0.1, 8)])
"""The parts of a range that are tried as its limits."""

_ENTROPY_LEVELS: Final = 128


class Histogram:
    """Counts of numbers in bins that are symmetric about 0, as onnxruntime's collector has them.

    Args:
        bins: how many, before the range grows.
    """

    def __init__(self, bins: int) -> None:
        self.bins = bins
        self.counts: Array = np.zeros(bins, np.int64)
        self.edges: Array = np.zeros(bins + 1)
        self.least, self.most, self.limit = np.inf, -np.inf, 0.0

    @property
    def total(self) -> int:
        """How many numbers there are."""
        return int(self.counts.sum())

    @property
    def centers(self) -> Array:
        """The middle of each bin."""
        return (self.edges[:-1] + self.edges[1:]) / 2

    def add(self, numbers: Array) -> None:
        """Count finite numbers."""
        least, most = float(numbers.min()), float(numbers.max())
        limit = max(abs(least), abs(most), _TINY)
        self.least, self.most = min(self.least, least), max(self.most, most)
        if limit > self.limit:
            self._widen(limit)
        ends = (-self.limit, self.limit)
        self.counts += np.histogram(numbers, self.counts.size, range=ends)[0]

    def _widen(self, limit: float) -> None:
        """Extend the bins to a larger magnitude, so that the old ones stay."""
        if limit > _MOST_GROWTH * self.limit:
            old, centers = self.counts, self.centers
            self.edges = np.linspace(-limit, limit, self.bins + 1)
            self.counts = np.histogram(centers, self.edges, weights=old)[0].astype(np.int64)
            self.limit = limit
            return
        width = self.edges[1] - self.edges[0]
        added = int((limit - self.limit) // width) + 1
        self.limit += added * width
        self.counts = np.pad(self.counts, added)
        self.edges = np.linspace(-self.limit, self.limit, self.counts.size + 1)


def percentile_range(histogram: Histogram, percentile: float) -> tuple[float, float]:
    """Return the range that holds a percentile of the numbers, as onnxruntime computes it."""
    return _by_onnxruntime(histogram, "percentile", percentile)


def entropy_range(histogram: Histogram) -> tuple[float, float]:
    """Return the range of the least Kullback-Leibler divergence, as onnxruntime computes it."""
    return _by_onnxruntime(histogram, "entropy", 100.0)


def mse_range(histogram: Histogram, levels: int) -> tuple[float, float]:
    """Return the range with the least squared error of numbers that are rounded to `levels` steps.

    Numbers beyond the range become its ends. Both ends are tried independently.
    """
    is_used = histogram.counts > 0
    numbers, counts = histogram.centers[is_used], histogram.counts[is_used]
    lows, highs = _ends(min(histogram.least, 0.0)), _ends(max(histogram.most, 0.0))
    below = np.square(np.minimum(numbers - lows[:, None], 0.0)) @ counts
    above = np.square(np.maximum(numbers - highs[:, None], 0.0)) @ counts
    # Rounding has the error of a uniform distribution, where a bin is no wider than a step.
    steps = (highs - lows[:, None]) / levels
    errors = below[:, None] + above + counts.sum() * np.square(steps) / 12
    low, high = np.unravel_index(int(errors.argmin()), errors.shape)
    return float(lows[low]), float(highs[high])


def _ends(end: float) -> Array:
    return _SHARES * end if end else np.zeros(1)


def _by_onnxruntime(histogram: Histogram, method: str, percentile: float) -> tuple[float, float]:
    """Return the range that a HistogramCollector of onnxruntime finds."""
    collector = _calibrate().HistogramCollector(
        method, False, histogram.bins, _ENTROPY_LEVELS, percentile, "same"
    )
    least, most = (np.array(end, np.float32) for end in (histogram.least, histogram.most))
    edges = histogram.edges.astype(np.float32)
    limit = np.array(histogram.limit, np.float32)
    collector.histogram_dict = {"": (histogram.counts, edges, least, most, limit)}
    with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        low, high, *_ = collector.compute_collection_result()[""]
    return float(low), float(high)


@cache
def _calibrate() -> Any:
    from onnxruntime.quantization import calibrate

    return calibrate
