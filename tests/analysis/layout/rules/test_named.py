"""Operators whose attributes and operands name axes: what is renumbered."""

import pytest

from tests.analysis.layout.rules.writing import known, node_of, written
from tiered.analysis.layout.axis_propagation import KernelAccess

TURNED = (2, 0, 1)


@pytest.mark.parametrize(
    ("text", "axis"),
    [
        ("(float[2,3,4] x, float[2,5,4] z) => (float[2,8,4] y) { y = Concat<axis=1>(x, z) }", 2),
        ("(float[2,3,4] x) => (int64[2,1,4] y) { y = ArgMax<axis=-2>(x) }", 2),
        ("(int8[2,3,4] x, float[4] s) => (y) { y = DequantizeLinear<axis=2>(x, s) }", 0),
        ("(int64[2,3,4] x, int64 d, float[2] v) => (y) { y = OneHot<axis=0>(x, d, v) }", 0),
    ],
)
def test_an_attribute_names_the_same_axis(text: str, axis: int) -> None:
    assert written(text, TURNED).attr("axis") == axis


def test_of_one_scale_no_axis_is_named() -> None:
    made = written("(int8[2,3,4] x, float s) => (y) { y = DequantizeLinear(x, s) }", TURNED)
    assert not made.has_attr("axis")


@pytest.mark.parametrize(
    ("text", "slot", "numbers"),
    [
        (
            "(float[2,3,4] x) => (y) <int64[2] a = {0,-1}> { y = ReduceSum(x, a) }", 1, [0, 1],
        ),
        ("(float[2,3,4] x) => (y) <int64 a = {-1}> { y = CumSum(x, a) }", 1, 0),
        ("(float[2,1,4] x) => (y) <int64[1] a = {1}> { y = Squeeze(x, a) }", 1, [2]),
        ("(float[2,3,4] x) => (y) <int64[1] a = {3}> { y = Unsqueeze(x, a) }", 1, [1]),
        (
            "(float[2,3,4] x) => (y) <int64[2] b = {0,1}, int64[2] e = {1,2}> "
            "{ y = Slice(x, b, e) }", 3, [1, 2],
        ),
        ("(float[2,3,4] x) => (y) <int64[6] p = {1,2,3,4,5,6}> { y = Pad(x, p) }",
         1, [3, 1, 2, 6, 4, 5]),
        ("(float[2,3,4] x) => (y) <int64[2] p = {1,2}, int64[1] a = {-1}> { y = Pad(x, p, , a) }",
         3, [0]),
        ("(float[2,3,4] x) => (y) <int64[3] r = {5,6,7}> { y = Tile(x, r) }", 1, [7, 5, 6]),
        ("(float[2,1,4] x) => (y) <int64[2] s = {3,1}> { y = Expand(x, s) }", 1, [1, 1, 3]),
    ],
)  # fmt: skip
def test_an_operand_names_the_same_axes(text: str, slot: int, numbers: object) -> None:
    operand = written(text, TURNED).operands[slot]
    assert operand is not None
    assert operand.const is not None
    assert operand.const.tolist() == numbers


def test_axes_that_are_not_given_have_the_dtype_of_the_starts() -> None:
    text = "(float[2,3] x, int32[1] b, int32[1] e) => (y) { y = Slice(x, b, e) }"
    axes = written(text, (1, 0)).operands[3]
    assert axes is not None
    assert axes.const is not None
    assert str(axes.const.dtype) == "int32"


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("(float[2,3] x, float[4,3] z) => (y) { y = Concat<axis=0>(x, z) }",
         KernelAccess("concat", (0,))),
        ("(float[2,3] x) => (y) <int64[1] a = {1}> { y = ReduceMax(x, a) }",
         KernelAccess("reduction", (1,))),
        ("(float[2,3] x) => (y) <int64[1] a = {1}> { y = ReduceMean(x, a) }",
         KernelAccess("sum", (1,))),
        ("(float[2,3] x) => (y) <int64[4] p = {0,1,0,0}> { y = Pad(x, p) }",
         KernelAccess("pad", (1,))),
        ("(float[2,3] x) => (y) <int64[2] r = {1,2}> { y = Tile(x, r) }", KernelAccess("tile")),
    ],
)  # fmt: skip
def test_the_time_depends_on_the_axes_that_change(text: str, kernel: KernelAccess) -> None:
    assert known(node_of(text)).kernel == kernel
