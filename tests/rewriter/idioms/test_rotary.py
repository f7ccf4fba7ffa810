"""Whether Slices or a Split are the halves of the last axis."""

import pytest

from tests.small import made_by, parsed
from tiered.rewriter.idioms.rotary import are_halves

CONSTANTS = """<int64[1] zero = {0}, int64[1] three = {3}, int64[1] six = {6}, int64[1] many = {99},
    int64[1] last = {-1}, int64[1] back = {-3}, int64[1] one = {1}, int64[1] two = {2},
    int64[2] pair = {0,0}, int64[2] even = {3,3}, int64[2] odd = {2,4},
    int64[3] thirds = {2,2,2}>"""
HALVES = ("Slice(x, zero, three, last)", "Slice(x, three, six, last)")


def are(first: str, second: str) -> bool:
    model = parsed(
        "(float[2,6] x, int64[1] t) => (float[?] y)"
        f" {CONSTANTS} {{ a = {first} b = {second} y = Neg(x) }}"
    )
    return are_halves(6, 2, made_by(model, "a"), made_by(model, "b"), None)


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (HALVES[0], True),
        ("Slice(x, zero, three, one)", True),
        ("Slice(x, zero, back, last)", True),
        ("Slice(x, zero, three, last, one)", True),
        ("Slice(x, zero, three, last, two)", False),
        ("Slice(x, zero, three, last, t)", False),
        ("Slice(x, zero, three, , one)", False),
        ("Slice(x, zero, three, zero)", False),
        ("Slice(x, zero, two, last)", False),
        ("Slice(x, one, three, last)", False),
        ("Slice(x, zero, three)", False),
        ("Slice(x, t, three, last)", False),
        ("Slice(x, zero, t, last)", False),
        ("Slice(x, zero, three, t)", False),
        ("Slice(x, pair, even, pair)", False),
    ],
)
def test_the_first_half_is_up_to_the_middle_of_the_last_axis(first: str, expected: bool) -> None:
    assert are(first, HALVES[1]) is expected


@pytest.mark.parametrize(
    ("second", "expected"),
    [
        ("Slice(x, back, many, last)", True),
        ("Slice(x, three, last, last)", False),
        ("Slice(x, two, six, last)", False),
    ],
)
def test_the_second_half_is_from_the_middle_to_the_end(second: str, expected: bool) -> None:
    assert are(HALVES[0], second) is expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("a, b = Split<axis=-1, num_outputs=2>(x)", True),
        ("a, b = Split<axis=1>(x, even)", True),
        ("a, b = Split<axis=1>(x, odd)", False),
        ("a, b = Split<axis=1>(x, q)", False),
        ("a, b = Split<axis=0, num_outputs=2>(x)", False),
        ("a, b, c = Split<axis=1>(x, thirds)", False),
    ],
)
def test_a_split_of_the_last_axis_in_two(call: str, expected: bool) -> None:
    inputs = "float[2,6] x, int64[2] q"
    model = parsed(f"({inputs}) => (float[?] y) {CONSTANTS} {{ {call} y = Neg(x) }}")
    assert are_halves(6, 2, None, None, made_by(model, "a")) is expected


def test_no_slices_are_no_halves() -> None:
    assert not are_halves(6, 2, None, None, None)
