"""Bounds of a number through an affine step: the floats whose rounded result reaches a bound."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tiered.graph.core.dtypes import DataType

Floats = NDArray[Any]

FLOATS: Final = (DataType.FLOAT, DataType.DOUBLE)
"""The dtypes in which runtimes round each operation as numpy does."""

OPERATIONS: Final[Mapping[str, Callable[[Floats, Floats], Floats]]] = {
    "Add": np.add, "Div": np.divide, "Mul": np.multiply, "Sub": np.subtract,
}  # fmt: skip
"""The affine steps; they increase with x, if a factor is positive."""


def least_reaching(op_type: str, c: Floats, bound: Floats) -> Floats:
    """Return the least x whose step is no less than a bound; NaN where there is none.

    Rounding keeps the order, so that the step of every larger x reaches the bound too, and of
    every smaller one does not: exactly, whatever the rounding.

    Args:
        op_type: the step, one of `OPERATIONS`.
        c: its finite constant; a factor is positive.
        bound: the bounds, of the same dtype; they broadcast with c.
    """
    dtype = bound.dtype
    reached = _reached(op_type, c, bound)
    shape = np.broadcast_shapes(c.shape, bound.shape)
    lows = np.full(shape, _rank(np.array(-np.inf, dtype)))
    highs = np.full(shape, _rank(np.array(np.inf, dtype)))
    is_reached = reached(np.full(shape, np.inf, dtype))
    while (lows < highs).any():
        # Half of the sum, rounded down, without overflow.
        middles = (lows & highs) + ((lows ^ highs) >> 1)
        below = reached(_number(middles, dtype))
        highs = np.where(below, middles, highs)
        lows = np.where(below, lows, np.minimum(middles + 1, highs))
    return np.where(is_reached, _number(lows, dtype), np.array(np.nan, dtype))


def after(numbers: Floats) -> Floats:
    """Return the next larger numbers."""
    return np.asarray(np.nextafter(numbers, np.array(np.inf, numbers.dtype)))


def before(numbers: Floats) -> Floats:
    """Return the next smaller numbers."""
    return np.asarray(np.nextafter(numbers, np.array(-np.inf, numbers.dtype)))


def _reached(op_type: str, c: Floats, bound: Floats) -> Callable[[Floats], NDArray[np.bool_]]:
    def reached(x: Floats) -> NDArray[np.bool_]:
        with np.errstate(all="ignore"):
            return np.asarray(OPERATIONS[op_type](x, c) >= bound)

    return reached


def _rank(numbers: Floats) -> NDArray[np.int64]:
    """Return integers in the order of the numbers; both zeros are 0."""
    bits = numbers.view(f"i{numbers.dtype.itemsize}").astype(np.int64)
    lowest = np.iinfo(f"i{numbers.dtype.itemsize}").min
    return np.where(bits < 0, lowest - np.minimum(bits, 0), bits)


def _number(ranks: NDArray[np.int64], dtype: np.dtype[Any]) -> Floats:
    lowest = np.iinfo(f"i{dtype.itemsize}").min
    bits = np.where(ranks < 0, lowest - np.minimum(ranks, 0), ranks)
    return bits.astype(f"i{dtype.itemsize}").view(dtype)
