"""Comparing two tensors: what counts as equal, how far apart they are, and what is said of it."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tiered.graph import DataType
from tiered.runtime.compare.tensors import Limits, OutputDifference, compare_arrays
from tiered.support.numerics import Metric, Numerics

Array = np.ndarray[Any, Any]
EXACT = Limits(Numerics.EXACT, None, None, None)
CLOSE = replace(EXACT, numerics=Numerics.REASSOCIATING)
LOSSY = replace(EXACT, numerics=Numerics.LOSSY)


def floats(*numbers: float, dtype: Any = np.float32) -> Array:
    return np.array(numbers, dtype)


def compared(a: Array, b: Array, limits: Limits = EXACT) -> OutputDifference:
    return compare_arrays("y", a, b, limits)


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (floats(1), floats(1, dtype=np.float64), "dtype float32 became float64"),
        (floats(1), np.array(["a"]), "dtype float32 became string"),
        (floats(1, 2), floats(1, 2).reshape(1, 2), "shape [2] became [1, 2]"),
        (np.array(["a", "b"]), np.array(["a", "c"]),
         "1 of 2 elements differ, first 'b' became 'c' at [1]"),
        (np.array([1, 5, 9]), np.array([1, 7, 4]), "2 of 3 elements differ, max abs 5 at [2]"),
        (np.array([True, False]), np.array([True, True]),
         "1 of 2 elements differ, max abs 1 at [1]"),
        (floats(0.0, 1), floats(-0.0, 1),
         "1 of 2 elements differ in the sign of zero, first at [0]"),
        (floats(1, 2), floats(1, 2.5), "1 of 2 elements differ, max abs 5.0e-01 at [1]"),
        (floats(1, math.nan), floats(1, 2), "NaN became a number at [1] (1 of 2 elements differ in "
         "being NaN)"),
        (floats(1, 3), floats(math.nan, 4), "a number became NaN at [0] (1 of 2 elements differ in "
         "being NaN; 1 others differ)"),
    ],
)  # fmt: skip
def test_what_differs_is_said_with_its_place(a: Array, b: Array, reason: str) -> None:
    found = compared(a, b)
    assert not found.ok
    assert found.reason == reason


@pytest.mark.parametrize(
    "array",
    [
        floats(1, math.nan, -0.0),
        np.array(["a", b"\xc3\xa9".decode()], object),
        np.array([], np.float32),
        np.array([1 + 2j], np.complex64),
        np.array([2**64 - 1], np.uint64),
    ],
)
def test_the_same_bits_are_equal(array: Array) -> None:
    assert compared(array, array.copy()).ok


def test_two_nans_are_equal_whatever_their_bits() -> None:
    other = np.array([0x7FC00001, 0x3F800000], np.uint32).view(np.float32)
    assert compared(floats(math.nan, 1), other).ok
    assert compared(floats(math.nan), floats(math.nan)).note == (
        "not comparable: all its elements are NaN"
    )


@pytest.mark.parametrize(
    ("a", "b", "ulp"),
    [
        (floats(1), np.nextafter(floats(1), floats(2)), 1),
        (floats(0.0), floats(-0.0), 0),
        (floats(1e-45), floats(-1e-45), 2),
        (floats(1, dtype=np.float16), floats(1 + 3 * 2**-10, dtype=np.float16), 3),
        (floats(-1, dtype=np.float64), np.nextafter(floats(-1, dtype=np.float64), -2), 1),
        (floats(1).astype(DataType.FLOAT8E4M3FN.numpy), floats(2).astype(
            DataType.FLOAT8E4M3FN.numpy), None),
    ],
)  # fmt: skip
def test_the_distance_is_counted_in_representable_numbers(
    a: Array, b: Array, ulp: int | None
) -> None:
    assert compared(a, b).max_ulp == ulp


def test_the_numbers_of_a_difference() -> None:
    found = compared(floats(2, 4, 0, math.nan), floats(1, 4, 3, 1), LOSSY)
    assert (found.max_abs, found.max_rel, found.nan_mismatch) == (3, 0.5, 1)
    assert found.cosine == pytest.approx((2 * 1 + 16) / math.sqrt(20 * 26))
    moved = compared(floats(math.inf, 1), floats(1, 1), LOSSY)
    assert (moved.max_abs, moved.ok) == (math.inf, False)
    assert compared(floats(0, 0), floats(1, 0), LOSSY).cosine == 0
    assert compared(floats(1e300, dtype=np.float64), floats(2e300, dtype=np.float64)).cosine == 1


@pytest.mark.parametrize(
    ("limits", "b", "ok"),
    [
        (CLOSE, floats(100, 1.0009), True),  # atol by the largest number
        (CLOSE, floats(100, 1.0012), False),
        (CLOSE, floats(100.01, 1), True),
        (CLOSE, floats(100.02, 1), False),
        (replace(CLOSE, rtol=0.5), floats(140, 1), True),
        (replace(CLOSE, rtol=0.5, atol=0.0), floats(150, 1), True),  # as far as it may be
        (replace(CLOSE, rtol=0.0, atol=0.0), floats(100, 1.000001), False),
        (replace(CLOSE, atol=0.1), floats(100, 9), True),
        (LOSSY, floats(111, 1), True),
        (LOSSY, floats(114, 1), False),
    ],
)
def test_tolerances_are_relative_to_the_number_and_to_the_largest(
    limits: Limits, b: Array, ok: bool
) -> None:
    assert compared(floats(100, 1), b, limits).ok is ok


def test_a_tolerance_of_a_caller_is_at_least_by_1() -> None:
    limits = replace(CLOSE, rtol=0.0, atol=0.01)
    assert compared(floats(1e-3), floats(9e-3), limits).ok
    assert not compared(floats(1e-3), floats(9e-3), CLOSE).ok


def test_floats_that_were_cast_have_the_tolerance_of_their_source() -> None:
    wide, other = floats(1 / 3).astype(np.float64), floats(1 / 3 + 1e-5).astype(np.float64)
    assert compared(wide, other, CLOSE).ok
    assert not compared(floats(1 / 3, dtype=np.float64), floats(1 / 3 + 1e-5, dtype=np.float64),
                        CLOSE).ok  # fmt: skip
    half = replace(CLOSE, computed=np.dtype(np.float16))
    assert compared(floats(1.0), floats(1.005), half).ok


@pytest.mark.parametrize(
    ("dtype", "gap", "limits", "ok"),
    [
        (np.int8, 1, LOSSY, True),
        (np.int8, 2, LOSSY, False),
        (np.uint8, 2, replace(CLOSE, steps=2), True),
        (np.int16, 1, replace(LOSSY, steps=2), False),
        (np.int8, 1, CLOSE, False),
        (np.bool_, 1, LOSSY, False),
    ],
)
def test_integers_of_8_bits_may_be_steps_off(
    dtype: Any, gap: int, limits: Limits, ok: bool
) -> None:
    assert compared(np.array([0], dtype), np.array([gap], dtype), limits).ok is ok


def test_a_metric_or_a_cosine_judges_in_place_of_tolerances() -> None:
    mean = Metric("mean", lambda a, b: float(np.abs(a - b).mean()), 0.0, 1.0)
    by_metric = replace(LOSSY, metric=mean)
    assert compared(floats(0, 0), floats(2, 0), by_metric).ok
    assert compared(floats(0, 0), floats(3, 0), by_metric).reason == "mean is 1.5, not in [0, 1]"
    assert not compared(floats(0, math.nan), floats(0, 0), by_metric).ok
    by_cosine = replace(LOSSY, min_cosine=0.9)
    assert compared(floats(1, 1), floats(2, 2), by_cosine).ok
    assert "is below 0.9" in compared(floats(1, 1), floats(1, 0), by_cosine).reason


def test_the_limits_of_the_target_are_enough() -> None:
    target = replace(EXACT, numerics=Numerics.APPROXIMATE, rtol=1.0, atol=0.0, is_target=True)
    limits = replace(CLOSE, target=target)
    found = compared(floats(1), floats(1.9), limits)
    assert found.ok
    assert found.limit == "the target's rtol 1, atol 0"
    refused = compared(floats(1), floats(3), limits)
    assert not refused.ok
    assert refused.limit == (
        "rtol 0.0001, atol 1e-05 of reassociating float32, or the target's rtol 1, atol 0"
    )
    assert str(refused).startswith("y: 1 of 1 elements differ")


def test_what_exact_limits_say() -> None:
    assert EXACT.text(np.dtype(np.float32)) == ""
    assert EXACT.tolerance(np.dtype(np.float32)) == (0, 0)
    assert str(compared(floats(1), floats(1))) == "y: ok"
    narrow = DataType.FLOAT8E4M3FN.numpy
    assert CLOSE.tolerance(narrow) == (0.25, 0.125 / 8)


NAN, INF = math.nan, math.inf
E4, F4, I4 = (each.numpy for each in (DataType.FLOAT8E4M3FN, DataType.FLOAT4E2M1, DataType.INT4))
MEAN = Metric("mean", lambda a, b: float(np.abs(a - b).mean()), 0.0, 1.0)
BY_MEAN = replace(LOSSY, metric=MEAN)
PAIRS: list[tuple[Array, Array, Limits]] = [
    (floats(1), floats(1.5), EXACT),
    (floats(1), floats(1.5), CLOSE),
    (floats(1), floats(1.5), replace(CLOSE, rtol=0.1)),
    (floats(1), floats(1.5), replace(CLOSE, atol=0.1)),
    (floats(1), floats(1.5), replace(CLOSE, rtol=0.1, atol=0.1)),
    (floats(1, 1), floats(1, 0), replace(LOSSY, min_cosine=0.9)),
    (floats(1, 1), floats(1, 0), replace(LOSSY, min_cosine=0.5)),
    (floats(1, 0), floats(0, 1), replace(LOSSY, min_cosine=0.0)),
    (floats(INF), floats(-INF), replace(LOSSY, min_cosine=0.5)),
    (floats(1, NAN), floats(1, 1), replace(LOSSY, min_cosine=0.5)),
    (floats(0, 0), floats(3, 0), BY_MEAN),
    (floats(0, 0), floats(1, 0), BY_MEAN),
    (floats(0, NAN), floats(9, 0), BY_MEAN),
    (floats(0, 0), floats(3, 0), replace(CLOSE, target=replace(BY_MEAN, is_target=True))),
    (floats(0, 0), floats(1, 0), replace(CLOSE, target=replace(BY_MEAN, is_target=True))),
    (floats(0, 0), floats(3, 0), replace(BY_MEAN, target=replace(CLOSE, is_target=True))),
    (floats(0, 0), floats(1e-5, 0), CLOSE),
    (floats(0, 0), floats(-0.0, 0), CLOSE),
    (floats(0, 0), floats(2e-5, 0), CLOSE),
    (floats(NAN, NAN), floats(1, NAN), CLOSE),
    (floats(1, NAN), floats(NAN, NAN), CLOSE),
    (floats(NAN, NAN), floats(NAN, NAN), CLOSE),
    (floats(NAN, 1), floats(NAN, 1), CLOSE),
    (np.array([1 + 2j]), np.array([1 + 3j]), EXACT),
    (np.array([b"a", b"b"]), np.array(["a", "c"], object), EXACT),
    (np.array([0, 2]), np.array([1, 3]), EXACT),
    (np.array([0], np.uint64), np.array([2**64 - 1], np.uint64), EXACT),
    (np.array([-128], np.int8), np.array([127], np.int8), EXACT),
    (np.array([False]), np.array([True]), EXACT),
    (np.array([0], np.int16), np.array([1], np.int16), LOSSY),
    (np.array([0, 0], np.int8), np.array([1, 1], np.int8), LOSSY),
    (floats(1, dtype=E4), floats(1, dtype=E4), EXACT),
    (floats(1, dtype=E4), floats(2, dtype=E4), EXACT),
    (floats(1, 2, dtype=F4), floats(1, 3, dtype=F4), EXACT),
    (floats(1 / 3, 1).astype(np.float64), floats(1 / 3 + 1e-5, 1).astype(np.float64), CLOSE),
    (floats(1, 2, dtype=np.float64), floats(1.00001, 2, dtype=np.float64), CLOSE),
    (floats(1, 0.3333, dtype=np.float16).astype(np.float32),
     floats(1.002, 0.3333, dtype=np.float16).astype(np.float32), CLOSE),
    (floats(1, 2), floats(1.0009765625, 2), CLOSE),
    (floats(-1e-45), floats(1e-45), LOSSY),
    (floats(1, -1, dtype=np.float16), floats(1, 1, dtype=np.float16), EXACT),
    (np.array(["a"]), floats(1), EXACT),
    (np.array([1]), np.array([3]), EXACT),
    (np.array([-8], I4), np.array([7], I4), EXACT),
]  # fmt: skip
"""Two tensors and the limits; `ALL_OF_THEM` has what is found of each."""


def all_of(found: OutputDifference) -> str:
    """Return the numbers, the reason and the limits of a difference, on three lines."""
    cosine = None if found.cosine is None else round(found.cosine, 4)
    numbers = f"{found.max_abs:g} {found.max_rel:g} {found.max_ulp} {cosine} {found.nan_mismatch}"
    return "\n".join((numbers, *str(found).split(" (allowed: "), f"limit {found.limit}"))


ALL_OF_THEM = """\
0.5 0.5 4194304 1.0 0
y: 1 of 1 elements differ, max abs 5.0e-01 at [0]
limit
0.5 0.5 4194304 1.0 0
y: 1 of 1 elements differ, max abs 5.0e-01 at [0]
rtol 0.0001, atol 1e-05 of reassociating float32)
limit rtol 0.0001, atol 1e-05 of reassociating float32
0.5 0.5 4194304 1.0 0
y: 1 of 1 elements differ, max abs 5.0e-01 at [0]
rtol 0.1, atol 1e-05 of reassociating float32)
limit rtol 0.1, atol 1e-05 of reassociating float32
0.5 0.5 4194304 1.0 0
y: 1 of 1 elements differ, max abs 5.0e-01 at [0]
rtol 0.0001, atol 0.1 of reassociating float32)
limit rtol 0.0001, atol 0.1 of reassociating float32
0.5 0.5 4194304 1.0 0
y: 1 of 1 elements differ, max abs 5.0e-01 at [0]
rtol 0.1, atol 0.1)
limit rtol 0.1, atol 0.1
1 1 1065353216 0.7071 0
y: cosine 0.707107 is below 0.9
cosine from 0.9)
limit cosine from 0.9
1 1 1065353216 0.7071 0
y: ok
limit cosine from 0.5
1 1 1065353216 0.0 0
y: ok
limit cosine from 0
inf 0 4278190080 None 0
y: 1 of 1 elements differ, max abs inf at [0]
cosine from 0.5)
limit cosine from 0.5
0 0 0 1.0 1
y: NaN became a number at [1] (1 of 2 elements differ in being NaN)
cosine from 0.5)
limit cosine from 0.5
3 0 1077936128 0.0 0
y: mean is 1.5, not in [0, 1]
limit
1 0 1065353216 0.0 0
y: ok
limit mean in [0, 1]
9 0 1091567616 0.0 1
y: NaN became a number at [1] (1 of 2 elements differ in being NaN)
limit
3 0 1077936128 0.0 0
y: 1 of 2 elements differ, max abs 3.0e+00 at [0]
rtol 0.0001, atol 1e-05 of reassociating float32)
limit rtol 0.0001, atol 1e-05 of reassociating float32
1 0 1065353216 0.0 0
y: ok
limit the target's mean in [0, 1]
3 0 1077936128 0.0 0
y: mean is 1.5, not in [0, 1]
the target's rtol 0.0001, atol 1e-05 of reassociating float32)
limit the target's rtol 0.0001, atol 1e-05 of reassociating float32
1e-05 0 925353388 0.0 0
y: ok
limit rtol 0.0001, atol 1e-05 of reassociating float32
0 0 0 1.0 0
y: ok
limit rtol 0.0001, atol 1e-05 of reassociating float32
2e-05 0 933741996 0.0 0
y: 1 of 2 elements differ, max abs 2.0e-05 at [0]
rtol 0.0001, atol 1e-05 of reassociating float32)
limit rtol 0.0001, atol 1e-05 of reassociating float32
0 0 0 None 1
y: NaN became a number at [0] (1 of 2 elements differ in being NaN)
rtol 0.0001, atol 1e-05 of reassociating float32)
limit rtol 0.0001, atol 1e-05 of reassociating float32
0 0 0 None 1
y: a number became NaN at [0] (1 of 2 elements differ in being NaN)
rtol 0.0001, atol 1e-05 of reassociating float32)
limit rtol 0.0001, atol 1e-05 of reassociating float32
0 0 None None 0
y: not comparable: all its elements are NaN
limit
0 0 0 1.0 0
y: ok
limit
1 0.5 2251799813685248 0.9899 0
y: 1 of 2 elements differ, max abs 1.0e+00 at [0,1]
limit
0 0 None None 0
y: 1 of 2 elements differ, first 'b' became 'c' at [1]
limit
1 0.5 None None 0
y: 2 of 2 elements differ, max abs 1 at [0]
limit
1.84467e+19 0 None None 0
y: 1 of 1 elements differ, max abs 18446744073709551615 at [0]
limit
255 1.99219 None None 0
y: 1 of 1 elements differ, max abs 255 at [0]
limit
1 0 None None 0
y: 1 of 1 elements differ, max abs 1 at [0]
limit
1 0 None None 0
y: 1 of 1 elements differ, max abs 1 at [0]
limit
1 0 None None 0
y: ok
limit
0 0 None 1.0 0
y: ok
limit
1 1 None 1.0 0
y: 1 of 1 elements differ, max abs 1.0e+00 at [0]
limit
1 0.5 None 0.9899 0
y: 1 of 2 elements differ, max abs 1.0e+00 at [1]
limit
9.98378e-06 2.99513e-05 179851755520 1.0 0
y: ok
limit rtol 0.0001, atol 1e-05 of reassociating float32
1e-05 1e-05 45035996274 1.0 0
y: 1 of 2 elements differ, max abs 1.0e-05 at [0]
rtol 1e-09, atol 1e-10 of reassociating float64)
limit rtol 1e-09, atol 1e-10 of reassociating float64
0.00195312 0.00195312 16384 1.0 0
y: ok
limit rtol 0.01, atol 0.001 of reassociating float16
0.000976562 0.000976562 8192 1.0 0
y: ok
limit rtol 0.01, atol 0.001 of reassociating float16
2.8026e-45 2 2 -1.0 0
y: ok
limit rtol 0.1, atol 0.02 of lossy float32
2 2 30720 0.0 0
y: 1 of 2 elements differ, max abs 2.0e+00 at [1]
limit
0 0 None None 0
y: dtype string became float32
limit
2 2 None None 0
y: 1 of 1 elements differ, max abs 2 at [0]
limit
15 1.875 None None 0
y: 1 of 1 elements differ, max abs 15 at [0]
limit
"""


def test_all_that_is_found_of_two_tensors() -> None:
    lines = [line for pair in PAIRS for line in all_of(compared(*pair)).split("\n")]
    assert [line.rstrip() for line in lines] == ALL_OF_THEM.splitlines()
