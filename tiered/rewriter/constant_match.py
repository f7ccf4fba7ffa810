"""Whether the numbers of a constant are those that a pattern names, in the dtype it has."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

LARGEST: Final = 60_000
"""Smaller numbers are finite in 16 bits."""


def is_number(array: np.ndarray[Any, Any], number: float, rtol: float) -> bool:
    """Return whether an array of one float is a number, rounded to its dtype."""
    got, nearest = array.item(), float(array.dtype.type(number))
    if rtol:
        return bool(abs(got - nearest) <= rtol * abs(nearest))
    return bool(got == nearest and math.copysign(1.0, got) == math.copysign(1.0, nearest))


def is_near(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any], rtol: float) -> bool:
    """Return whether an array has these numbers, up to a relative tolerance."""
    with np.errstate(all="ignore"):
        # As near as its dtype has it: the root of 2 is 1.4140625 in 16 bits.
        nearest = wanted.astype(got.dtype).astype(np.float64)
    return bool(np.allclose(got.astype(np.float64), nearest, rtol=rtol, atol=0.0))


def is_same(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> bool:
    """Return whether an array has exactly these numbers in its dtype: -0.0 is not 0.0."""
    if wanted.dtype.kind == "c" and got.dtype.kind != "c":
        return False
    with np.errstate(all="ignore"):
        cast = wanted.astype(got.dtype)
    if got.dtype.kind in "biu":
        # 0.5 is no integer, 300 no uint8, and 2 no bool.
        return bool((got == cast).all() and (cast == wanted).all())
    if got.dtype.kind == "c":
        return bool(np.array_equal(got, cast, equal_nan=True))
    first, second = got.astype(np.float64), cast.astype(np.float64)
    same = np.array_equal(first, second, equal_nan=True)
    return bool(same and (np.signbit(first) == np.signbit(second))[~np.isnan(first)].all())
