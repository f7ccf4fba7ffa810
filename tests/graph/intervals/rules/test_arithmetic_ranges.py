"""Ranges of arithmetic: all that operands between their limits give, and no more."""

import itertools
import math

import pytest

from tests.graph.intervals.rules.of_integers import Limits, assert_bounds, interval_of

INT = 6


@pytest.mark.parametrize(
    ("call", "limits", "expected"),
    [
        ("Add(a, b)", [(-1, 2), (3, 5)], (2, 7)),
        ("Sub(a, b)", [(-1, 2), (3, 5)], (-6, -1)),
        ("Mul(a, b)", [(-1, 2), (3, 5)], (-5, 10)),
        ("Mul(a, a)", [(-1, 2)], (0, 4)),
        ("Div(a, b)", [(-1, 2), (4, 5)], (-0.25, 0.5)),
        ("Sum(a, b)", [(0, 2), (0, 2)], (0, 4)),
        ("Mean(a, b)", [(-1, 2), (3, 5)], (-1, 5)),
        ("Max(a, b)", [(-1, 2), (0, 1)], (0, 2)),
        ("Min(a, b)", [(-1, 2), (0, 1)], (-1, 1)),
        ("Where(t, a, b)", [(-1, 2), (3, 5)], (-1, 5)),
        ("Mod<fmod = 1>(a, b)", [(-9, 3), (2, 5)], (-5, 5)),
        ("Mod<fmod = 1>(a, b)", [(0, 3), (2, 5)], (0, 3)),
        ("Mod<fmod = 1>(a, b)", [(-9, 0), (2, 5)], (-5, 0)),
        ("Pow(a, two)", [(-3, 2)], (0, 9)),
        ("Pow(a, three)", [(-3, 2)], (-27, 8)),
        ("Pow(a, four)", [(-3, 2)], (0, 81)),
        ("Pow(a, four)", [(2, 3)], (16, 81)),
        ("Pow(a, none)", [(-3, 2)], (1, 1)),
        ("Pow(a, half)", [(4, 9)], (2, 3)),
        ("Pow(a, inverse)", [(2, 4)], (0.25, 0.5)),
    ],
)
def test_the_bounds_of_floats(
    call: str, limits: list[Limits], expected: tuple[float, float]
) -> None:
    more = """bool[3] t = {1, 0, 1}, float two = {2}, float three = {3}, float four = {4},
        float none = {0}, float half = {0.5}, float inverse = {-1},"""
    assert_bounds(interval_of(f"y = {call}", *limits, more=more), expected)


def _truncated(x: int, y: int) -> int:
    return math.trunc(x / y)


SMALL = [(-4, 3), (0, 3), (-3, -1), (2, 5), (1, 1), (-2, 0)]


@pytest.mark.parametrize(
    ("call", "of_numbers"),
    [
        ("Div(a, b)", _truncated),
        ("Mod(a, b)", lambda x, y: x % y),
        ("Mod<fmod = 1>(a, b)", lambda x, y: int(math.fmod(x, y))),
        ("BitwiseAnd(a, b)", lambda x, y: x & y),
        ("BitwiseOr(a, b)", lambda x, y: x | y),
        ("BitwiseXor(a, b)", lambda x, y: x ^ y),
    ],
)
def test_all_results_of_integers_are_inside(call: str, of_numbers: object) -> None:
    assert callable(of_numbers)
    for one, other in itertools.product(SMALL, SMALL):
        found = interval_of(f"y = {call}", one, other, dtype=INT)
        pairs = itertools.product(range(one[0], one[1] + 1), range(other[0], other[1] + 1))
        made = [of_numbers(x, y) for x, y in pairs if y or "Bitwise" in call]
        assert all(found.has(number) for number in made), (one, other, found)


@pytest.mark.parametrize(
    ("call", "limits", "expected"),
    [
        ("Div(a, b)", [(-7, 9), (2, 4)], (-4, 5)),
        ("Div(a, b)", [(-8, 8), (-2, 2)], (-8, 8)),
        ("Mod(a, b)", [(-9, 9), (2, 4)], (0, 3)),
        ("Mod(a, b)", [(-9, 9), (-4, -2)], (-3, 0)),
        ("Mod(a, b)", [(0, 2), (2, 9)], (0, 2)),
        ("Mod<fmod = 1>(a, b)", [(-9, -1), (2, 4)], (-3, 0)),
        ("BitwiseAnd(a, b)", [(0, 5), (0, 9)], (0, 5)),
        ("BitwiseOr(a, b)", [(0, 5), (0, 9)], (0, 15)),
    ],
)
def test_the_bounds_of_integers_are_no_wider(
    call: str, limits: list[Limits], expected: Limits
) -> None:
    assert_bounds(interval_of(f"y = {call}", *limits, dtype=INT), expected)


