"""Budgets: how outputs are measured, and what has to return to float."""

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tiered.errors import UsageError
from tiered.precision.budget import Budget, budget_of, fewest_returned


def floats(*numbers: float) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    return np.array(numbers, np.float32)


X = floats(3, 4, 0, 0)


def measured(metric: str, *values: object, expected: np.ndarray[Any, Any] = X) -> float:
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
    assert budget.measure(expected, actual) == pytest.approx(0.01)
    assert budget.measure(expected, {"a": actual["a"]}) == math.inf
    assert budget.measure({}, {}) == 0
    assert budget.measure({"e": np.zeros((0, 2), np.float32)}, {"e": np.zeros((0, 2))}) == 0


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

    found = fewest_returned(range(100), measure, BUDGET)
    assert (found.items, found.holds, found.measured) == (tuple(range(needed)), True, 0.05)
    assert found.runs <= 16


def test_a_budget_that_cannot_be_met() -> None:
    found = fewest_returned("abc", lambda items: math.nan, BUDGET)
    assert (found.items, found.holds, found.runs) == (("a", "b", "c"), False, 4)


def test_more_need_not_be_better() -> None:
    numbers = {0: 1, 1: 1, 2: 0.5, 3: 0.01, 4: 0.1, 5: 1}
    found = fewest_returned(range(5), lambda items: numbers[len(items)], BUDGET)
    assert (len(found.items), found.measured) == (3, 0.01)
