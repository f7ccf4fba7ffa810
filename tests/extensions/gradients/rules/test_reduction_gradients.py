"""Gradients of reductions, and of the largest elements."""

from typing import Any

import numpy as np
import pytest

from tests.extensions.gradients.differences import check, gradients_of

REDUCTIONS = ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
              "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"]  # fmt: skip


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize(("keepdims", "result"), [(0, "3,2"), (1, "3,1,2")])
def test_reductions(operator: str, keepdims: int, result: str) -> None:
    check(
        f"(double[3,4,2] x) => (double[{result}] y) <int64[1] axes = {{1}}> "
        f"{{ y = {operator} <keepdims = {keepdims}> (x, axes) }}",
        low=0.2, high=2,
    )  # fmt: skip


@pytest.mark.parametrize("operator", REDUCTIONS)
def test_reductions_of_all_axes(operator: str) -> None:
    check(f"(double[N,4] x) => (double y) {{ y = {operator} <keepdims = 0> (x) }}", low=0.2, high=2)


@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceSum", "ReduceMax"])
def test_reductions_of_axes_known_at_run_time(operator: str) -> None:
    check(
        f"(double[3,4,2] x, int64[1] axes) => (double[A,B] y) "
        f"{{ y = {operator} <keepdims = 0> (x, axes) }}",
        feeds={"axes": np.array([1])},
    )


def test_products_with_zeros() -> None:
    check(
        "(double[3,4] x) => (double[3] y) <int64[1] a = {1}> "
        "{ y = ReduceProd <keepdims = 0> (x, a) }",
        feeds={"x": np.array([[0, 2, 3, 4], [0, 0, 1, 2], [1, 2, 3, 4]])},
    )


X = [[0, 3, 4], [2, 2, 1]]

BY_HAND: dict[str, list[list[float]]] = {
    "ReduceSum": [[1, 1, 1], [10, 10, 10]],
    "ReduceMean": [[1 / 3] * 3, [10 / 3] * 3],
    "ReduceSumSquare": [[0, 6, 8], [40, 40, 20]],
    "ReduceL1": [[0, 1, 1], [10, 10, 10]],
    "ReduceL2": [[0, 0.6, 0.8], [20 / 3, 20 / 3, 10 / 3]],
    "ReduceLogSum": [[1 / 7] * 3, [2, 2, 2]],
    "ReduceMax": [[0, 0, 1], [5, 5, 0]],
    "ReduceMin": [[1, 0, 0], [0, 0, 10]],
    "ReduceProd": [[12, 0, 0], [20, 20, 40]],
}
"""The gradients of the rows of x, weighed by 1 and 10."""


@pytest.mark.parametrize("operator", BY_HAND)
@pytest.mark.parametrize(("keepdims", "result"), [(0, "2"), (1, "2,1")])
@pytest.mark.parametrize("axis", [1, -1])
def test_reductions_of_rows_by_hand(operator: str, keepdims: int, result: str, axis: int) -> None:
    text = (
        f"(double[2,3] x) => (double[{result}] y) <int64[1] a = {{{axis}}}> "
        f"{{ y = {operator} <keepdims = {keepdims}> (x, a) }}"
    )
    np.testing.assert_allclose(gradients_of(text, x=X, seed=[1, 10])["x"], BY_HAND[operator])


@pytest.mark.parametrize("empty", ["", "<int64[0] a = {}>"])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_no_axes_are_all_axes_or_none(empty: str, keepdims: int) -> None:
    operands = "x, a" if empty else "x"
    forms: list[tuple[int, str, Any]] = [
        (0, "1,1" if keepdims else "", 7), (1, "2,3", np.full((2, 3), 7))
    ]  # fmt: skip
    for noop, result, seed in forms:
        dims = f"[{result}]" if result else ""
        text = (
            f"(double[2,3] x) => (double{dims} y) {empty} {{ y = ReduceSumSquare "
            f"<keepdims = {keepdims}, noop_with_empty_axes = {noop}> ({operands}) }}"
        )
        found = gradients_of(text, x=X, seed=seed, in_float=True)["x"]
        np.testing.assert_array_equal(found, 14 * np.array(X))


def test_the_norm_of_zeros_has_the_gradient_zero() -> None:
    text = "(double[2,3] x) => (double[2,1] y) <int64[1] a = {1}> { y = ReduceL2(x, a) }"
    found = gradients_of(text, x=[[0, 0, 0], [3, 0, 4]])["x"]
    np.testing.assert_allclose(found, np.array([[0, 0, 0], [0.6, 0, 0.8]]))


def test_minus_infinities_alone_have_the_gradient_zero() -> None:
    text = """(float[3,2] x) => (float[3] y) <int64[1] a = {1}> {
        y = ReduceLogSumExp <keepdims = 0> (x, a) }"""
    x = [[-np.inf, -np.inf], [-np.inf, 1], [0, 0]]
    found = gradients_of(text, x=x, seed=[1, 10, 100], in_float=True)["x"]
    np.testing.assert_allclose(found, [[0, 0], [0, 10], [50, 50]], rtol=1e-6)


def test_a_nan_leaves_no_nan_in_the_gradient_of_a_maximum() -> None:
    text = """(double[2,2] x) => (double[2] y) <int64[1] a = {1}> {
        y = ReduceMax <keepdims = 0> (x, a) }"""
    found = gradients_of(text, x=[[1, np.nan], [2, 1]])["x"]
    np.testing.assert_array_equal(found, [[0, 0], [1, 0]])


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("operator", ["ReduceMax", "ReduceProd", "ReduceL1", "ReduceLogSumExp"])
def test_several_axes_known_at_run_time(operator: str, keepdims: int) -> None:
    result = "A,B,C" if keepdims else "A"
    check(
        f"(double[2,3,2] x, int64[2] a) => (double[{result}] y) "
        f"{{ y = {operator} <keepdims = {keepdims}> (x, a) }}",
        feeds={"a": np.array([2, 0])}, low=0.2, high=2,
    )  # fmt: skip


@pytest.mark.parametrize(("largest", "axis"), [(1, 1), (0, -1), (1, 0)])
def test_the_chosen_elements_get_the_gradient(largest: int, axis: int) -> None:
    result = "1,3" if axis == 0 else "2,1"
    text = (
        f"(double[2,3] x) => (double[{result}] y) <int64[1] k = {{1}}> "
        f"{{ y, i = TopK <axis = {axis}, largest = {largest}> (x, k) }}"
    )
    seed = [1, 10, 100] if axis == 0 else [1, 10]
    found = gradients_of(text, x=[[5, 3, 4], [2, 6, 1]], seed=seed)["x"]
    expected = {
        (1, 1): [[1, 0, 0], [0, 10, 0]],
        (0, -1): [[0, 1, 0], [0, 0, 10]],
        (1, 0): [[1, 0, 100], [0, 10, 0]],
    }[largest, axis]
    np.testing.assert_array_equal(found, expected)
