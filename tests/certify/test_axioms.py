"""Each axiom of IEEE 754 holds for all float16 values, or all pairs of a format with few values."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tiered.certify.axioms import AXIOMS, IEEE, RUNTIME, STANDARD

Array = np.ndarray[Any, Any]
HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
# All pairs of a format of 8 bits, computed in it: products and sums round, overflow and underflow.
SMALL = np.arange(1 << 8, dtype=np.uint8).view(ml_dtypes.float8_e5m2)
X, Y = (grid.reshape(-1) for grid in np.meshgrid(SMALL, SMALL))
BYTES = np.arange(-128, 128, dtype=np.int8)
M, N = (grid.reshape(-1) for grid in np.meshgrid(BYTES, BYTES))
TRUTHS = np.array([False, False, True, True]), np.array([False, True, False, True])


def same(one: Array, other: Array) -> bool:
    """Tell whether arrays have the same bits; all NaNs count as one."""
    assert one.dtype == other.dtype
    bits = f"u{one.dtype.itemsize}"
    are_nan = np.isnan(one.astype(np.float64)) & np.isnan(other.astype(np.float64))
    return bool(((one.view(bits) == other.view(bits)) | are_nan).all())


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def test_add_commutes() -> None:
    assert same(X + Y, Y + X)


def test_mul_commutes() -> None:
    assert same(X * Y, Y * X)


def test_sub_adds_negative() -> None:
    assert same(X - Y, X + (-Y))


def test_add_negative_zero() -> None:
    assert same(HALVES + np.float16(-0.0), HALVES)
    assert not same(HALVES + np.float16(0.0), HALVES), "-0.0 + 0.0 is 0.0"


def test_mul_one() -> None:
    assert same(HALVES * np.float16(1), HALVES)
    assert same(HALVES * np.float16(-1), -HALVES)


def test_sign_of_product() -> None:
    assert same((-X) * Y, -(X * Y))
    assert same((-X) / Y, -(X / Y))


def test_neg_neg() -> None:
    assert same(np.negative(-HALVES), HALVES)


@pytest.mark.parametrize("exponent", range(-14, 15))
def test_div_power_of_two(exponent: int) -> None:
    power = np.float16(2.0**exponent)
    assert same(HALVES / power, HALVES * (np.float16(1) / power))


def test_cast_wider() -> None:
    assert same(HALVES.astype(np.float32).astype(np.float16), HALVES)
    assert same(HALVES.astype(np.float64), HALVES.astype(np.float32).astype(np.float64))
    brain = np.arange(1 << 16, dtype=np.uint16).view(ml_dtypes.bfloat16)
    assert same(brain.astype(np.float32).astype(ml_dtypes.bfloat16), brain)


def test_less_is_greater() -> None:
    assert ((X > Y) == (Y < X)).all()
    assert ((X >= Y) == (Y <= X)).all()


def test_equal_commutes() -> None:
    assert ((X == Y) == (Y == X)).all()


def test_logic_commutes() -> None:
    x, y = TRUTHS
    for function in (np.logical_and, np.logical_or, np.logical_xor):
        assert (function(x, y) == function(y, x)).all()


def test_not_not() -> None:
    x, _ = TRUTHS
    assert (np.logical_not(np.logical_not(x)) == x).all()


def test_where_same() -> None:
    assert same(np.where(X > Y, X, X), X)


def test_less_or_equal() -> None:
    assert ((X <= Y) == ((X < Y) | (X == Y))).all()


def test_idempotent() -> None:
    once = {op: op(HALVES) for op in (np.abs, np.ceil, np.floor, np.rint, np.sign)}
    assert all(same(op(found), found) for op, found in once.items())
    whole = (np.ceil, np.floor, np.rint)
    assert all(same(op(once[other]), once[other]) for op in whole for other in whole)


def test_extremum_of_integers() -> None:
    assert (np.maximum(M, N) == np.maximum(N, M)).all()
    assert (np.minimum(M, N) == np.minimum(N, M)).all()


def test_sum_of_integers() -> None:
    for k in BYTES:
        assert ((M + N) + k == M + (N + k)).all()
        assert ((M * N) * k == M * (N * k)).all()


def test_each_axiom_of_ieee_754_has_a_test() -> None:
    missing = [name for name in IEEE if f"test_{name.replace('-', '_')}" not in globals()]
    assert missing == []


def test_names_of_axioms_are_unique() -> None:
    assert len(AXIOMS) == len(IEEE) + len(RUNTIME) + len(STANDARD)
