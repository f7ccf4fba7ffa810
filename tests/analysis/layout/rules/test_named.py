"""Operators whose attributes and operands name axes: what is renumbered."""

import pytest

from tests.analysis.layout.rules.writing import known, node_of, orders_of_operand, written
from tiered.analysis.layout.axis_propagation import KernelAccess
from tiered.analysis.layout.rules.named import changed

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


def test_the_orders_of_the_operand_and_what_is_written_in_each() -> None:
    for text, opset, expected in (
        ("(float[2,3,4] x, float[2,5,4] z) => (y) { y = Concat<axis=-2>(x, z) }", 21,
         {"021": "axis=2", "102": "axis=0", "120": "axis=0", "201": "axis=2", "210": "axis=1"}),
        ("(float[2,3,4] x) => (y) { y = LpNormalization<axis=1>(x) }", 21,
         {"021": "axis=2", "102": "axis=0", "120": "axis=0", "201": "axis=2", "210": "axis=1"}),
        ("(float[2,3,4] x) => (y) { y, y1, y2 = Split<axis=1, num_outputs=3>(x) }", 21,
         {"021": "axis=2 num_outputs=3", "102": "num_outputs=3", "120": "num_outputs=3",
          "201": "axis=2 num_outputs=3", "210": "axis=1 num_outputs=3"}),
        ("(float[2,3,4] x) => (y) <int64[1] k = {2}> { y, i = TopK<axis=1>(x, k) }", 21,
         {"021": "axis=2 1:[2]", "102": "axis=0 1:[2]", "120": "axis=0 1:[2]",
          "201": "axis=2 1:[2]", "210": "axis=1 1:[2]"}),
        ("(float[2,3,4] x, bool[3] c) => (y) { y = Compress<axis=1>(x, c) }", 21,
         {"021": "axis=2", "102": "axis=0", "120": "axis=0", "201": "axis=2", "210": "axis=1"}),
        ("(float[2,3,4] x, bool[3] c) => (y) { y = Compress(x, c) }", 21,
         "without an axis it flattens its operand"),
        ("(float[2,3,4] x, int64[2,3,4] i) => (y) { y = GatherElements<axis=1>(x, i) }", 21,
         {"021": "axis=2", "102": "", "120": "", "201": "axis=2", "210": "axis=1"}),
        ("(float[2,3,4] x, int64[2,3,4] i) => (y) { y = ScatterElements<axis=-1>(x, i, x) }", 21,
         {"021": "axis=1", "102": "axis=2", "120": "axis=1", "201": "", "210": ""}),
        ("(float[2,3,4] x) => (y) { y = ArgMin<axis=1, keepdims=0>(x) }", 21,
         {"021": "axis=2 keepdims=0", "102": "keepdims=0", "120": "keepdims=0",
          "201": "axis=2 keepdims=0", "210": "axis=1 keepdims=0"}),
        ("(int64[2,3] x, int64 d, float[2] v) => (y) { y = OneHot<axis=1>(x, d, v) }", 21,
         {"10": "axis=2"}),
        ("(int64[2,3] x, int64 d, float[2] v) => (y) { y = OneHot(x, d, v) }", 21,
         {"10": "axis=1"}),
        ("(float[2,3,4] x, float s) => (y) { y = QuantizeLinear(x, s) }", 21,
         {"021": "", "102": "", "120": "", "201": "", "210": ""}),
        ("(float[2,3,4] x, float[3] s) => (y) { y = QuantizeLinear(x, s) }", 21,
         {"021": "axis=2", "102": "axis=0", "120": "axis=0", "201": "axis=2", "210": ""}),
        ("(float[2,3,4] x, float[4] s) => (y) { y = QuantizeLinear<axis=-1>(x, s) }", 21,
         {"021": "", "102": "axis=2", "120": "", "201": "axis=0", "210": "axis=0"}),
        ("(float[2,3,4] x, float[2,3,2] s) => (y) "
         "{ y = QuantizeLinear<axis=2, block_size=2>(x, s) }", 21,
         {"021": "block_size=2", "102": "axis=2 block_size=2", "120": "block_size=2",
          "201": "axis=0 block_size=2", "210": "axis=0 block_size=2"}),
        ("(float[2,3,4] x) => (y) { y = MeanVarianceNormalization<axes=[0,2]>(x) }", 21,
         {"021": "axes=[0,1]", "102": "axes=[1,2]", "120": "axes=[1,2]", "201": "axes=[0,1]",
          "210": "axes=[0,2]"}),
        ("(float[2,3,4] x) => (y) <int64[1] a = {1}> { y = ReduceSum<keepdims=0>(x, a) }", 21,
         {"021": "keepdims=0 1:[2]", "102": "keepdims=0 1:[0]", "120": "keepdims=0 1:[0]",
          "201": "keepdims=0 1:[2]", "210": "keepdims=0 1:[1]"}),
        ("(float[2,3,4] x) => (y) { y = ReduceMax(x) }", 21,
         {"021": "", "102": "", "120": "", "201": "", "210": ""}),
        ("(float[2,3,4] x) => (y) <int64[2] a = {2,0}> { y = ReduceL2(x, a) }", 21,
         {"021": "1:[0,1]", "102": "1:[1,2]", "120": "1:[1,2]", "201": "1:[0,1]",
          "210": "1:[0,2]"}),
        ("(float[2,3,4] x) => (y) <int64[0] a = {}> { y = ReduceSum(x, a) }", 21,
         {"021": "1:[]", "102": "1:[]", "120": "1:[]", "201": "1:[]", "210": "1:[]"}),
        ("(float[2,3,4] x) => (y) <int32 a = {1}> { y = CumSum(x, a) }", 21,
         {"021": "1:[2]", "102": "1:[0]", "120": "1:[0]", "201": "1:[2]", "210": "1:[1]"}),
        ("(float[2,1,4] x) => (y) { y = Squeeze(x) }", 21,
         {"021": "1:[2]", "102": "1:[0]", "120": "1:[0]", "201": "1:[2]", "210": "1:[1]"}),
        ("(float[2,3] x) => (y) <int64[2] a = {0,3}> { y = Unsqueeze(x, a) }", 21,
         {"10": "1:[0,2]"}),
        ("(float[2,3,4] x) => (y) <int64[1] b = {1}, int64[1] e = {2}, int64[1] a = {-1}> "
         "{ y = Slice(x, b, e, a) }", 21,
         {"021": "1:[1] 2:[2] 3:[1]", "102": "1:[1] 2:[2] 3:[2]", "120": "1:[1] 2:[2] 3:[1]",
          "201": "1:[1] 2:[2] 3:[0]", "210": "1:[1] 2:[2] 3:[0]"}),
        ("(float[2,3,4] x) => (y) <int64[1] b = {1}, int64[1] e = {2}> { y = Slice(x, b, e) }", 21,
         {"021": "1:[1] 2:[2] 3:[0]", "102": "1:[1] 2:[2] 3:[1]", "120": "1:[1] 2:[2] 3:[2]",
          "201": "1:[1] 2:[2] 3:[1]", "210": "1:[1] 2:[2] 3:[2]"}),
        ("(float[2,3,4] x) => (y) <int64[4] p = {1,2,3,4}, int64[2] a = {2,0}> "
         "{ y = Pad(x, p, , a) }", 21,
         {"021": "1:[1,2,3,4] 3:[1,0]", "102": "1:[1,2,3,4] 3:[2,1]",
          "120": "1:[1,2,3,4] 3:[1,2]", "201": "1:[1,2,3,4] 3:[0,1]",
          "210": "1:[1,2,3,4] 3:[0,2]"}),
        ("(float[2,3] x) => (y) <int64[2] s = {2,3}> { y = Expand(x, s) }", 21,
         {"10": "1:[3,2]"}),
        ("(float[2,1] x) => (y) <int64[3] s = {4,1,3}> { y = Expand(x, s) }", 21,
         {"10": "1:[4,3,1]"}),
        ("(float[2,1] x, int64[2] s) => (y) { y = Expand(x, s) }", 21, {"10": ""}),
        ("(float[2,1] x, int64[1] s) => (y) { y = Expand(x, s) }", 21,
         "its shape has fewer axes than its operand"),
    ):  # fmt: skip
        assert orders_of_operand(text, opset) == expected, text


def test_the_axes_whose_sizes_may_change() -> None:
    for text, expected in (
        ("(float[2,3,4] x) => (y) <int64[1] b = {1}, int64[1] e = {2}> { y = Slice(x, b, e) }",
         (0,)),
        ("(float[2,N,4] x) => (y) <int64[6] p = {0,0,0,0,0,1}> { y = Pad(x, p) }", (2,)),
        ("(float[2,?,4] x) => (y) <int64[6] p = {0,0,0,0,1,0}> { y = Pad(x, p) }", (1,)),
        ("(float[] x, int64[1] b) => (float[] y) { y = Slice(x, b, b) }", ()),
        ("(float[2,3] x) => (float[] y) { y = acme.Slice(x) }", (0, 1)),
    ):  # fmt: skip
        assert changed(node_of(text)) == expected, text
