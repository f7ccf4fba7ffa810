"""Integer types of any number of bits, as QONNX and FINN name them: int3, uint5, bipolar."""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple

from tiered.graph.intervals.interval import Interval
from tiered.support.errors import UsageError

_NAME: Final = re.compile(r"(u?)int([1-9]\d*)")


class IntegerType(NamedTuple):
    """The integers between two limits, or of these only -1 and 1; NaN may be there too.

    Attributes:
        low, high: the limits.
        is_bipolar: whether there are only -1 and 1.
        is_scaled: whether elements are such integers times a scale, not the integers themselves.
    """

    low: int
    high: int
    is_bipolar: bool = False
    is_scaled: bool = False

    @property
    def is_signed(self) -> bool:
        """Return whether there may be negative integers."""
        return self.low < 0

    @property
    def bits(self) -> int:
        """The least number of bits that holds them, in two's complement if they are signed."""
        if self.is_bipolar:
            return 1
        if not self.is_signed:
            return max(self.high.bit_length(), 1)
        return max((-self.low - 1).bit_length(), max(self.high, 0).bit_length()) + 1

    @property
    def name(self) -> str:
        """The name: "int3", "uint5", "bipolar"; "scaled int3" for multiples of a scale."""
        plain = "bipolar" if self.is_bipolar else f"{'' if self.is_signed else 'u'}int{self.bits}"
        return f"scaled {plain}" if self.is_scaled else plain

    @property
    def interval(self) -> Interval:
        """The interval of the integers."""
        return Interval(self.low, self.high)

    @property
    def scaled(self) -> IntegerType:
        """The type of these integers times a scale."""
        return self._replace(is_scaled=True)


BIPOLAR: Final = IntegerType(-1, 1, is_bipolar=True)
"""The type of -1 and 1."""


def limits_of(bits: int, *, signed: bool, narrow: bool = False) -> tuple[int, int]:
    """Return the limits of a number of bits.

    Args:
        bits: the number of bits.
        signed: whether they are in two's complement.
        narrow: whether the lowest integer is missing, or the highest of unsigned ones.
    """
    if signed:
        return narrow - (1 << bits - 1), (1 << bits - 1) - 1
    return 0, (1 << bits) - 1 - narrow


def integer_type(name: str) -> IntegerType:
    """Return the type of a name: "int3", "uint5", "bipolar".

    Raises:
        UsageError: no type has this name.
    """
    if name == "bipolar":
        return BIPOLAR
    found = _NAME.fullmatch(name)
    if found is None:
        raise UsageError(f"no integer type is named {name!r}; expected int<k>, uint<k> or bipolar")
    return IntegerType(*limits_of(int(found[2]), signed=not found[1]))


def integers_within(interval: Interval) -> IntegerType | None:
    """Return the type of integers that are inside of an interval; None if that is not finite."""
    if interval.may_be_inf:
        return None
    low, high = math.ceil(interval.low), math.floor(interval.high)
    return IntegerType(low, high) if low <= high else None