def test_what_is_not_known_of_integers_is_the_whole_dtype() -> None:
    for call, limits in (
        ("Div(a, b)", [(1, 2), (0, 0)]),
        ("BitwiseOr(a, b)", [(-1, 2), (0, 3)]),
        ("Pow(a, b)", [(1, 2), (1, 2)]),
    ):
        found = interval_of(f"y = {call}", *limits, dtype=INT)
        assert (found.low, found.high) == (-(2**31), 2**31 - 1)


def test_powers_of_integers_beyond_doubles_are_not_known() -> None:
    more = "int64 e = {12}, int64 f = {16},"
    assert interval_of("y = Pow(a, e)", (0, 20), dtype=7, more=more).high == 20**12
    assert interval_of("y = Pow(a, f)", (0, 20), dtype=7, more=more).high == 2**63 - 1


@pytest.mark.parametrize(
    ("call", "limits"),
    [
        ("Pow(a, half)", (0, 4)),
        ("Pow(a, large)", (0, 1)),
        ("Pow(a, inverse)", (-1, 1)),
    ],
)
def test_powers_without_a_bound_are_any_number(call: str, limits: Limits) -> None:
    more = "float half = {0.5}, float large = {17.5}, float inverse = {-1},"
    found = interval_of(f"y = {call}", limits, more=more)
    assert (found.low, found.high, found.may_be_nan) == (-math.inf, math.inf, True)


def test_powers_that_overflow_are_infinite() -> None:
    more = "float e = {15},"
    found = interval_of("b = Exp(a)  y = Pow(b, e)", (0, 80), more=more)
    assert found.low == pytest.approx(1, rel=1e-3)
    assert found.high == math.inf
    found = interval_of("b = Exp(a)  c = Neg(b)  y = Pow(c, e)", (0, 80), more=more)
    assert found.low == -math.inf
    assert found.high == pytest.approx(-1, rel=1e-3)
    even = interval_of("b = Exp(a)  c = Neg(b)  y = Pow(c, e)", (0, 80), more="float e = {16},")
    assert even.low == pytest.approx(1, rel=1e-3)
    assert even.high == math.inf


def test_nan_of_one_operand_may_be_chosen_or_not() -> None:
    found = interval_of("n = Sqrt(a)  y = Max(n, b)", (-1, 4), (1, 3))
    assert found.may_be_nan
    assert found.low == 0
    assert found.high == pytest.approx(3)


def test_sums_of_large_numbers_may_be_nan_in_a_partial_sum() -> None:
    more = "float large = {3e38}, float low = {-3e38},"
    found = interval_of("y = Sum(large, large, low, low)", (0, 1), more=more)
    assert found.may_be_nan
    assert interval_of("y = Mean(large, large, low, low)", (0, 1), more=more).may_be_nan
    assert not interval_of("y = Mean(a, a)", (0, 1)).may_be_nan
    assert interval_of("y = Mean(large, large)", (0, 1), more=more).high == math.inf
    assert interval_of("y = Mean(low, low)", (0, 1), more=more).low == -math.inf


def test_a_remainder_of_0_or_of_infinity_is_nan() -> None:
    assert interval_of("y = Mod<fmod = 1>(a, b)", (1, 2), (0, 2)).may_be_nan
    assert interval_of("l = Log(a)  y = Mod<fmod = 1>(l, b)", (0, 2), (1, 2)).may_be_nan
    assert not interval_of("y = Mod<fmod = 1>(a, b)", (1, 2), (1, 2)).may_be_nan
    for line in ("Mod<fmod = 1>(n, b)", "Mod<fmod = 1>(b, m)"):
        found = interval_of(f"n = Sqrt(a)  m = Add(n, b)  y = {line}", (-1, 4), (5, 7))
        assert found.may_be_nan, line


def test_powers_by_exponents_that_are_no_number_are_any_number() -> None:
    more = "float none = {0}, float one = {1}, float inf = {inf},"
    nodes = "n = Sqrt(a)  m = Mul(n, none)  "
    for line, expected in (
        ("Pow(b, m)", (-math.inf, math.inf, True)),
        ("Pow(b, inf)", (-math.inf, math.inf, True)),
        ("Pow(n, none)", (1, 1, False)),
    ):
        found = interval_of(f"{nodes}y = {line}", (-1, 4), (2, 3), more=more)
        assert found == pytest.approx(expected, rel=1e-3), line
    assert interval_of(f"{nodes}y = Pow(n, one)", (-1, 4), (2, 3), more=more).may_be_nan
    found = interval_of("y = Pow(a, e)", (2, 4), dtype=INT, more="int32 e = {-1},")
    assert (found.low, found.high) == (-(2**31), 2**31 - 1)
