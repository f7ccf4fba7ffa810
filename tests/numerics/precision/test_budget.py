"""Budgets: how outputs are measured, and what has to return to float."""

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tiered.numerics.precision.budget import Budget, budget_of, is_less_finite, meet
from tiered.support.errors import UsageError, VerificationError


def floats(*numbers: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array(numbers, np.float32)


X = floats(3, 4, 0, 0)


def measured(metric: str, *values: object, expected: np.ndarray[Any, Any] = X) -> float | None:
    limit = ">=" if metric in ("cosine", "sqnr") else "<="
    actual = np.array(values[0])
    return budget_of(f"{metric}{limit}0").measure({"y": expected}, {"y": actual})


@pytest.mark.parametrize("text", ["cosine>=0.99999999", "relative<=1e-06", "sqnr>=40"])
def test_a_budget_is_printed_as_it_is_typed(text: str) -> None:
    assert str(budget_of(text)) == text


@pytest.mark.parametrize(
    ("metric", "number"),
    [
        ("cosine", 25 / (5 * math.sqrt(26))),
        ("sqnr", 20 * math.log10(5)),
        ("relative", 0.2),
        ("max_abs", 1.0),
        ("mean_abs", 0.25),
    ],
)
def test_metrics(metric: str, number: float) -> None:
    assert measured(metric, [3, 4, 1, 0]) == pytest.approx(number)
    best = {"cosine": 1, "sqnr": math.inf}.get(metric, 0)
    assert measured(metric, [3, 4, 0, -0.0]) == best


@pytest.mark.parametrize(
    "actual", [[3, 4, 0], [3, 4, 0, np.nan], [3, 4, 0, np.inf], [[3, 4, 0, 0]]]
)
def test_other_shapes_and_new_nans_are_the_worst(actual: list[float]) -> None:
    assert measured("cosine", actual) == -1
    assert measured("relative", actual) == math.inf


def test_nan_and_inf_must_stay() -> None:
    special = np.array([np.nan, np.inf, -np.inf, 2], np.float32)
    assert measured("cosine", [np.nan, np.inf, -np.inf, 2], expected=special) == 1
    assert measured("cosine", [np.nan, -np.inf, -np.inf, 2], expected=special) == -1
    assert measured("cosine", [0, np.inf, -np.inf, 2], expected=special) == -1


def test_the_worst_output_counts_and_the_expected_side_is_not_rounded() -> None:
    budget = budget_of("max_abs<=0.5")
    expected = {"a": floats(1.01), "b": floats(2), "n": np.array([3])}
    actual = {"a": np.array([1], ml_dtypes.bfloat16), "b": floats(2), "n": np.array([4])}
    assert budget.measure(expected, actual) == 1
    assert budget.measure(expected, {**actual, "n": expected["n"]}) == pytest.approx(0.01)
    assert budget.measure(expected, {"a": actual["a"]}) == math.inf


def test_without_an_element_nothing_is_measured() -> None:
    budget = budget_of("max_abs<=0.5")
    empty, nans = np.zeros((0, 2), np.float32), floats(np.nan)
    assert budget.measure({}, {}) is None
    assert budget.measure({"e": empty, "n": nans}, {"e": empty, "n": nans}) is None
    assert budget.measure({"i": np.zeros(0, np.int64)}, {"i": np.zeros(0, np.int64)}) is None
    assert budget.worst_of([None, 0.25, None]) == 0.25
    assert budget.worst_of([None]) is None
    with pytest.raises(VerificationError, match="no output was measured"):
        meet("abc", lambda items: None, budget, "products")


@pytest.mark.parametrize(
    ("metric", "alone", "beside"),
    [
        ("relative", 0.25, 0.25),
        ("mean_abs", 0.25, 0.25),
        ("max_abs", 1, 1),
        ("cosine", -1, 0.75),
        ("sqnr", -math.inf, 20 * math.log10(4)),
    ],
)
def test_elements_of_integers_that_differ_count(metric: str, alone: float, beside: float) -> None:
    for dtype in (np.int64, bool, object):
        same, other = np.array([[0, 1, 1, 1]], dtype), np.array([[0, 1, 1, 0]], dtype)
        assert measured(metric, other, expected=same) == alone
        assert measured(metric, same, expected=same) == measured(metric, X)
        limit = ">=" if metric in ("cosine", "sqnr") else "<="
        budget = budget_of(f"{metric}{limit}0")
        found = budget.measure({"y": X, "i": same}, {"y": X, "i": other})
        assert found == pytest.approx(beside)


@pytest.mark.parametrize("metric", ["cosine", "sqnr", "relative", "max_abs", "mean_abs"])
def test_equal_integers_say_nothing_of_floats_without_a_number(metric: str) -> None:
    """Else every budget would hold on a sample of NaN, beside an output such as a Shape."""
    budget = budget_of(f"{metric}{'>=' if metric in ('cosine', 'sqnr') else '<='}0")
    whole = np.array([4, 5])
    lost = {"y": floats(math.nan, math.inf), "n": whole}
    assert budget.measure(lost, lost) is None
    assert budget.measure(lost, {**lost, "n": whole + 1}) is not None
    empty = {"y": floats(), "n": whole}
    assert budget.holds(budget.measure(empty, empty) or 0.0)


def test_sequences_count_by_element() -> None:
    budget = budget_of("relative<=0")
    assert budget.measure({"s": [X, X]}, {"s": [X, X]}) == 0
    assert budget.measure({"s": [X, floats(1)]}, {"s": [X, floats(1.5)]}) == 0.5
    assert budget.measure({"s": [X]}, {"s": [X, X]}) == math.inf
    assert budget.measure({"s": []}, {"s": [X]}) == math.inf


def test_zeros_that_become_numbers() -> None:
    zeros = np.zeros(4, np.float32)
    assert measured("relative", [0, 0, 0, 1], expected=zeros) == math.inf
    assert measured("sqnr", [0, 0, 0, 1], expected=zeros) == -math.inf
    assert measured("cosine", [0, 0, 0, 1], expected=zeros) == 0


def test_a_budget_is_read_and_printed() -> None:
    assert budget_of(" cosine >= 0.999 ") == Budget("cosine", 0.999)
    assert str(budget_of("relative<=1e-3")) == "relative<=0.001"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0.999", "is no budget"),
        ("accuracy>=1", "metrics: cosine"),
        ("cosine<=0.9", "is written cosine>=0.9"),
        ("relative>=0.9", "is written relative<=0.9"),
        ("cosine>=high", "'high' is no number"),
        ("cosine>=nan", "NaN"),
    ],
)
def test_what_is_no_budget(text: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        budget_of(text)


BUDGET = budget_of("relative<=0.1")


@pytest.mark.parametrize("needed", [0, 1, 2, 3, 7, 64, 99, 100])
def test_the_fewest_are_returned_in_few_runs(needed: int) -> None:
    def measure(items: Sequence[int]) -> float:
        return 0.05 if len(items) >= needed else 1

    found = meet(range(100), measure, BUDGET, "nodes")
    assert (found.items, found.measured) == (tuple(range(needed)), 0.05)
    assert found.runs <= 16


def test_a_budget_that_cannot_be_met() -> None:
    said = "the budget relative<=0.1 cannot be met: relative is nan with all 3 products in float"
    with pytest.raises(VerificationError, match=said):
        meet("abc", lambda items: math.nan, BUDGET, "products")


def test_more_need_not_be_better() -> None:
    numbers = {0: 1, 1: 1, 2: 0.5, 3: 0.01, 4: 0.1, 5: 1}
    found = meet(range(5), lambda items: numbers[len(items)], BUDGET, "nodes")
    assert (len(found.items), found.measured) == (3, 0.01)


@pytest.mark.parametrize(
    ("expected", "actual", "is_less"),
    [
        ([1.0, 2.0], [1.0, np.nan], True),
        ([1.0, 2.0], [np.inf, 2.0], True),
        ([1.0, np.inf], [1.0, 2.0], False),
        ([1.0, np.nan], [1.0, np.nan], False),
        ([1.0, 2.0], [np.nan], False),
    ],
)
def test_an_output_is_less_finite_where_numbers_become_none(
    expected: list[float], actual: list[float], is_less: bool
) -> None:
    a, b = (np.array(each, np.float32) for each in (expected, actual))
    assert is_less_finite(a, b) is is_less
    assert not is_less_finite(expected, actual), "lists are no tensors"
    assert not is_less_finite(a, actual)
    assert not is_less_finite(a.astype(np.float64), np.array([1, 2]))


def test_a_limit_holds_itself() -> None:
    assert budget_of("sqnr>=20").holds(20.0)
    assert not budget_of("sqnr>=20").holds(19.9)
    assert budget_of("relative<=0.1").holds(0.1)
    assert not budget_of("relative<=0.1").holds(0.2)
