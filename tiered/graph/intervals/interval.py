"""Intervals: bounds of the elements of a tensor, and whether one of them may be NaN.

The bounds are numbers of the dtype, Python integers where the dtype is one. A bound is infinite if
an element may be. Results of floats are rounded outward, so that a rounded element is inside.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np

from tiered.graph.core.dtypes import DataType, float_info, integer_info
from tiered.graph.core.tensor import Tensor

Array = np.ndarray[Any, Any]

_PLAIN: Final = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))

_BLOCK: Final = 1 << 20
"""So many elements of a constant are looked at together."""


class Interval(NamedTuple):
    """The bounds of all elements that are not NaN, and whether there may be a NaN."""

    low: float
    high: float
    may_be_nan: bool = False

    @property
    def may_be_inf(self) -> bool:
        """Return whether an element may be infinite."""
        return math.isinf(self.low) or math.isinf(self.high)

    @property
    def is_finite(self) -> bool:
        """Return whether all elements are finite numbers."""
        return not self.may_be_inf and not self.may_be_nan

    @property
    def magnitude(self) -> float:
        """Return a bound of the absolute values."""
        return max(abs(self.low), abs(self.high))

    def has(self, number: float) -> bool:
        """Return whether an element may be this number."""
        return self.low <= number <= self.high

    def is_within(self, low: float, high: float) -> bool:
        """Return whether no element is NaN or outside of two bounds."""
        return not self.may_be_nan and low <= self.low and self.high <= high

    def holds(self, array: Array) -> bool:
        """Return whether all elements of an array are inside."""
        numbers = array.astype(object) if array.dtype.kind in "iub" else array.astype(np.float64)
        is_nan = np.isnan(array.astype(np.float64))
        inside = (numbers >= self.low) & (numbers <= self.high)
        return bool((inside | (is_nan & self.may_be_nan)).all())

    def with_nan(self, may_be_nan: bool) -> Interval:
        """Return the interval, with NaN if asked or if there is one already."""
        return Interval(self.low, self.high, self.may_be_nan or may_be_nan)


ANY: Final = Interval(-math.inf, math.inf, True)
ZERO: Final = Interval(0, 0)


@lru_cache(maxsize=64)
def whole(dtype: int | None) -> Interval:
    """Return the interval of all elements of a dtype."""
    if dtype is None or dtype in (DataType.STRING, DataType.COMPLEX64, DataType.COMPLEX128):
        return ANY
    if dtype == DataType.BOOL:
        return Interval(0, 1)
    if is_integer(dtype):
        info = integer_info(DataType(dtype).numpy)
        return Interval(int(info.min), int(info.max))
    return ANY


@lru_cache(maxsize=64)
def is_integer(dtype: int | None) -> bool:
    """Return whether a dtype is of integers or booleans."""
    if dtype is None:
        return False
    name = DataType(dtype).name
    return name.startswith(("INT", "UINT", "BOOL"))


def hull(intervals: Iterable[Interval]) -> Interval:
    """Return the smallest interval that has all of some intervals."""
    found = list(intervals)
    return Interval(
        min(each.low for each in found),
        max(each.high for each in found),
        any(each.may_be_nan for each in found),
    )


def meet(a: Interval, b: Interval) -> Interval:
    """Return the elements in both intervals; the first where they have none in common."""
    low, high = max(a.low, b.low), min(a.high, b.high)
    return a if low > high else Interval(low, high, a.may_be_nan and b.may_be_nan)


def of_tensor(tensor: Tensor) -> Interval:
    """Return the interval of a constant."""
    if tensor.is_sparse or tensor.dtype in (
        DataType.STRING, DataType.COMPLEX64, DataType.COMPLEX128,
    ):  # fmt: skip
        return whole(tensor.dtype)
    flat = tensor.numpy().ravel()
    blocks = (flat[start : start + _BLOCK] for start in range(0, flat.size, _BLOCK))
    found = [_of_block(block, is_integer(tensor.dtype)) for block in blocks]
    numbers = [each for each in found if each.low <= each.high]
    has_nan = any(each.may_be_nan for each in found)
    return hull(numbers).with_nan(has_nan) if numbers else Interval(0, 0, has_nan)


def _of_block(block: Array, is_whole: bool) -> Interval:
    if is_whole:
        block = block if block.dtype.kind in "iu" else block.astype(np.int64)
        return Interval(int(block.min()), int(block.max()))
    numbers = block if block.dtype in _PLAIN else block.astype(np.float32)
    low, high = float(numbers.min()), float(numbers.max())
    if not math.isnan(low):
        return Interval(low, high)
    numbers = numbers[~np.isnan(numbers)]
    if not numbers.size:
        return Interval(math.inf, -math.inf, True)
    return Interval(float(numbers.min()), float(numbers.max()), True)


# --- results ------------------------------------------------------------------------------------


def fit(interval: Interval, dtype: int | None) -> Interval:
    """Return the interval of exact results, once they are numbers of a dtype.

    Integers beyond the dtype wrap, floats beyond it are infinite, others are rounded.
    """
    if dtype is None or math.isnan(interval.low) or math.isnan(interval.high):
        return whole(dtype)
    if is_integer(dtype):
        every = whole(dtype)
        if not every.low <= interval.low <= interval.high <= every.high:
            return every
        return Interval(math.floor(interval.low), math.ceil(interval.high))
    if not DataType(dtype).is_float:
        limit = 0.0 if dtype not in _SMALL else float(float_info(DataType(dtype).numpy).max)
        return interval if interval.magnitude <= limit else whole(dtype)
    low, high = (_rounded(bound, dtype) for bound in (-interval.low, interval.high))
    return Interval(-low, high, interval.may_be_nan)


_SMALL: Final = frozenset(
    {DataType.FLOAT8E4M3FN, DataType.FLOAT8E4M3FNUZ, DataType.FLOAT8E5M2, DataType.FLOAT8E5M2FNUZ}
)


def _rounded(bound: float, dtype: int) -> float:
    """Return the smallest number of a float dtype that is no less than a bound, or a larger one."""
    scalar: Any = DataType(dtype).numpy.type
    with np.errstate(all="ignore"):
        rounded = float(scalar(float(bound)))
        if rounded >= bound:
            return rounded
        info = float_info(DataType(dtype).numpy)
        wider = bound + abs(bound) * float(info.eps) + float(info.smallest_subnormal)
        return max(float(scalar(wider)), bound)


def widened(interval: Interval, relative: float, absolute: float = 0.0) -> Interval:
    """Return an interval with a margin for the error of a kernel."""
    low, high = interval.low, interval.high
    return Interval(
        low - abs(low) * relative - absolute if math.isfinite(low) else low,
        high + abs(high) * relative + absolute if math.isfinite(high) else high,
        interval.may_be_nan,
    )


# --- arithmetic ---------------------------------------------------------------------------------


def add(a: Interval, b: Interval) -> Interval:
    """Return the sums."""
    cancels = (a.high == math.inf and b.low == -math.inf) or (
        a.low == -math.inf and b.high == math.inf
    )
    low = -math.inf if -math.inf in (a.low, b.low) else a.low + b.low
    high = math.inf if math.inf in (a.high, b.high) else a.high + b.high
    return Interval(low, high, a.may_be_nan or b.may_be_nan or cancels)


def negative(a: Interval) -> Interval:
    """Return the numbers with the other sign."""
    return Interval(-a.high, -a.low, a.may_be_nan)


def multiply(a: Interval, b: Interval) -> Interval:
    """Return the products."""
    products = [_times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    is_nan = (a.has(0) and b.may_be_inf) or (b.has(0) and a.may_be_inf)
    return Interval(min(products), max(products), a.may_be_nan or b.may_be_nan or is_nan)


def _times(x: float, y: float) -> float:
    return 0 if x == 0 or y == 0 else x * y


def square(a: Interval) -> Interval:
    """Return the squares."""
    ends = (_times(a.low, a.low), _times(a.high, a.high))
    return Interval(0 if a.has(0) else min(ends), max(ends), a.may_be_nan)


def divide(a: Interval, b: Interval) -> Interval:
    """Return the quotients of floats."""
    is_nan = (a.has(0) and b.has(0)) or (a.may_be_inf and b.may_be_inf)
    is_nan = is_nan or a.may_be_nan or b.may_be_nan
    if b.has(0):
        # A zero has a sign, so a divisor that is not negative does not decide that of the quotient.
        return Interval(-math.inf, math.inf, is_nan)
    pairs = ((x, y) for x in (a.low, a.high) for y in (b.low, b.high))
    quotients = [x / y for x, y in pairs if not (math.isinf(x) and math.isinf(y))]
    if a.may_be_inf and b.may_be_inf:
        quotients += [0.0, *(x for x in (a.low, a.high) if math.isinf(x))]
        quotients += [-x for x in (a.low, a.high) if math.isinf(x)]
    return Interval(min(quotients), max(quotients), is_nan)


def absolute(a: Interval) -> Interval:
    """Return the absolute values."""
    ends = (abs(a.low), abs(a.high))
    return Interval(0 if a.has(0) else min(ends), max(ends), a.may_be_nan)


def clamp(a: Interval, low: float, high: float) -> Interval:
    """Return the numbers, limited to two bounds."""
    return Interval(min(max(a.low, low), high), max(min(a.high, high), low), a.may_be_nan)


def total(a: Interval, least: int, most: int, eps: float) -> Interval:
    """Return the sums of `least` to `most` numbers, in any order.

    Each addition has an error of at most half a unit in the last place, which is not more than the
    smaller operand; so the sum of all errors is limited for any number of terms. A partial sum may
    overflow where the whole one does not.

    Args:
        a: the interval of the numbers.
        least, most: how many there are.
        eps: that of the dtype; 0 for integers.
    """
    counts = (least, most)
    low = min(_times(a.low, count) for count in counts)
    high = max(_times(a.high, count) for count in counts)
    if most <= 1 or not eps:
        return Interval(low, high, a.may_be_nan)
    error = sum_error(most, eps) * _times(a.magnitude, most)
    is_nan = a.may_be_nan or (a.low == -math.inf and a.high == math.inf)
    wide = Interval(
        max(low - error, 0.0) if a.low >= 0 else low - error,
        min(high + error, 0.0) if a.high <= 0 else high + error,
        is_nan,
    )
    if math.isnan(wide.low) or math.isnan(wide.high):
        wide = Interval(0.0 if a.low >= 0 else -math.inf, 0.0 if a.high <= 0 else math.inf, is_nan)
    return wide


_MOST_ERROR: Final = 3.0


def sum_error(most: int, eps: float) -> float:
    """Return the error of a sum of `most` numbers, relative to the sum of their magnitudes."""
    return min(math.expm1(min(most * eps, 2.0)), _MOST_ERROR)
