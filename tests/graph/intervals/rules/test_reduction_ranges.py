"""Ranges of reductions and pools: bounds for the number of elements that come together."""

import math

import pytest

from tests.graph.intervals.rules.of_integers import Limits, assert_bounds, interval_of

INT = 6
AXES = "int64[1] first = {0}, int64[1] last = {-1}, int64 one = {1}, int64[0] none = {},"


@pytest.mark.parametrize(
    ("call", "limits", "expected"),
    [
        ("ReduceSum(a, last)", (-1, 2), (-3, 6)),
        ("ReduceSum(a, first)", (-1, 2), (-2, 4)),
        ("ReduceSum(a)", (-1, 2), (-6, 12)),
        ("ReduceSum<noop_with_empty_axes = 1>(a)", (-1, 2), (-1, 2)),
        ("ReduceSum(a, last)", (1, 2), (3, 6)),
        ("ReduceSumSquare(a, last)", (-1, 2), (0, 12)),
        ("ReduceL1(a, last)", (-3, 2), (0, 9)),
        ("ReduceL2(a, last)", (-3, 2), (0, math.sqrt(27))),
        ("ReduceMean(a, last)", (-3, 2), (-3, 2)),
        ("ReduceMean(a, last)", (0, 2), (0, 2)),
        ("ReduceMax(a, last)", (-3, 2), (-3, 2)),
        ("ReduceMin(a, last)", (-3, 2), (-3, 2)),
        ("ReduceProd(a, last)", (-3, 2), (-27, 27)),
        ("ReduceProd(a, last)", (1, 2), (0, 8)),
        ("CumSum(a, one)", (-1, 2), (-3, 6)),
        ("CumSum(a, one)", (1, 2), (0, 6)),
    ],
)
def test_the_bounds_follow_the_sizes_of_the_reduced_axes(
    call: str, limits: Limits, expected: tuple[float, float]
) -> None:
    found = interval_of(f"y = {call}", limits, dims="2,3", more=AXES)
    assert_bounds(found, expected, error=1e-3)


@pytest.mark.parametrize(
    ("call", "limits", "expected"),
    [
        ("ReduceSum(a, last)", (-1, 2), (-3, 6)),
        ("ReduceProd(a, last)", (-3, 2), (-27, 27)),
        ("ReduceProd(a, last)", (0, 2), (0, 8)),
        ("ReduceMean(a, last)", (-1, 2), (-1, 2)),
        ("ReduceL2(a, last)", (-1, 2), (-(2**31), 2**31 - 1)),
        ("ReduceProd(a, last)", (0, 2000), (-(2**31), 2**31 - 1)),
        ("ReduceMean(a, last)", (0, 2**31 - 1), (-(2**31), 2**31 - 1)),
        ("ReduceMean(a, last)", (-(2**31), 0), (-(2**31), 2**31 - 1)),
    ],
)
def test_the_bounds_of_integers_are_exact_or_those_of_the_dtype(
    call: str, limits: Limits, expected: Limits
) -> None:
    found = interval_of(f"y = {call}", limits, dims="2,3", more=AXES, dtype=INT)
    assert (found.low, found.high) == expected


def test_the_mean_of_one_integer_is_that_integer() -> None:
    for limits in ((0, 2**31 - 1), (-(2**31), 0)):
        found = interval_of("y = ReduceMean(a, last)", limits, dims="3,1", more=AXES, dtype=INT)
        assert (found.low, found.high) == limits


def test_nan_makes_nan() -> None:
    for call in (
        "ReduceMean(n, last)", "ReduceMax(n, last)", "ReduceProd(n, last)",
        "MaxPool<kernel_shape = [1]>(n)", "ReduceSum(n, last)", "ReduceL2(n, last)",
    ):  # fmt: skip
        dims = "1,2,3" if "Pool" in call else "2,3"
        found = interval_of(f"n = Sqrt(a)  y = {call}", (-1, 4), dims=dims, more=AXES)
        assert found.may_be_nan, call
    for call in ("ReduceMax(n, last)", "ReduceProd(n, last)"):
        found = interval_of(f"n = Sqrt(a)  y = {call}", (-1, 4), dims="2,3", more=AXES)
        assert (found.low, found.high) == (-math.inf, math.inf), call


def test_an_axis_of_a_running_sum_that_is_not_known_may_be_any() -> None:
    nodes = "m = ReduceMax<keepdims = 0>(b)  d = Cast<to = 7>(m)  y = CumSum(a, d)"
    found = interval_of(nodes, (1, 2), (0, 1), dims="2,3")
    assert_bounds(found, (0, 12), error=1e-3)


@pytest.mark.parametrize("call", ["ReduceMax(a, last)", "ReduceMean(a, last)"])
def test_an_axis_without_elements_has_no_maximum_and_no_mean(call: str) -> None:
    found = interval_of(f"y = {call}", (0, 1), dims="2,0", more=AXES)
    assert found.may_be_nan


def test_an_unknown_axis_may_be_any() -> None:
    found = interval_of("y = ReduceSum(a, b)", (1, 2), (0, 1), dims="3", dtype=7)
    assert found.low in (0, 1)
    assert found.high == 6


