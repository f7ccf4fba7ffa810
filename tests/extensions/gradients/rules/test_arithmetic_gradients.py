"""Gradients of arithmetic with broadcasting."""

from typing import Any

import numpy as np
import pytest

from tests.extensions.gradients.differences import check, gradients_of

BROADCAST = ["Add", "Div", "Max", "Min", "Mul", "Pow", "Sub", "Sum"]


@pytest.mark.parametrize("operator", BROADCAST)
def test_operands_that_are_repeated(operator: str) -> None:
    check(
        f"(double[3,4] a, double[2,1,4] b) => (double[2,3,4] y) {{ y = {operator}(a, b) }}",
        low=0.3, high=2,
    )  # fmt: skip


@pytest.mark.parametrize("operator", BROADCAST)
def test_operands_that_may_be_repeated_as_dims_are_named(operator: str) -> None:
    check(
        f"(double[N,4] a, double[B,M,K] b) => (double[B,P,Q] y) {{ y = {operator}(a, b) }}",
        low=0.3, high=2, feeds={"b": np.random.default_rng(0).uniform(0.3, 2, (2, 1, 4))},
    )  # fmt: skip


def test_mean_of_operands() -> None:
    text = "(double[3,4] a, double[3,1] b) => (double[3,4] y) { y = Mean(a, b) }"
    check(text)


@pytest.mark.parametrize(
    "text",
    [
        "(double[3,4] a) => (double[3,4] y) { y = Mul(a, a) }",
        "(double[3,4] a) => (double[3,4] y) <int64 b = {3}> { y = Pow(a, b) }",
        "(double[3,4] a, double[4] b) => (double[3,4] y) { y = Mod <fmod = 1> (a, b) }",
        "(bool[3,1] c, double[3,4] a, double[4] b) => (double[3,4] y) { y = Where(c, a, b) }",
        "(double[3,4] x, double[4] s) => (double[3,4] y) { y = PRelu(x, s) }",
    ],
)
def test_more_arithmetic(text: str) -> None:
    check(text)


BY_HAND: dict[str, tuple[list[float], list[float] | None]] = {
    "Add(a, b)": ([1, 10, 100], [111]),
    "Sub(a, b)": ([1, 10, 100], [-111]),
    "Mul(a, b)": ([2, 20, 200], [1 + 20 + 400]),
    "Div(a, b)": ([0.5, 5, 50], [-(1 + 20 + 400) / 4]),
    "Sum(a, b, b)": ([1, 10, 100], [222]),
    "Mean(a, b)": ([0.5, 5, 50], [55.5]),
    "Max(a, b)": ([0, 5, 100], [1 + 5]),
    "Max(a, a, b)": ([0, 20 / 3, 100], [1 + 10 / 3]),
    "Min(a, b)": ([1, 5, 0], [5 + 100]),
    "Max(a)": ([1, 10, 100], None),
    "Mod <fmod = 1> (a, b)": ([1, 10, 100], [-(10 * 1 + 100 * 2)]),
}
"""The gradients of a = [1, 2, 4] and b = [2], weighed by 1, 10 and 100."""


@pytest.mark.parametrize("call", BY_HAND)
def test_gradients_by_hand(call: str) -> None:
    of_a, of_b = BY_HAND[call]
    operand = "" if of_b is None else ", double[1] b"
    text = f"(double[3] a{operand}) => (double[3] y) {{ y = {call} }}"
    feeds: dict[str, Any] = {"a": [1, 2, 4], **({} if of_b is None else {"b": [2]})}
    found = gradients_of(text, seed=[1, 10, 100], **feeds)
    np.testing.assert_allclose(found["a"], of_a)
    if of_b is not None:
        np.testing.assert_allclose(found["b"], of_b)


def test_a_nan_among_operands_of_max_gets_no_gradient_and_leaves_no_nan() -> None:
    text = "(double[2] a, double[2] b) => (double[2] y) { y = Max(a, b) }"
    found = gradients_of(text, a=[np.nan, 1], b=[0, 2], seed=[1, 10])
    np.testing.assert_array_equal(found["a"], [0, 0])
    np.testing.assert_array_equal(found["b"], [0, 10])


def test_powers_of_and_to_zero() -> None:
    text = "(double[4] a, double[4] b) => (double[4] y) { y = Pow(a, b) }"
    with np.errstate(invalid="ignore"):  # 0 times an Inf that is not selected
        found = gradients_of(text, a=[0, 0, 2, 2], b=[0, 2, 0, 3], seed=[1, 10, 100, 1000])
    np.testing.assert_allclose(found["a"], [0, 0, 0, 12000])
    np.testing.assert_allclose(found["b"], [0, 0, 100 * np.log(2), 8000 * np.log(2)])


@pytest.mark.parametrize(("base", "exponent"), [("double", "float"), ("float", "double")])
def test_an_exponent_of_another_dtype_gets_a_gradient_of_its_own(base: str, exponent: str) -> None:
    text = f"({base}[2] a, {exponent}[2] b) => ({base}[2] y) {{ y = Pow(a, b) }}"
    found = gradients_of(text, a=[2, 3], b=[3, 2])
    assert found["a"].dtype.name == {"double": "float64", "float": "float32"}[base]
    assert found["b"].dtype.name == {"double": "float64", "float": "float32"}[exponent]
    np.testing.assert_allclose(found["a"], [12, 6], rtol=1e-6)
    np.testing.assert_allclose(found["b"], [8 * np.log(2), 9 * np.log(3)], rtol=1e-6)


def test_each_side_of_a_condition_gets_its_elements() -> None:
    text = "(bool[3] c, double[3] a, double b) => (double[3] y) { y = Where(c, a, b) }"
    found = gradients_of(text, c=[True, False, True], a=[1, 2, 3], b=4, seed=[1, 10, 100])
    np.testing.assert_array_equal(found["a"], [1, 0, 100])
    assert found["b"] == 10


def test_an_inf_that_is_not_chosen_leaves_no_nan() -> None:
    text = "(bool[2] c, double[2] a, double[2] b) => (double[2] y) { y = Where(c, a, b) }"
    found = gradients_of(text, c=[True, False], a=[1, 2], b=[3, 4], seed=[np.inf, np.inf])
    np.testing.assert_array_equal(found["a"], [np.inf, 0])
    np.testing.assert_array_equal(found["b"], [0, np.inf])
