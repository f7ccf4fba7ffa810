"""Promises: what they say, and what several of them promise together."""

import math

import numpy as np
import pytest

from tiered.support.numerics import (
    EXACT,
    FEW_BITS,
    LEVEL_OF,
    QUANTIZED,
    Metric,
    Numerics,
    Promise,
    decibels,
    is_within,
    loosest,
)

LOSSY, CLOSE = Numerics.LOSSY, Numerics.REASSOCIATING


def metric(name: str, low: float, high: float) -> Metric:
    return Metric(name, lambda expected, actual: 0.0, low, high)


def test_classes_are_ordered_from_the_strictest() -> None:
    order = list(Numerics)
    for at, one in enumerate(order):
        assert [is_within(one, other) for other in order] == [at <= to for to in range(4)]
    assert [LEVEL_OF[each] for each in order] == [0, 3, 4, None]


@pytest.mark.parametrize(
    ("promise", "text"),
    [
        (EXACT, "exact"),
        (Promise(CLOSE, rtol=1e-3, atol=0.0), "reassociating (rtol 0.001, atol 0)"),
        (Promise(LOSSY, metric=metric("sqnr", 20, math.inf)), "lossy (sqnr in [20, inf])"),
        (Promise(CLOSE, steps=8), "reassociating (integers within 8)"),
        (
            Promise(CLOSE, target=Promise(LOSSY, rtol=0.5)),
            "reassociating (or, on the target, lossy (rtol 0.5))",
        ),
    ],
)
def test_a_promise_is_said_with_its_limits(promise: Promise, text: str) -> None:
    assert str(promise) == text


def test_nothing_promised_is_exact() -> None:
    assert loosest([]) == EXACT


def test_the_loosest_class_counts_and_its_widest_limits() -> None:
    one = Promise(CLOSE, rtol=1e-3, atol=1e-5, steps=1)
    other = Promise(CLOSE, rtol=1e-4, atol=1e-2, steps=3)
    assert loosest([one, other, Promise(rtol=9.0)]) == Promise(CLOSE, rtol=1e-3, atol=1e-2, steps=3)
    assert loosest([one, Promise(LOSSY)]) == Promise(LOSSY)


def test_a_tolerance_that_one_leaves_to_its_class_is_that_of_the_class() -> None:
    found = loosest([Promise(CLOSE, rtol=1e-3, atol=1e-5), Promise(CLOSE, atol=1e-2)])
    assert (found.rtol, found.atol) == (None, 1e-2)


def test_metrics_of_one_name_get_the_widest_range() -> None:
    same = [Promise(LOSSY, metric=metric("cosine", low, high)) for low, high in ((0, 2), (1, 3))]
    found = loosest(same).metric
    assert found is not None
    assert (found.low, found.high) == (0, 3)
    assert loosest([*same, Promise(LOSSY, metric=metric("sqnr", 0, 1))]).metric is None


@pytest.mark.parametrize(
    ("expected", "actual", "value"),
    [
        ([1, 2, 4], [1, 2, 4], 0.0),
        ([1, 2, 4], [1, 2, 4.75], 0.0625),
        ([1, 2, 4, math.inf], [1, 2, 4.75, 0], 0.0625),
        ([math.nan], [1], 0.0),
    ],
)
def test_the_mean_difference_of_quantised_results_is_by_the_largest_number(
    expected: list[float], actual: list[float], value: float
) -> None:
    assert QUANTIZED.metric is not None
    assert QUANTIZED.metric.function(expected, actual) == value


@pytest.mark.parametrize(
    ("expected", "actual", "value"),
    [
        ([3, 4], [3, 4], math.inf),
        ([30, 40], [33, 44], 20.0),
        ([0, 0], [1, 0], -math.inf),
        ([30, 40, math.nan], [33, 44, 1], 20.0),
    ],
)
def test_the_signal_to_noise_of_few_bits_is_in_decibels(
    expected: list[float], actual: list[float], value: float
) -> None:
    assert FEW_BITS.metric is not None
    found = FEW_BITS.metric.function(*(np.array(each, np.float32) for each in (expected, actual)))
    assert found == pytest.approx(value)


@pytest.mark.parametrize(
    ("signal", "noise", "expected"),
    [
        (25, 0.25, 20), (0.25, 25, -20), (1, 0, math.inf), (0, 0, math.inf), (0, 1, -math.inf),
        (1, math.inf, -math.inf), (1e-200, 1e200, -math.inf), (1, math.nan, -math.inf),
        (math.inf, math.inf, -math.inf), (math.inf, 1, math.inf),
    ],
)  # fmt: skip
def test_energies_beyond_numbers_have_decibels_too(
    signal: float, noise: float, expected: float
) -> None:
    assert decibels(signal, noise) == pytest.approx(expected)