def test_a_sum_of_many_dims_of_unknown_size_has_a_bound() -> None:
    found = interval_of("y = ReduceSum(a, last)", (1, 2), dims="2,N", more=AXES)
    assert 2 < found.high < 1e12
    assert 0 <= found.low <= 1


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("GlobalAveragePool(a)", (1, 4)),
        ("GlobalMaxPool(a)", (1, 4)),
        ("AveragePool<kernel_shape = [2,2]>(a)", (0, 4)),
        ("MaxPool<kernel_shape = [2,2]>(a)", (1, 4)),
        ("MaxPool<kernel_shape = [2,2], pads = [1,1,1,1]>(a)", (1, 4)),
    ],
)
def test_pools_stay_between_the_elements(call: str, expected: Limits) -> None:
    assert_bounds(interval_of(f"y = {call}", (1, 4), dims="1,2,4,4"), expected)


@pytest.mark.parametrize(
    "attributes",
    [
        "kernel_shape = [2,2], pads = [2,0,0,0]",
        "kernel_shape = [2,2], ceil_mode = 1",
        "kernel_shape = [2,2], dilations = [2,1]",
    ],
)
def test_a_window_that_may_lie_in_the_padding_has_no_bounds(attributes: str) -> None:
    found = interval_of(f"y = MaxPool<{attributes}>(a)", (1, 4), dims="1,2,4,4")
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_places_of_maxima_count_through_the_tensor() -> None:
    nodes = "m, y = MaxPool<kernel_shape = [2,2]>(a)"
    found = interval_of(nodes, (1, 4), dims="1,2,4,4")
    assert (found.low, found.high) == (0, 31)


def test_sums_and_means_that_overflow_may_be_infinite() -> None:
    more = AXES + "float large = {3e38},"
    for call in ("ReduceSum(b, last)", "ReduceMean(b, last)", "ReduceL2(b, last)"):
        nodes = f"b = Mul(a, large)  y = {call}"
        assert interval_of(nodes, (0, 1), dims="2,3", more=more).high == math.inf
    nodes = "b = Mul(a, large)  y = ReduceMean(b, last)"
    assert interval_of(nodes, (-1, 0), dims="2,3", more=more).low == -math.inf
    nodes = "b = Mul(a, large)  y = ReduceSum(b, last)"
    assert interval_of(nodes, (-1, 1), dims="2,3", more=more).may_be_nan
    assert not interval_of(nodes, (0, 1), dims="2,3", more=more).may_be_nan


@pytest.mark.parametrize(
    ("call", "dims", "limits", "expected"),
    [
        ("ReduceProd(a)", "64", (0, 1), (0, 1)),
        ("ReduceProd(a)", "65", (0, 1), (-math.inf, math.inf)),
        ("ReduceProd(a)", "62", (0, 2), (0, 2.0**62)),
        ("ReduceProd(a)", "63", (0, 2), (-math.inf, math.inf)),
        ("ReduceProd(a)", "2", (0, 1 << 15), (-math.inf, math.inf)),
        ("ReduceProd(a)", "2", (0, (1 << 15) - 1), (0, ((1 << 15) - 1) ** 2)),
        ("ReduceProd(a)", "2", (-1, 0), (-1, 1)),
        ("ReduceSum(a, none)", "2,3", (0, 1), (0, 6)),
        ("ReduceSum<noop_with_empty_axes = 1>(a, none)", "2,3", (0, 1), (0, 1)),
        ("AveragePool<kernel_shape = [2,2]>(a)", "1,1,4,4", (-4, -1), (-4, 0)),
    ],
)
def test_the_bounds_of_products_and_of_means_with_padding(
    call: str, dims: str, limits: Limits, expected: tuple[float, float]
) -> None:
    found = interval_of(f"y = {call}", limits, dims=dims, more=AXES)
    assert (found.low, found.high) == pytest.approx(expected, rel=1e-3, abs=1e-4)


def test_means_of_numbers_that_are_not_negative_are_not_negative() -> None:
    assert interval_of("y = ReduceMean(a, last)", (0, 2), dims="2,3", more=AXES).low == 0
    assert interval_of("y = ReduceMean(a, last)", (-1, 2), dims="2,3", more=AXES).low < -1


def test_pools_of_dims_in_doubt_have_no_bounds() -> None:
    for call, dims in (
        ("AveragePool<kernel_shape = [2,2], ceil_mode = 1>(a)", "1,2,4,4"),
        ("GlobalMaxPool(a)", "1,2,0,4"),
        ("GlobalMaxPool(a)", "1,2,N,4"),
        ("ReduceMax(a)", "0,4"),
    ):
        found = interval_of(f"y = {call}", (1, 4), dims=dims)
        assert (found.low, found.high) == (-math.inf, math.inf), call


def test_a_mean_of_integers_without_elements_has_no_bounds() -> None:
    found = interval_of("y = ReduceMean(a, last)", (-1, 2), dims="2,0", more=AXES, dtype=INT)
    assert (found.low, found.high) == (-(2**31), 2**31 - 1)


def test_axes_are_attributes_in_old_opsets() -> None:
    for call, high in (("ReduceMax<axes = [1]>(a)", 2), ("ReduceL1<axes = [1]>(a)", 6)):
        found = interval_of(f"y = {call}", (0, 2), dims="4,3", opset=13)
        assert found.high == pytest.approx(high, rel=1e-3)
