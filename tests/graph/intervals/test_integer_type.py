"""Types of integers of any number of bits: limits, names and what is inside of an interval."""

import math

import pytest

from tiered import IntegerType, Interval
from tiered.graph.intervals.integer_type import BIPOLAR, integer_type, integers_within, limits_of


@pytest.mark.parametrize(
    ("bits", "signed", "narrow", "limits"),
    [
        (8, True, False, (-128, 127)),
        (8, True, True, (-127, 127)),
        (8, False, False, (0, 255)),
        (8, False, True, (0, 254)),
        (1, True, False, (-1, 0)),
        (1, False, False, (0, 1)),
    ],
)
def test_limits_of_bits(bits: int, signed: bool, narrow: bool, limits: tuple[int, int]) -> None:
    assert limits_of(bits, signed=signed, narrow=narrow) == limits


@pytest.mark.parametrize(
    ("interval", "expected"),
    [
        (Interval(-1.5, 2.5), IntegerType(-1, 2)),
        (Interval(3, 3), IntegerType(3, 3)),
        (Interval(0.25, 0.75), None),
        (Interval(-math.inf, 3), None),
        (Interval(0, math.inf), None),
    ],
)
def test_the_integers_inside_of_an_interval(
    interval: Interval, expected: IntegerType | None
) -> None:
    assert integers_within(interval) == expected


def test_what_a_type_says() -> None:
    found = integer_type("int3")
    assert (found.low, found.high, found.bits, found.is_signed) == (-4, 3, 3, True)
    assert found.interval == Interval(-4, 3)
    assert found.scaled.name == "scaled int3"
    assert (BIPOLAR.bits, BIPOLAR.name) == (1, "bipolar")
    assert integer_type("uint5").is_signed is False
