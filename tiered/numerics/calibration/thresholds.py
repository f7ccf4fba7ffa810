"""Where a range ends: percentiles and entropy as onnxruntime computes them, or least squares.

This is the adapter to onnxruntime.quantization.calibrate: its histograms, percentiles and entropy
take names and arrays, print on stdout, and fail where a range is 0, infinite, or grows by many
orders of magnitude. Here they get finite numbers, silence, and ranges of the same order.
"""

from __future__ import annotations

import contextlib
import io
from functools import cache
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

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
        self.edges: Array = np.linspace(-1, 1, bins + 1)
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
        if not self.limit or limit > _MOST_GROWTH * self.limit:
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
    """Return the range with the least squared error of numbers that are rounded to so many steps.

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
