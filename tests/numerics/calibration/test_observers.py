"""Observers: which numbers count, and the range that follows by each method."""

import math

import numpy as np
import pytest

from tiered.numerics.calibration.observers import (
    METHODS,
    Clipped,
    Histogram,
    Method,
    MinMax,
    Seen,
    entropy_range,
    mse_range,
    observer_of,
    percentile_range,
    ranges_of,
)
from tiered.support.errors import UsageError


def floats(*numbers: float) -> np.ndarray:
    return np.array(numbers, np.float32)


def test_the_least_and_the_largest_number_of_all_samples() -> None:
    observer = MinMax()
    assert observer.bounds() == (0, 0)
    observer.observe(floats(1))
    assert observer.bounds() == (1, 1)
    observer.observe(floats(1, -2))
    observer.observe(floats(3))
    assert observer.bounds() == (-2, 3)


def test_what_is_no_number_is_counted_and_left_out() -> None:
    seen = Seen(MinMax(), mask=-1e4, largest=1e6)
    seen.observe(floats(1, math.nan, -5e4, 2e6, math.inf, -3))
    seen.observe(floats(-1e7))
    found = seen.range()
    assert (found.low, found.high, found.least, found.most) == (-3, 1, -3, 1)
    assert (found.seen, found.masked, found.oversized) == (2, 5, 1)


def test_limits_are_no_numbers() -> None:
    for mask, numbers, counts in (
        (-1e4, (-1e4, -9999, 999_999, 1e6), (2, 2, 1)),
        (-1e7, (-1e7, -1e6, 1), (1, 2, 1)),  # a mask is not oversized
        (-np.inf, (-2e6, 1), (1, 1, 1)),
    ):
        seen = Seen(MinMax(), mask=mask, largest=1e6)
        seen.observe(floats(*numbers).reshape(1, -1))
        found = seen.range()
        assert (found.seen, found.masked, found.oversized) == counts, mask


def test_without_a_mask_low_numbers_count() -> None:
    seen = Seen(MinMax(), mask=-np.inf, largest=1e6)
    seen.observe(floats(-5e4, 1).astype(np.float64))
    assert seen.range().low == -5e4
    assert (seen.range().seen, seen.range().masked) == (2, 0)


def test_a_value_without_numbers_has_no_range() -> None:
    full, empty = (Seen(MinMax(), -np.inf, 1e6) for _ in range(2))
    full.observe(floats(1))
    empty.observe(floats(math.nan))
    assert list(ranges_of({"full": full, "empty": empty})) == ["full"]


@pytest.mark.parametrize("method", METHODS)
def test_each_method_has_an_observer_whose_range_holds_most_numbers(method: Method) -> None:
    numbers = np.random.default_rng(0).normal(size=4000).astype(np.float32)
    observer = observer_of(method, 99.0, 255)
    observer.observe(numbers)
    low, high = observer.bounds()
    assert numbers.min() <= low < -1.5
    assert 1.5 < high <= numbers.max() * 1.01
    assert observer_of(method, 99.0, 255).bounds() == (0, 0)


def test_each_method_finds_its_own_range() -> None:
    numbers = np.random.default_rng(0).laplace(size=4000).astype(np.float32)
    few, many = Histogram(128), Histogram(2048)
    for histogram in (few, many):
        histogram.add(numbers)
    expected = {
        "minmax": (float(numbers.min()), float(numbers.max())), "entropy": entropy_range(few),
        "percentile": percentile_range(many, 99.0), "mse": mse_range(many, 15),
    }  # fmt: skip
    assert entropy_range(many) != expected["entropy"]
    for method in METHODS:
        observer = observer_of(method, 99.0, 15)
        observer.observe(numbers)
        assert observer.bounds() == expected[method]
        assert isinstance(observer, MinMax if method == "minmax" else Clipped)


def test_another_method_is_an_error() -> None:
    with pytest.raises(UsageError, match="no calibration method 'minmx'; did you mean 'minmax'"):
        observer_of("minmx", 99.0, 255)  # type: ignore[arg-type]  # no method


def test_bins_keep_all_counts_while_the_range_grows() -> None:
    histogram = Histogram(16)
    total = 0
    for limit in (0.5, 0.6, 3.0, 100.0, 1.0):
        histogram.add(np.linspace(-limit, limit, 50).astype(np.float32))
        total += 50
        assert histogram.total == total
        assert histogram.limit >= limit
        assert len(histogram.edges) == len(histogram.counts) + 1
        assert histogram.edges[0] == -histogram.edges[-1]
    assert (histogram.least, histogram.most) == (-100, 100)
    assert histogram.counts.size < 16 * 9 + 32


def test_old_bins_stay_in_place_for_a_little_growth() -> None:
    histogram = Histogram(8)
    histogram.add(floats(-1, 1, 0.9))
    width = histogram.edges[1] - histogram.edges[0]
    histogram.add(floats(1.6))
    assert histogram.edges[1] - histogram.edges[0] == pytest.approx(width)
    inside = np.abs(histogram.centers) < 1
    assert histogram.counts[inside].sum() == 3


def test_bins_keep_their_width_up_to_a_growth_by_8() -> None:
    for added, size, limit in (
        (1.0, 8, 1.0), (1.1, 10, 1.25), (1.25, 12, 1.5), (8.0, 66, 8.25), (8.5, 8, 8.5),
    ):  # fmt: skip
        histogram = Histogram(8)
        histogram.add(floats(1, 0.1))
        assert (histogram.counts.size, len(histogram.edges)) == (8, 9)
        histogram.add(floats(added))
        assert histogram.counts.size == size, added
        assert histogram.limit == pytest.approx(limit)


def test_zeros_alone_have_a_range() -> None:
    histogram = Histogram(8)
    histogram.add(floats(0, 0))
    assert histogram.total == 2
    assert histogram.limit > 0


def test_a_percentile_leaves_rare_numbers_out() -> None:
    histogram = Histogram(2048)
    histogram.add(np.append(np.linspace(-1, 1, 9999), 50).astype(np.float32))
    low, high = percentile_range(histogram, 99.9)
    assert -1.1 < low < -0.9
    assert 0.9 < high < 2
    assert percentile_range(histogram, 100.0)[1] == pytest.approx(50, rel=0.01)


def test_the_least_squared_error_clips_few_numbers_for_smaller_steps() -> None:
    histogram = Histogram(2048)
    histogram.add(np.append(np.random.default_rng(0).uniform(-1, 1, 100_000), 4).astype(np.float32))
    low, high = mse_range(histogram, 15)
    assert -1 <= low <= -0.8
    assert high < 4
    wide = mse_range(histogram, 1 << 16)
    assert wide[1] == pytest.approx(4)
    positive = Histogram(64)
    positive.add(floats(1, 2, 3))
    assert mse_range(positive, 255)[0] == 0
