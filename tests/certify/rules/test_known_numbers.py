"""Numbers that operators compute exactly: as onnxruntime has them, or not at all."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.certify.test_checker import proof
from tiered.certify.domains.terms import Array
from tiered.certify.evaluation.call import NoRule
from tiered.certify.rules.known_numbers import EXACT, REDUCED, cast, computed

INTEGERS = (np.int8, np.uint8, np.int16, np.int32, np.int64, np.uint64)
NAN = float("nan")


def ran(op: str, *numbers: Any, kind: Any = np.int32, to: Any = None) -> list[Any]:
    found = computed(op, [np.asarray(each, kind) for each in numbers], np.dtype(to or kind))
    assert found is not None
    assert found.dtype == (to or kind)
    made: list[Any] = found.tolist()
    return made


@pytest.mark.parametrize(
    ("op", "numbers", "expected"),
    [
        ("Abs", ([-3, 4],), [3, 4]),
        ("Add", ([5, 2**31 - 1], [2, 1]), [7, -(2**31)]),
        ("Sub", ([5, -(2**31)], [2, 1]), [3, 2**31 - 1]),
        ("Mul", ([5, 2**30], [-2, 4]), [-10, 0]),
        ("Neg", ([5, -(2**31)],), [-5, -(2**31)]),
        ("BitwiseAnd", ([6], [3]), [2]),
        ("BitwiseOr", ([6], [3]), [7]),
        ("BitwiseXor", ([6], [3]), [5]),
        ("BitwiseNot", ([6],), [-7]),
        ("Div", ([7, -7, 7, -7, 6, -6, 0], [2, 2, -2, -2, 3, 3, -5]), [3, -3, -3, 3, 2, -2, 0]),
        ("Mod", ([7, -7, 7, -7, 6], [3, 3, -3, -3, 3]), [1, 2, -2, -1, 0]),
    ],
)
def test_integers_are_computed_as_the_standard_says(
    op: str, numbers: tuple[list[int], ...], expected: list[int]
) -> None:
    assert ran(op, *numbers) == expected


@pytest.mark.parametrize("kind", INTEGERS)
def test_integers_are_divided_towards_zero_at_the_ends_of_each_dtype(kind: Any) -> None:
    limits = np.iinfo(kind)
    for y in (1, 2, 3, 7, limits.max, *((-1, -2, -3, limits.min) if limits.min else ())):
        for x in (limits.min, limits.min + 1, limits.max, limits.max - 1, 1, 0):
            quotient = abs(int(x)) // abs(int(y)) * (1 if (x < 0) == (y < 0) else -1)
            wrapped = quotient if quotient <= limits.max else limits.min
            assert ran("Div", [x], [y], kind=kind) == [wrapped], (x, y)


def test_a_quotient_of_the_least_integer_is_proved() -> None:
    head = "(int32[2] x) => (int32[2] y) <int32 a = {-2147483648}, int32 b = {3}"
    divided = f"{head}> {{ d = Div(a, b)  y = Add(x, d) }}"
    right, wrong = (
        f"{head}, int32 d = {{{n}}}> {{ y = Add(x, d) }}" for n in (-715827882, 715827883)
    )
    assert proof(divided, right).domain == "bits"
    assert not proof(divided, wrong).is_proved


@pytest.mark.parametrize("op", ["Div", "Mod"])
def test_an_integer_by_zero_has_no_number(op: str) -> None:
    with pytest.raises(NoRule):
        ran(op, [1, 1], [1, 0])


@pytest.mark.parametrize(
    ("op", "numbers", "expected"),
    [
        ("Equal", ([1, 2, 3], [1, 3, 2]), [True, False, False]),
        ("Less", ([1, 2, 3], [1, 3, 2]), [False, True, False]),
        ("LessOrEqual", ([1, 2, 3], [1, 3, 2]), [True, True, False]),
        ("Greater", ([1, 2, 3], [1, 3, 2]), [False, False, True]),
        ("GreaterOrEqual", ([1, 2, 3], [1, 3, 2]), [True, False, True]),
    ],
)
def test_numbers_are_compared(op: str, numbers: Any, expected: list[bool]) -> None:
    assert ran(op, *numbers, to=np.bool_) == expected
    assert ran(op, [NAN], [NAN], kind=np.float32, to=np.bool_) == [False]


@pytest.mark.parametrize(
    ("op", "expected"),
    [("And", [False, False, True]), ("Or", [False, True, True]), ("Xor", [False, True, False])],
)
def test_bools_are_combined(op: str, expected: list[bool]) -> None:
    assert ran(op, [False, False, True], [False, True, True], kind=np.bool_) == expected
    assert ran("Not", [False, True], kind=np.bool_) == [True, False]


def test_a_condition_chooses() -> None:
    numbers = [np.array([True, False]), np.array([1, 2], np.float32), np.array([3, 4], np.float32)]
    found = computed("Where", numbers, np.dtype(np.float32))
    assert found is not None
    assert found.tolist() == [1, 4]


def test_floats_that_ieee_754_rounds_are_computed() -> None:
    assert ran("Div", [1, -1, 0, 6], [3, 0, 0, 4], kind=np.float32)[:2] == [
        np.float32(1 / 3),
        -np.inf,
    ]
    assert ran("Sqrt", [2, 0.25], kind=np.float32) == [np.sqrt(np.float32(2)), 0.5]
    assert ran("Ceil", [-0.5, 1.5], kind=np.float32) == [0, 2]
    assert ran("Floor", [-0.5, 1.5], kind=np.float32) == [-1, 1]
    assert ran("IsNaN", [NAN, np.inf], kind=np.float32, to=np.bool_) == [True, False]


@pytest.mark.parametrize("op", ["Ceil", "Floor", "Sqrt", "IsNaN"])
def test_other_dtypes_are_left_to_the_runtime(op: str) -> None:
    for kind in (np.int32, ml_dtypes.bfloat16):
        assert computed(op, [np.ones(2, kind)], np.dtype(kind)) is None


def test_what_is_not_exact_is_left_to_the_runtime() -> None:
    one = np.ones(2, np.float32)
    for op in ("Exp", "Tanh", "Pow", "Max", "BitShift"):
        assert computed(op, [one, one], one.dtype) is None
    assert computed("Mod", [one, one], one.dtype) is None
    assert len(EXACT) == 25
    assert set(REDUCED) == {"ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"}


# --- Cast -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "to", "expected"),
    [
        (np.array([1.9, -1.9, 0.5, -0.0], np.float32), np.int8, [1, -1, 0, 0]),
        (np.array([126.9, -128], np.float32), np.int8, [126, -128]),
        (np.array([254.5], np.float64), np.uint8, [254]),
        (np.array([-2.5], np.float64), np.int16, [-2]),
        (np.array([300, -1], np.int32), np.uint8, [44, 255]),
        (np.array([2**33 + 5], np.int64), np.int32, [5]),
        (np.array([0, -0.0, 0.5, NAN], np.float32), np.bool_, [False, False, True, True]),
        (np.array([True, False]), np.float16, [1, 0]),
        (np.array([2**24 + 1, 2**24 + 3], np.int64), np.float32, [2**24, 2**24 + 4]),
        (np.array([1 + 2.0**-24, 1 + 3 * 2.0**-24], np.float64), np.float32, [1, 1 + 2.0**-22]),
        (np.array([1 + 2.0**-11, 1e6], np.float32), np.float16, [1, np.inf]),
        (np.array([], np.float64), np.int8, []),
    ],
)
def test_casts_are_exact_or_round_to_the_nearest(numbers: Array, to: Any, expected: Any) -> None:
    found = cast(numbers, np.dtype(to))
    assert found is not None
    assert found.dtype == to
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("numbers", "to"),
    [
        (np.array([127], np.float32), np.int8),  # a bound that floats may not hold is left out
        (np.array([128], np.float32), np.int8),
        (np.array([-128.5], np.float32), np.int8),
        (np.array([2**31], np.float32), np.int32),
        (np.array([-1], np.float32), np.uint8),
        (np.array([np.inf], np.float32), np.int32),
        (np.array([NAN], np.float32), np.int64),
        (np.array([1], np.float32), ml_dtypes.int4),
        (np.array([1], np.float32), ml_dtypes.bfloat16),
        (np.ones(1, ml_dtypes.bfloat16), np.float32),
        (np.array([1], np.complex64), np.float32),
        (np.array(["1"], object), np.float32),
        (np.array([1], np.float32), object),
    ],
)
def test_casts_that_runtimes_do_in_their_own_way_are_left_to_them(numbers: Array, to: Any) -> None:
    assert cast(numbers, np.dtype(to)) is None


def test_a_double_becomes_a_half_by_way_of_32_bits() -> None:
    """1 + 2**-11 + 2**-30 rounds to 1 + 2**-10; onnxruntime makes 1 + 2**-11 of it, and then 1."""
    assert cast(np.array([1.0], np.float64), np.dtype(np.float16)) is None
    number = 1 + 2.0**-11 + 2.0**-30
    head = f"(float16[2] x) => (float16[2] y) <double a = {{{number!r}}}"
    folded = f"{head}, float16 h = {{{int(np.float16(1).view(np.uint16))}}}> {{ y = Add(x, h) }}"
    assert proof(f"{head}> {{ h = Cast<to = 10>(a)  y = Add(x, h) }}", folded).domain == "bits"
