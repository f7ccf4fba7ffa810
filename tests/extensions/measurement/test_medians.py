"""Intervals and trends, on numbers that are drawn and not measured."""

import math
import random

import pytest

from tiered.extensions.measurement.medians import (
    drift,
    fewest_for,
    median_interval,
    ratio_interval,
    spread,
)


def test_the_interval_of_twelve_is_from_the_second_to_the_eleventh() -> None:
    found = median_interval([float(number) for number in range(12)])
    assert (found.low, found.median, found.high) == (1.0, 5.5, 10.0)
    assert found.confidence == 1 - 2 * 13 / 2**12


def test_a_sample_that_is_too_small_gives_its_range_and_how_little_that_says() -> None:
    assert median_interval([3.0]) == (3.0, 3.0, 3.0, 0.0)
    assert median_interval([2.0, 1.0]) == (1.0, 1.5, 2.0, 0.5)
    assert median_interval([float(number) for number in range(7)]).confidence < 0.99
    assert fewest_for() == 8
    assert fewest_for(0.95) == 6


def test_a_large_sample_has_an_interval_of_its_middle() -> None:
    found = median_interval([float(number) for number in range(101)], 0.95)
    assert (found.low, found.median, found.high) == (40.0, 50.0, 60.0)
    assert found.confidence >= 0.95


@pytest.mark.parametrize("count", [8, 12, 25])
def test_the_interval_holds_the_true_median_as_often_as_it_says(count: int) -> None:
    drawn, trials = random.Random(count), 2000
    samples = ([drawn.lognormvariate(0, 1) for _ in range(count)] for _ in range(trials))
    found = [median_interval(sample) for sample in samples]
    share = sum(each.low <= 1 <= each.high for each in found) / trials
    assert share >= 0.985
    assert found[0].confidence >= 0.99


def test_a_ratio_is_that_of_logarithms_either_way() -> None:
    differences = [math.log(ratio) for ratio in (1.1, 1.2, 1.3, 1.5)]
    one, other = ratio_interval(differences), ratio_interval([-each for each in differences])
    assert (one.low, one.high) == pytest.approx((1.1, 1.5))
    assert 1.2 < one.median < 1.3
    assert (1 / other.high, 1 / other.median) == pytest.approx((one.low, one.median))
    assert one.confidence == 1 - 2 / 2**4
    assert ratio_interval([0.0]) == (1.0, 1.0, 1.0, 0.0)


def test_signed_ranks_leave_out_what_the_table_says() -> None:
    # For 12 pairs the lower end at 99 % is the 8th mean: P(T <= 7) = 19/4096 in tables.
    differences = [float(number) for number in range(12)]
    means = sorted((a + b) / 2 for a in range(12) for b in range(a, 12))
    found = ratio_interval(differences)
    assert found.confidence == 1 - 2 * 19 / 2**12
    assert found.low == pytest.approx(math.exp(means[7]))
    assert found.high == pytest.approx(math.exp(means[-8]))


@pytest.mark.parametrize("count", [8, 12, 25])
def test_the_interval_of_a_ratio_holds_1_for_equal_models(count: int) -> None:
    drawn, trials = random.Random(count), 1000
    samples = ([drawn.gauss(0, 1) ** 3 for _ in range(count)] for _ in range(trials))
    found = [ratio_interval(sample) for sample in samples]
    assert sum(each.low <= 1 <= each.high for each in found) >= 0.98 * trials
    assert found[0].confidence >= 0.99


def test_a_machine_that_slows_down_is_noticed() -> None:
    assert drift([1 + at / 50 for at in range(12)]) == pytest.approx(1.19 / 1.03)
    assert drift([1 - at / 50 for at in range(12)]) == pytest.approx(0.81 / 0.97)


def test_what_is_no_trend_or_a_small_one_is_no_drift() -> None:
    assert drift([1.0] * 12) is None
    assert drift([1 + at / 2000 for at in range(12)]) is None
    assert drift([1.0, 2.0, 3.0]) is None
    assert drift([1.0, 1.5] * 6) is None
    drawn = random.Random(1)
    noise = [[drawn.lognormvariate(0, 0.2) for _ in range(12)] for _ in range(500)]
    assert sum(drift(each) is not None for each in noise) <= 10


def test_rounds_that_differ_are_noticed() -> None:
    assert spread([1.0, 1.5] * 6) == pytest.approx(0.4)
    assert spread([1.0, 1.01] * 6) is None
    assert spread([1.0, 2.0]) is None
