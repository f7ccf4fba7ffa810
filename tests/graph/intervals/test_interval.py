"""Arithmetic of intervals: all results are inside, and no bound is wider than it must be."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import onnx
import pytest

from tiered import Interval
from tiered.graph import DataType, Tensor
from tiered.graph.intervals.interval import (
    ANY,
    absolute,
    add,
    clamp,
    divide,
    fit,
    hull,
    is_integer,
    meet,
    multiply,
    negative,
    of_tensor,
    square,
    sum_error,
    total,
    whole,
    widened,
)

INF, NAN = math.inf, math.nan
ENDS = [-INF, -3.0, -1.0, 0.0, 2.0, INF]
INTERVALS = [Interval(low, high) for low in ENDS for high in ENDS if low <= high]
FINITE = [each for each in INTERVALS if not each.may_be_inf]


def points(interval: Interval) -> list[float]:
    found = {
        interval.low,
        interval.high,
        *(each for each in (-2.0, 0.0, 1.0) if interval.has(each)),
    }
    return sorted(found) + ([-0.0] if interval.has(0) else [])


def results(function: Callable[[float, float], float], a: Interval, b: Interval) -> np.ndarray:
    with np.errstate(all="ignore"):
        pairs = itertools.product(points(a), points(b))
        return np.array([function(np.float64(x), np.float64(y)) for x, y in pairs])


@pytest.mark.parametrize(
    ("of_intervals", "of_numbers"),
    [
        (add, lambda x, y: x + y),
        (multiply, lambda x, y: x * y),
        (divide, lambda x, y: x / y),
    ],
)
def test_results_of_two_operands_are_inside_and_reach_the_bounds(
    of_intervals: Callable[[Interval, Interval], Interval],
    of_numbers: Callable[[float, float], float],
) -> None:
    for a, b in itertools.product(INTERVALS, INTERVALS):
        found, made = of_intervals(a, b), results(of_numbers, a, b)
        assert found.holds(made), (a, b, found)
        assert found.may_be_nan is bool(np.isnan(made).any()), (a, b)
        numbers = made[~np.isnan(made)]
        if a in FINITE and b in FINITE and np.isfinite(made).all():
            assert (found.low, found.high) == (numbers.min(), numbers.max()), (a, b)


@pytest.mark.parametrize(
    ("of_interval", "of_number"),
    [
        (negative, lambda x: -x),
        (square, lambda x: x * x),
        (absolute, abs),
        (lambda a: clamp(a, -1, 1), lambda x: min(max(x, -1), 1)),
    ],
)
def test_results_of_one_operand_are_inside_and_reach_the_bounds(
    of_interval: Callable[[Interval], Interval], of_number: Callable[[float], float]
) -> None:
    for a in INTERVALS:
        made = [of_number(x) for x in points(a)]
        assert of_interval(a) == Interval(min(made), max(made)), a
        assert of_interval(a.with_nan(True)).may_be_nan


def test_nan_of_an_operand_stays() -> None:
    nan, plain = Interval(1, 2, True), Interval(1, 2)
    for function in (add, multiply, divide):
        assert function(nan, plain).may_be_nan
        assert function(plain, nan).may_be_nan


def test_what_an_interval_says() -> None:
    found = Interval(-3, 2)
    assert (found.magnitude, found.is_finite, found.may_be_inf) == (3, True, False)
    assert Interval(-1, 2).magnitude == 2
    assert not Interval(0, INF).is_finite
    assert not found.with_nan(True).is_finite
    assert [found.has(number) for number in (-3, 2, 2.5, -3.5)] == [True, True, False, False]
    assert found.is_within(-3, 2)
    assert not found.is_within(-2, 2)
    assert not found.is_within(-3, 1)
    assert not found.with_nan(True).is_within(-9, 9)


def test_an_array_is_held_if_all_elements_are_inside() -> None:
    found = Interval(0, 2)
    assert found.holds(np.array([0, 2], np.int8))
    assert not found.holds(np.array([0, 3], np.int8))
    assert not found.holds(np.array([0, -1.0]))
    assert not found.holds(np.array([0, NAN]))
    assert found.with_nan(True).holds(np.array([0, NAN]))
    assert Interval(0, 2**63 - 2).holds(np.array([2**63 - 2]))
    assert not Interval(0, 2**63 - 2).holds(np.array([2**63 - 1]))


def test_hull_and_meet() -> None:
    a, b = Interval(0, 2), Interval(1, 5, True)
    assert hull([a, b]) == Interval(0, 5, True)
    assert meet(a, b) == Interval(1, 2, False)
    assert meet(b, b.with_nan(True)) == b
    assert meet(a, Interval(2, 3)) == Interval(2, 2)
    assert meet(a, Interval(3, 4)) == a


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        (None, ANY),
        (DataType.FLOAT, ANY),
        (DataType.STRING, ANY),
        (DataType.COMPLEX64, ANY),
        (DataType.BOOL, Interval(0, 1)),
        (DataType.UINT4, Interval(0, 15)),
        (DataType.INT64, Interval(-(2**63), 2**63 - 1)),
    ],
)
def test_the_whole_of_a_dtype(dtype: int | None, expected: Interval) -> None:
    assert whole(dtype) == expected
    assert is_integer(dtype) is (expected != ANY)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([3, -1], np.int8), Interval(-1, 3)),
        (np.array([True, False]), Interval(0, 1)),
        (np.array([1.5, NAN], np.float32), Interval(1.5, 1.5, True)),
        (np.array([NAN, NAN], np.float32), Interval(0, 0, True)),
        (np.array([-INF, 1], np.float16), Interval(-INF, 1)),
        (np.zeros((0, 3), np.float32), Interval(0, 0)),
        (np.array([0.5, -2]).astype(DataType.BFLOAT16.numpy), Interval(-2, 0.5)),
        (np.array([7, -8]).astype(DataType.INT4.numpy), Interval(-8, 7)),
        (np.array(["a"], np.object_), ANY),
    ],
)
def test_the_interval_of_a_constant(array: np.ndarray, expected: Interval) -> None:
    assert of_tensor(Tensor.of(array)) == expected


def test_a_large_constant_is_looked_at_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.graph.intervals.interval._BLOCK", 2)
    array = np.array([NAN, NAN, 1, 2, -7, NAN, 3], np.float32)
    assert of_tensor(Tensor.of(array)) == Interval(-7, 3, True)


@pytest.mark.parametrize(
    ("interval", "dtype", "expected"),
    [
        (Interval(0, 255), DataType.UINT8, Interval(0, 255)),
        (Interval(0, 256), DataType.UINT8, Interval(0, 255)),  # it wraps
        (Interval(-1, 3), DataType.UINT8, Interval(0, 255)),
        (Interval(0.5, 1.5), DataType.INT8, Interval(0, 2)),
        (Interval(NAN, 1), DataType.INT8, Interval(-128, 127)),
        (Interval(0, 1), None, ANY),
        (Interval(-7e4, 7e4), DataType.FLOAT16, Interval(-INF, INF)),
        (Interval(-448, 448), DataType.FLOAT8E4M3FN, Interval(-448, 448)),
        (Interval(-448, 449), DataType.FLOAT8E4M3FN, ANY),
        (Interval(0.25, 1), DataType.FLOAT4E2M1, ANY),
    ],
)
def test_results_become_numbers_of_a_dtype(
    interval: Interval, dtype: int | None, expected: Interval
) -> None:
    assert fit(interval, dtype) == expected


@pytest.mark.parametrize("dtype", [DataType.FLOAT16, DataType.FLOAT, DataType.BFLOAT16])
def test_bounds_are_rounded_outward_by_one_step_at_most(dtype: DataType) -> None:
    scalar = dtype.numpy.type
    for number in (0.1, -0.1, 1 / 3, 1e-30, -1e-30, 1000.7, 0.0, 1.0):
        found = fit(Interval(number, number), dtype)
        assert found.low <= number <= found.high
        assert float(scalar(found.low)) == found.low
        assert float(scalar(found.high)) == found.high
        if float(scalar(number)) == number:
            assert found == Interval(number, number)
        # Both neighbours of the number are two steps apart, and no bound is further than two.
        step = abs(number) * float(2**-7) + 2.0**-24
        assert found.high - found.low <= 4 * step


def test_a_margin_is_relative_and_absolute_and_leaves_infinite_bounds() -> None:
    assert widened(Interval(-2, 4), 0.5, 1) == Interval(-4, 7)
    assert widened(Interval(-INF, INF, True), 0.5, 1) == ANY


EPS = 2.0**-23


@pytest.mark.parametrize(
    ("a", "counts", "expected"),
    [
        (Interval(1, 2), (3, 3), Interval(3, 6)),
        (Interval(1, 2), (0, 3), Interval(0, 6)),
        (Interval(-2, 1), (2, 4), Interval(-8, 4)),
        (Interval(-2, -1), (2, 4), Interval(-8, -2)),
        (Interval(0, INF), (0, 4), Interval(0, INF)),
        (Interval(1, 2, True), (0, 0), Interval(0, 0, True)),
    ],
)
def test_sums_of_a_number_of_terms(
    a: Interval, counts: tuple[int, int], expected: Interval
) -> None:
    assert total(a, *counts, 0.0) == expected
    rounded = total(a, *counts, EPS)
    assert (rounded.low, rounded.high) == pytest.approx(expected[:2], rel=1e-5)
    assert rounded.low <= expected.low
    assert rounded.high >= expected.high
    assert rounded.may_be_nan is a.may_be_nan


def test_a_sum_of_one_term_has_no_error_and_the_sign_of_terms_stays() -> None:
    assert total(Interval(1, 2), 1, 1, EPS) == Interval(1, 2)
    assert total(Interval(0, 2), 2, 1 << 30, EPS).low == 0
    assert total(Interval(-2, 0), 2, 1 << 30, EPS).high == 0


def test_infinite_terms_of_both_signs_may_cancel() -> None:
    assert total(Interval(-INF, INF), 2, 2, EPS) == ANY
    assert total(Interval(-INF, 0), 2, 2, EPS) == Interval(-INF, 0)
    assert total(Interval(INF, INF), 2, 2, EPS) == Interval(0, INF)
    assert total(Interval(-INF, -INF), 2, 2, EPS) == Interval(-INF, 0)


def test_bounds_that_are_no_numbers_are_those_of_the_dtype() -> None:
    for bounds in ((NAN, 0.0), (0.0, NAN), (NAN, NAN)):
        assert fit(Interval(*bounds), DataType.FLOAT) == ANY
        assert fit(Interval(*bounds), DataType.INT8) == Interval(-128, 127)


def test_the_elements_of_a_sparse_constant_are_not_looked_at() -> None:
    weights = onnx.helper.make_tensor("w", onnx.TensorProto.FLOAT, [1], [7.0])
    places = onnx.helper.make_tensor("", onnx.TensorProto.INT64, [1], [2])
    assert of_tensor(Tensor(onnx.helper.make_sparse_tensor(weights, places, [3]))) == ANY


def test_the_error_of_a_sum_is_limited_for_any_number_of_terms() -> None:
    assert sum_error(10, EPS) == pytest.approx(10 * EPS, rel=1e-4)
    assert sum_error(1 << 62, EPS) == 3.0
