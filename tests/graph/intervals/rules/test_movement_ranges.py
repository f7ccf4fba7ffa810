"""Ranges of what moves or selects elements, and of sizes and places."""

import math

import pytest

from tests.graph.intervals.rules.of_integers import Limits, assert_bounds, interval_in, interval_of

MORE = """int64[1] k = {2}, int64[4] p = {0,1,0,0}, float low = {-7}, int64[2] i = {1,0},
    int64 axis = {1}, int64[2] d = {3,5}, float[1] nine = {9}, int64[1,2] at = {0,1},
    float[2] off_on = {-1,4}, int64 depth = {3}, float one = {1}, float five = {5}, float two = {2},
    float[4] scales = {1,1,2,2}, int64[2] small = {1,1}, int64[2] to = {6,1}, float[1,2] u = {9,2},"""


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("y = Transpose(a)", (1, 4)),
        ("y = Reshape(a, to)", (1, 4)),
        ("y = Gather<axis = 1>(a, i)", (1, 4)),
        ("s, y = Split<num_outputs = 2>(a)", (1, 4)),
        ("y = Trilu(a)", (0, 4)),
        ("y = Concat<axis = 0>(a, b)", (1, 9)),
        ("y = Pad(a, p)", (0, 4)),
        ("y = Pad(a, p, low)", (-7, 4)),
        ('y = Pad<mode = "edge">(a, p)', (1, 4)),
        ("y = CenterCropPad(a, d)", (0, 4)),
        ("y = ScatterElements<axis = 1>(a, at, u)", (1, 9)),
        ("y = OneHot(i, depth, off_on)", (-1, 4)),
        ("v, y = TopK<axis = 1>(a, k)", (0, 2)),
        ("y, j = TopK(a, k)", (1, 4)),
        ("y = ArgMax<axis = 1>(a)", (0, 2)),
        ("y = ArgMin<axis = 0>(a)", (0, 1)),
        ("y = NonZero(a)", (0, 2)),
        ("y = Shape(a)", (2, 3)),
        ("y = Size(a)", (6, 6)),
        ("y = ConstantOfShape(d)", (0, 0)),
        ("y = ConstantOfShape<value = float[1] {9}>(d)", (9, 9)),
        ("y = RandomUniform<low = -2.0, high = 3.0, shape = [2]>()", (-2, 3)),
        ("s, y = Unique(a)", (0, 5)),
        ("s, v, w, y = Unique(a)", (0, 6)),
        ("s, y = Unique<axis = 1>(a)", (0, 2)),
    ],
)
def test_the_bounds_are_those_of_the_elements_or_of_the_sizes(nodes: str, expected: Limits) -> None:
    found = interval_of(nodes, (1, 4), (5, 9), dims="2,3", more=MORE)
    assert_bounds(found, expected, error=1e-3)


@pytest.mark.parametrize("reduction", ["add", "mul"])
def test_scattered_sums_have_no_bound(reduction: str) -> None:
    nodes = f'y = ScatterElements<axis = 1, reduction = "{reduction}">(a, at, u)'
    assert interval_of(nodes, (1, 4), dims="2,3", more=MORE).high == math.inf
    nodes = nodes.replace(reduction, "max")
    assert interval_of(nodes, (1, 4), dims="2,3", more=MORE).high == 9


@pytest.mark.parametrize(
    ("attributes", "is_bounded"),
    [
        ('mode = "nearest"', True),
        ('mode = "linear"', True),
        ('mode = "cubic"', False),
        ('mode = "nearest", coordinate_transformation_mode = "tf_crop_and_resize"', False),
        ('mode = "linear", coordinate_transformation_mode = "tf_crop_and_resize"', False),
    ],
)
def test_a_resize_that_extrapolates_or_overshoots_has_no_bound(
    attributes: str, is_bounded: bool
) -> None:
    more = MORE + " float[8] roi = {0,0,0,0,1,1,1,1},"
    operands = "a, roi, scales" if "crop" in attributes else "a, , scales"
    found = interval_of(f"y = Resize<{attributes}>({operands})", (1, 4), dims="1,1,2,3", more=more)
    assert math.isfinite(found.high) is is_bounded
    if is_bounded:
        assert (found.low, found.high) == pytest.approx((1, 4), abs=1e-2)


def test_of_one_element_the_place_is_known() -> None:
    for call in ("ArgMax<axis = 0>(a)", "ArgMin<axis = 0>(a)"):
        found = interval_of(f"y = {call}", (1, 4), dims="1,3")
        assert (found.low, found.high) == (0, 0)


def test_a_range_of_integers_is_between_its_ends() -> None:
    more = "int32 one = {1}, int32 two = {2},"
    found = interval_of("y = Range(one, a, two)", (3, 7), dims="", dtype=6, more=more)
    assert (found.low, found.high) == (1, 7)


def test_a_range_with_nan_has_no_bound() -> None:
    for line in ("Range(s, five, two)", "Range(one, s, two)", "Range(one, five, s)"):
        found = interval_of(f"s = Sqrt(a)  y = {line}", (-1, 4), dims="", more=MORE)
        assert found == (-math.inf, math.inf, True), line


def test_sizes_and_places_of_an_unknown_rank_are_not_negative() -> None:
    for line, dtype in (
        ("Shape(x)", "float[]"), ("NonZero(x)", "float[]"), ("NonZero(x)", "float"),
        ("Shape(x)", "float"),
        ("NonMaxSuppression(x, x)", "float[1,4,4]"),
    ):  # fmt: skip
        found = interval_in(f"({dtype} x) => (int64[] y) {{ y = {line} }}")
        assert found.low == 0, line
        assert found.high >= 2**31 - 1, line


def test_a_resize_of_infinite_numbers_has_no_bound() -> None:
    text = """(float[1,1,2,3] x) => (float[1,1,4,6] y) <float[4] s = {1,1,2,2}> {
        a = Exp(x)  y = Resize<mode = "linear">(a, , s) }"""
    assert interval_in(text) == (-math.inf, math.inf, True)
