"""Intervals and trends, on numbers that are drawn and not measured."""

import math
import random
from collections.abc import Sequence

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
    assert fewest_for(0.0) == 1


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


def test_figures_of_samples() -> None:
    for kind, numbers, confidence, expected in (
        ("ratio_interval", [0.2, 0.5, -0.3, 0.4, 0.0, -0.3], 0.75, "0.8607 1.105 1.35 0.7812"),
        ("drift", [99, 100, 105, 102, 107, 113, 110, 120, 106, 105, 136, 95], 0.0, "None"),
        ("median_interval", [-0.3, -0.2, 0.5], 0.0, "-0.3 -0.2 0.5 0.75"),
        (
            "median_interval",
            [0.2, 0.4, 0.1, 0.1, 0.4, 0.3, -0.1, -0.2],
            0.95,
            "-0.2 0.15 0.4 0.9922",
        ),
        ("ratio_interval", [0.4, 0.2, -0.1], 0.5, "1.051 1.191 1.35 0.5"),
        (
            "ratio_interval",
            [0.3, 0.1, 0.5, 0.1, -0.3, 0.0, -0.1, 0.4, -0.1],
            0.75,
            "1 1.105 1.221 0.75",
        ),
        ("fewest", [], 0.75, "3"),
        ("drift", [98, 101, 101, 108, 110, 114, 118], 0.0, "None"),
        (
            "spread",
            [95, 110, 110, 100, 100, 105, 100, 105, 90, 100, 100, 105, 100, 95],
            0.0,
            "None",
        ),
        ("fewest", [], 0.875, "4"),
        (
            "drift",
            [94, 103, 103, 104, 100, 110, 101, 105, 110, 103, 143, 117, 129, 126],
            0.0,
            "1.2379",
        ),
        ("median_interval", [-0.3, -0.3, 0.0, -0.1, 0.5, 0.3], 0.75, "-0.3 -0.05 0.3 0.7812"),
        (
            "ratio_interval",
            [0.4, -0.3, -0.2, -0.1, 0.3, -0.3, 0.0, -0.3],
            0.5,
            "0.8187 0.9048 1 0.5391",
        ),
        (
            "drift",
            [106, 99, 104, 108, 110, 105, 126, 110, 111, 130, 96, 133, 142, 112],
            0.0,
            "None",
        ),
        ("drift", [142, 110, 110, 108, 124, 107, 113, 94, 103, 103, 100], 0.0, "None"),
        ("median_interval", [-0.2, 0.2, -0.2, -0.2, 0.2], 0.625, "-0.2 -0.2 0.2 0.625"),
        (
            "drift",
            [98, 102, 112, 97, 98, 105, 119, 105, 128, 132, 109, 113, 117, 141],
            0.0,
            "1.1500",
        ),
        ("spread", [95, 110, 95, 90, 100, 90, 90, 95, 105, 110, 110, 105, 90, 105], 0.0, "0.1667"),
        ("spread", [110, 100, 95, 110, 110], 0.0, "None"),
        ("drift", [142, 129, 120, 117, 112, 99, 122, 97, 109, 98, 105], 0.0, "0.8140"),
        ("drift", [96, 102, 110, 109, 118, 114, 124, 131], 0.0, "1.2879"),
        ("drift", [130, 126, 113, 101, 107, 113, 109, 98, 105, 95], 0.0, "0.7778"),
        ("spread", [105, 100, 95, 95, 100, 95, 95, 95, 90, 100, 105, 110, 105, 105], 0.0, "0.1000"),
        ("spread", [110, 105, 110, 95, 105, 95, 105, 90], 0.0, "0.1310"),
    ):
        found: float | Sequence[float] | None
        match kind:
            case "drift":
                found = drift(numbers)
            case "spread":
                found = spread(numbers)
            case "fewest":
                found = fewest_for(confidence)
            case "median_interval":
                found = median_interval(numbers, confidence)
            case _:
                found = ratio_interval(numbers, confidence)
        if isinstance(found, tuple):
            shown = " ".join(f"{number:.4g}" for number in found)
        else:
            shown = f"{found:.4f}" if isinstance(found, float) else str(found)
        assert shown == expected, (kind, numbers, confidence)
