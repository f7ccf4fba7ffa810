"""Older forms become newer ones and back, and what an opset lacks is written otherwise."""

from typing import NamedTuple

import pytest

from tests.graph.opset.texts import IMAGE, X, at
from tiered.testing import Runtime, assert_rewrites

PASS = "convert_opset"


class Pair(NamedTuple):
    """A model in the forms of two opsets, the older one first."""

    low: int
    older: str
    high: int
    newer: str
    runtime: Runtime = "onnxruntime"


PAIRS = {
    "MaxPool whose windows do not start in the padding": Pair(
        21, "(float[1,1,H,W] x) => (float[1,1,P,Q] y) "
        "{ y = MaxPool<kernel_shape = [2,2], strides = [2,2], pads = [0,0,1,1]>(x) }",
        22, "(float[1,1,H,W] x) => (float[1,1,P,Q] y) "
        "{ y = MaxPool<kernel_shape = [2,2], strides = [2,2], pads = [0,0,1,1]>(x) }",
    ),
    "Softmax": Pair(
        9, X + "{ y = Softmax<axis = 1>(x) }", 21, X + "{ y = Softmax<axis = -1>(x) }"
    ),
    "Softmax of the default axis": Pair(
        12, X + "{ y = Softmax<axis = 1>(x) }", 13, X + "{ y = Softmax<axis = -1>(x) }"
    ),
    "Clip": Pair(
        10, X + "{ y = Clip<max = 2.0, min = -1.0>(x) }",
        11, X + "<float lo = {-1.0}, float hi = {2.0}> { y = Clip(x, lo, hi) }",
    ),
    "Pad": Pair(
        10, X + "{ y = Pad<mode = \"constant\", pads = [0, 1, 1, 0], value = 3.0>(x) }",
        18, X + "<int64[4] p = {0, 1, 1, 0}, float v = {3.0}> "
        "{ y = Pad<mode = \"constant\">(x, p, v) }",
    ),
    "Slice": Pair(
        9, X + "{ y = Slice<axes = [1], ends = [2], starts = [0]>(x) }",
        13, X + "<int64[1] s = {0}, int64[1] e = {2}, int64[1] a = {1}> { y = Slice(x, s, e, a) }",
    ),
    "TopK": Pair(
        9, "(float[2,3] x) => (float[2,2] y, int64[2,2] i) { y, i = TopK<axis = 1, k = 2>(x) }",
        11, "(float[2,3] x) => (float[2,2] y, int64[2,2] i) <int64[1] k = {2}> "
        "{ y, i = TopK<axis = 1>(x, k) }",
    ),
    "Split": Pair(
        12, "(float[2,3] x) => (float[2,1] y, float[2,2] z) "
        "{ y, z = Split<axis = 1, split = [1, 2]>(x) }",
        18, "(float[2,3] x) => (float[2,1] y, float[2,2] z) <int64[2] s = {1, 2}> "
        "{ y, z = Split<axis = 1>(x, s) }",
    ),
    "Split evenly": Pair(
        13, "(float[2,3] x) => (float[1,3] y, float[1,3] z) { y, z = Split(x) }",
        18, "(float[2,3] x) => (float[1,3] y, float[1,3] z) { y, z = Split<num_outputs = 2>(x) }",
    ),
    "Squeeze": Pair(
        12, "(float[1,3] x) => (float[3] y) { y = Squeeze<axes = [0]>(x) }",
        13, "(float[1,3] x) => (float[3] y) <int64[1] a = {0}> { y = Squeeze(x, a) }",
    ),
    "Unsqueeze": Pair(
        12, "(float[3] x) => (float[1,3] y) { y = Unsqueeze<axes = [0]>(x) }",
        21, "(float[3] x) => (float[1,3] y) <int64[1] a = {0}> { y = Unsqueeze(x, a) }",
    ),
    "ReduceSum": Pair(
        12, X + "{ y = ReduceSum<axes = [1]>(x) }",
        13, X + "<int64[1] a = {1}> { y = ReduceSum(x, a) }",
    ),
    "ReduceMax": Pair(
        17, X + "{ y = ReduceMax<axes = [1], keepdims = 1>(x) }",
        18, X + "<int64[1] a = {1}> { y = ReduceMax<keepdims = 1>(x, a) }",
    ),
    "Dropout": Pair(
        11, X + "{ y = Dropout<ratio = 0.25>(x) }",
        22, X + "<float r = {0.25}> { y = Dropout(x, r) }",
    ),
    "Resize": Pair(
        11, IMAGE + "<float[0] none = {}, float[4] s = {1, 1, 2, 2}> "
        "{ y = Resize<mode = \"linear\">(x, none, s) }",
        19, IMAGE + "<float[4] s = {1, 1, 2, 2}> { y = Resize<mode = \"linear\">(x, \"\", s) }",
    ),
    "Upsample": Pair(
        9, IMAGE + "<float[4] s = {1, 1, 2, 2}> { y = Upsample<mode = \"nearest\">(x, s) }",
        11, IMAGE + "<float[0] none = {}, float[4] s = {1, 1, 2, 2}> { y = Resize"
        "<coordinate_transformation_mode = \"asymmetric\", mode = \"nearest\", "
        "nearest_mode = \"floor\">(x, none, s) }",
    ),
    "Resize to Upsample-7": Pair(
        7, IMAGE + "{ y = Upsample<mode = \"linear\", scales = [1.0, 1.0, 2.0, 2.0]>(x) }",
        10, IMAGE + "<float[4] s = {1, 1, 2, 2}> { y = Resize<mode = \"linear\">(x, s) }",
    ),
    "Scatter": Pair(
        10, "(float[3] x, float[2] u) => (float[3] y) <int64[2] i = {2, 0}> { y = Scatter(x, i, u) }",
        18, "(float[3] x, float[2] u) => (float[3] y) <int64[2] i = {2, 0}> "
        "{ y = ScatterElements(x, i, u) }",
    ),
    "GridSample": Pair(
        16, "(float[1,1,3,3] x, float[1,2,2,2] g) => (float[1,1,2,2] y) "
        "{ y = GridSample<mode = \"bicubic\">(x, g) }",
        20, "(float[1,1,3,3] x, float[1,2,2,2] g) => (float[1,1,2,2] y) "
        "{ y = GridSample<mode = \"cubic\">(x, g) }",
    ),
    "DFT of the default axis": Pair(
        17, "(float[1,4,3,1] x) => (float[1,4,3,2] y) { y = DFT<axis = 1>(x) }",
        20, "(float[1,4,3,1] x) => (float[1,4,3,2] y) <int64 a = {1}> { y = DFT(x, \"\", a) }",
    ),
    "RoiAlign": Pair(
        15, "(float[1,1,4,4] x, float[1,4] r) => (float[1,1,1,1] y) <int64[1] b = {0}> "
        "{ y = RoiAlign(x, r, b) }",
        16, "(float[1,1,4,4] x, float[1,4] r) => (float[1,1,1,1] y) <int64[1] b = {0}> "
        "{ y = RoiAlign<coordinate_transformation_mode = \"output_half_pixel\">(x, r, b) }",
        "none",
    ),
    "Cast keeps what it has": Pair(
        9, "(float[2] x) => (int64[2] y) { y = Cast<to = 7>(x) }",
        21, "(float[2] x) => (int64[2] y) { y = Cast<to = 7>(x) }",
    ),
    "QuantizeLinear": Pair(
        13, "(float[2] x) => (int8[2] y) <float s = {0.5}, int8 z = {0}> "
        "{ y = QuantizeLinear(x, s, z) }",
        21, "(float[2] x) => (int8[2] y) <float s = {0.5}, int8 z = {0}> "
        "{ y = QuantizeLinear(x, s, z) }",
    ),
    "BatchNormalization": Pair(
        7, "(float[1,2,2] x) => (float[1,2,2] y) <float[2] s = {2, 3}> "
        "{ y = BatchNormalization(x, s, s, s, s) }",
        15, "(float[1,2,2] x) => (float[1,2,2] y) <float[2] s = {2, 3}> "
        "{ y = BatchNormalization(x, s, s, s, s) }",
    ),
    "Reshape": Pair(
        13, X + "<int64[2] s = {0, -1}> { y = Reshape(x, s) }",
        19, X + "<int64[2] s = {0, -1}> { y = Reshape(x, s) }",
    ),
    "consumed inputs": Pair(
        5, X + "{ y = Relu(x) }", 6, X + "{ y = Relu(x) }", "none"
    ),
    "operands of equal shapes": Pair(
        6, X + "{ y = Add(x, x) }", 13, X + "{ y = Add(x, x) }", "none"
    ),
    "an operand of the last dims": Pair(
        6, X + "<float[3] b = {1, 2, 3}> { y = Mul<broadcast = 1>(x, b) }",
        7, X + "<float[3] b = {1, 2, 3}> { y = Mul(x, b) }", "none",
    ),
    "Gemm broadcasts its bias": Pair(
        6, "(float[2,3] x, float[3,4] w, float[4] b) => (float[2,4] y) "
        "{ y = Gemm<broadcast = 1>(x, w, b) }",
        13, "(float[2,3] x, float[3,4] w, float[4] b) => (float[2,4] y) { y = Gemm(x, w, b) }", "none",
    ),
    "a BatchNormalization that is a test": Pair(
        6, IMAGE + "<float[2] s = {2, 3}> { y = BatchNormalization<is_test = 1>(x, s, s, s, s) }",
        15, IMAGE + "<float[2] s = {2, 3}> { y = BatchNormalization(x, s, s, s, s) }", "none",
    ),
    "a Dropout that is a test": Pair(
        1, X + "{ y = Dropout<is_test = 1>(x) }", 22, X + "{ y = Dropout(x) }", "none"
    ),
    "Cast to a name": Pair(
        5, "(float[2] x) => (int64[2] y) { y = Cast<to = \"INT64\">(x) }",
        13, "(float[2] x) => (int64[2] y) { y = Cast<to = 7>(x) }", "none",
    ),
    "paddings": Pair(
        1, X + "{ y = Pad<paddings = [0, 1, 1, 0]>(x) }",
        13, X + "<int64[4] p = {0, 1, 1, 0}> { y = Pad(x, p) }", "none",
    ),
    "Reshape by an attribute": Pair(
        4, X + "{ y = Reshape<shape = [0, -1]>(x) }",
        13, X + "<int64[2] s = {0, -1}> { y = Reshape(x, s) }", "none",
    ),
    "Upsample of an image": Pair(
        6, IMAGE + "{ y = Upsample<height_scale = 2.0, mode = \"bilinear\", width_scale = 3.0>(x) }",
        9, IMAGE + "<float[4] s = {1, 1, 2, 3}> { y = Upsample<mode = \"linear\">(x, s) }", "none",
    ),
    "the sequence output of an RNN": Pair(
        6, "(float[1,1,2] x, float[1,1,2] w, float[1,1,1] r) => (float[1,1,1,1] y) "
        "{ y = RNN<hidden_size = 1, output_sequence = 1>(x, w, r) }",
        13, "(float[1,1,2] x, float[1,1,2] w, float[1,1,1] r) => (float[1,1,1,1] y) "
        "{ y = RNN<hidden_size = 1>(x, w, r) }", "none",
    ),
    "GRU of the default direction": Pair(
        2, "(float[1,1,2] x, float[1,3,2] w, float[1,3,1] r) => (float[1,1,1,1] y) { y, h = GRU"
        "<direction = \"forward\", hidden_size = 1, output_sequence = 1>(x, w, r) }",
        13, "(float[1,1,2] x, float[1,3,2] w, float[1,3,1] r) => (float[1,1,1,1] y) "
        "{ y, h = GRU<direction = \"forward\", hidden_size = 1>(x, w, r) }", "none",
    ),
    "p of a norm": Pair(
        1, "(float[1,1,4] x) => (float[1,1,3] y) { y = LpPool<kernel_shape = [2], p = 1.0>(x) }",
        18, "(float[1,1,4] x) => (float[1,1,3] y) { y = LpPool<kernel_shape = [2], p = 1>(x) }", "none",
    ),
    "the axis of a Split": Pair(
        1, "(float[2,3] x) => (float[1,3] y, float[1,3] z) { y, z = Split<axis = 0>(x) }",
        13, "(float[2,3] x) => (float[1,3] y, float[1,3] z) { y, z = Split<axis = 0>(x) }", "none",
    ),
    "a slope of one number": Pair(
        6, X + "<float[1] s = {0.5}> { y = PRelu(x, s) }",
        16, X + "<float[1] s = {0.5}> { y = PRelu(x, s) }", "none",
    ),
    "a body": Pair(
        10, "(bool c, float[3] x) => (float[3] y) { y = If(c) <"
        "then_branch = t () => (float[3] u) { u = Clip<min = 0.0>(x) }, "
        "else_branch = e () => (float[3] v) { v = Neg(x) }> }",
        11, "(bool c, float[3] x) => (float[3] y) { y = If(c) <"
        "then_branch = t () => (float[3] u) <float lo = {0.0}> { u = Clip(x, lo) }, "
        "else_branch = e () => (float[3] v) { v = Neg(x) }> }",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_an_older_form_becomes_the_newer_one(name: str) -> None:
    pair = PAIRS[name]
    older, newer = at(pair.low, pair.older), at(pair.high, pair.newer)
    assert_rewrites(PASS, older, newer, runtime=pair.runtime, to=pair.high)


@pytest.mark.parametrize("name", PAIRS)
def test_a_newer_form_becomes_the_older_one(name: str) -> None:
    pair = PAIRS[name]
    older, newer = at(pair.low, pair.older), at(pair.high, pair.newer)
    assert_rewrites(PASS, newer, older, runtime=pair.runtime, to=pair.low)


class OneWay(NamedTuple):
    """A model in the form of one opset, and what a conversion makes of it."""

    before: int
    text: str
    after: int
    made: str
    runtime: Runtime = "onnxruntime"


ONE_WAY = {
    "Slice of axes from both ends counts them from the front": OneWay(
        13, X + "<int64[2] s = {0,0}, int64[2] e = {1,2}, int64[2] a = {0,-1}> "
        "{ y = Slice(x, s, e, a) }",
        9, X + "{ y = Slice<axes = [0,1], ends = [1,2], starts = [0,0]>(x) }",
    ),
    "Softmax over several dims is flattened": OneWay(
        9, "(float[2,3,4] x) => (float[2,3,4] y) { y = Softmax(x) }",
        13, "(float[2,3,4] x) => (float[2,3,4] y) { s = Shape(x)  f = Flatten<axis = 1>(x)  "
        "r = Softmax<axis = -1>(f)  y = Reshape(r, s) }",
    ),
    "Softmax before Reshape has an operand": OneWay(
        4, "(float[N,3,4] x) => (float[N,3,4] y) { y = Softmax(x) }",
        13, "(float[N,3,4] x) => (float[N,3,4] y) <int64[3] s = {-1, 3, 4}> { f = Flatten<axis = 1>(x)  "
        "r = Softmax<axis = -1>(f)  y = Reshape(r, s) }", "none",
    ),
    "Softmax of an unknown rank is flattened": OneWay(
        12, "(float[a,b] x, int64[r] s) => (float[c,d,e] y) { h = Reshape(x, s)  "
        "y = Softmax<axis = 1>(h) }",
        13, "(float[a,b] x, int64[r] s) => (float[c,d,e] y) { h = Reshape(x, s)  t = Shape(h)  "
        "f = Flatten<axis = 1>(h)  q = Softmax<axis = -1>(f)  y = Reshape(q, t) }", "none",
    ),
    "Softmax of a middle axis is transposed": OneWay(
        13, "(float[2,3,4] x) => (float[2,3,4] y) { y = LogSoftmax<axis = 1>(x) }",
        12, "(float[2,3,4] x) => (float[2,3,4] y) { t = Transpose<perm = [0, 2, 1]>(x)  "
        "q = LogSoftmax<axis = 2>(t)  y = Transpose<perm = [0, 2, 1]>(q) }",
    ),
    "ReduceMax of bool is one of uint8": OneWay(
        20, "(bool[2,3] x) => (bool[2,1] y) <int64[1] a = {1}> { y = ReduceMax(x, a) }",
        13, "(bool[2,3] x) => (bool[2,1] y) "
        "{ c = Cast<to = 2>(x)  r = ReduceMax<axes = [1]>(c)  y = Cast<to = 9>(r) }",
    ),
    "ReduceMin of no bool is true": OneWay(
        20, "(bool[2,0] x) => (bool[2] y) <int64[1] a = {1}> { y = ReduceMin<keepdims = 0>(x, a) }",
        18, "(bool[2,0] x) => (bool[2] y) <int64[1] a = {1}> "
        "{ c = Cast<to = 2>(x)  r = ReduceMin<keepdims = 0>(c, a)  y = Cast<to = 9>(r) }", "none",
    ),
    "Identity of a sequence goes": OneWay(
        16, "(float[2] x) => (int64 y) { s = SequenceConstruct(x, x)  t = Identity(s)  "
        "y = SequenceLength(t) }",
        13, "(float[2] x) => (int64 y) { s = SequenceConstruct(x, x)  y = SequenceLength(s) }",
    ),
    "a sequence that keeps both its names": OneWay(
        16, "(seq(float[2]) x) => (seq(float[2]) y) { y = Identity(x) }",
        13, "(seq(float[2]) x) => (seq(float[2]) y) <float[2] c = {0, 0}, int64 zero = {0}, int64 z = {0}> "
        "{ i = SequenceInsert(x, c, zero)  y = SequenceErase(i, z) }",
    ),
    "a sequence that a branch returns": OneWay(
        16, "(float[2] x, bool c) => (int64 y) { s = SequenceConstruct(x, x)  q = If(c) <"
        "then_branch = t () => (seq(float[2]) u) { u = Identity(s) }, "
        "else_branch = e () => (seq(float[2]) v) { v = SequenceConstruct(x) }>  y = SequenceLength(q) }",
        13, "(float[2] x, bool c) => (int64 y) { s = SequenceConstruct(x, x)  q = If(c) <"
        "then_branch = t () => (seq(float[2]) u) <float[2] k = {0, 0}, int64 z = {0}, int64 o = {0}> "
        "{ i = SequenceInsert(s, k, z)  u = SequenceErase(i, o) }, "
        "else_branch = e () => (seq(float[2]) v) { v = SequenceConstruct(x) }>  y = SequenceLength(q) }",
    ),
    "an operand from an axis on": OneWay(
        6, "(float[2,3,4] x, float[3] b) => (float[2,3,4] y) { y = Sub<axis = 1, broadcast = 1>(x, b) }",
        7, "(float[2,3,4] x, float[3] b) => (float[2,3,4] y) "
        "{ u = Unsqueeze<axes = [1]>(b)  y = Sub(x, u) }", "none",
    ),
    "a slope for each channel": OneWay(
        6, "(float[2,3,4,5] x, float[3] s) => (float[2,3,4,5] y) { y = PRelu(x, s) }",
        9, "(float[2,3,4,5] x, float[3] s) => (float[2,3,4,5] y) "
        "{ u = Unsqueeze<axes = [1, 2]>(s)  y = PRelu(x, u) }", "none",
    ),
    "inputs that are overwritten": OneWay(
        1, IMAGE + "<float[2] s = {2, 3}> { y = BatchNormalization"
        "<consumed_inputs = [0, 0, 0, 1, 1], is_test = 1>(x, s, s, s, s) }",
        9, IMAGE + "<float[2] s = {2, 3}> { y = BatchNormalization(x, s, s, s, s) }", "none",
    ),
    "Concat without an axis": OneWay(
        1, X + "{ y = Concat(x, x) }", 13, X + "{ y = Concat<axis = 1>(x, x) }", "none"
    ),
    "Selu had rounder defaults": OneWay(
        1, X + "{ y = Selu(x) }", 22, X + "{ y = Selu<alpha = 1.6732, gamma = 1.0507>(x) }", "none"
    ),
    "Tile along one axis": OneWay(
        1, X + "<float[1] t = {2}, float[1] a = {1}> { y = Tile(x, t, a) }",
        13, X + "<int64[2] t = {1, 2}> { y = Tile(x, t) }", "none",
    ),
    "the misspelt direction of GRU-1": OneWay(
        1, "(float[1,1,2] x, float[1,3,2] w, float[1,3,1] r) => (float[1,1,1,1] y) "
        "{ y, h = GRU<direction = \"foward\", hidden_size = 1>(x, w, r) }",
        13, "(float[1,1,2] x, float[1,3,2] w, float[1,3,1] r) => (float[1,1,1,1] y) "
        "{ y, h = GRU<direction = \"forward\", hidden_size = 1>(x, w, r) }", "none",
    ),
    "sizes of a Split as an operand": OneWay(
        1, "(float[3] x) => (float[1] y, float[2] z) <float[2] s = {1, 2}> { y, z = Split<axis = 0>(x, s) }",
        11, "(float[3] x) => (float[1] y, float[2] z) { y, z = Split<axis = 0, split = [1, 2]>(x) }",
        "none",
    ),
    "GroupNormalization gets a scale for each channel": OneWay(
        20, "(float[1,4,2] x) => (float[1,4,2] y) <float[2] s = {2, 3}, float[2] b = {1, 0}> "
        "{ y = GroupNormalization<num_groups = 2>(x, s, b) }",
        21, "(float[1,4,2] x) => (float[1,4,2] y) <float[4] s = {2, 2, 3, 3}, "
        "float[4] b = {1, 1, 0, 0}> { y = GroupNormalization<num_groups = 2>(x, s, b) }",
        "none",  # the older one is deprecated
    ),
    "a negative axis is counted from the front": OneWay(
        13, X + "{ y = Concat<axis = -1>(x, x) }", 9, X + "{ y = Concat<axis = 1>(x, x) }"
    ),
    "Pad of some axes has pads for all": OneWay(
        18, X + "<int64[2] p = {1, 2}, int64[1] a = {-1}> { y = Pad(x, p, \"\", a) }",
        13, X + "<int64[4] p = {0, 1, 0, 2}> { y = Pad(x, p) }",
    ),
    "Pad of computed axes scatters its pads": OneWay(
        18, "(float[2,3] x, int64[1] a) => (float[N,M] y) <int64[2] p = {1, 2}> "
        "{ y = Pad(x, p, \"\", a) }",
        13, "(float[2,3] x, int64[1] a) => (float[N,M] y) <int64[2] p = {1, 2}, int64[1] r = {2}, "
        "int64[4] zeros = {0, 0, 0, 0}, int64[1] q = {2}> { m = Mod(a, r)  n = Add(m, q)  "
        "c = Concat<axis = 0>(m, n)  w = ScatterElements<axis = 0>(zeros, c, p)  y = Pad(x, w) }",
        "none",  # a made axis is out of range
    ),
    "Shape of some dims is a Slice": OneWay(
        15, "(float[N,3,4] x) => (int64[2] y) { y = Shape<start = -2>(x) }",
        14, "(float[N,3,4] x) => (int64[2] y) <int64[1] s = {-2}, "
        "int64[1] e = {9223372036854775807}, int64[1] a = {0}> "
        "{ h = Shape(x)  y = Slice(h, s, e, a) }",
    ),
    "GreaterOrEqual becomes its body": OneWay(
        16, "(float[3] x, float[3] z) => (bool[3] y) { y = GreaterOrEqual(x, z) }",
        11, "(float[3] x, float[3] z) => (bool[3] y) "
        "{ a = Greater(x, z)  b = Equal(x, z)  y = Or(a, b) }",
    ),
    "CastLike becomes Cast": OneWay(
        15, "(float[3] x, int64[1] z) => (int64[3] y) { y = CastLike(x, z) }",
        13, "(float[3] x, int64[1] z) => (int64[3] y) { y = Cast<to = 7>(x) }",
    ),
    "Gemm gets the bias that changes nothing": OneWay(
        11, "(float[2,3] x, float[3,2] w) => (float[2,2] y) { y = Gemm(x, w) }",
        9, "(float[2,3] x, float[3,2] w) => (float[2,2] y) <float b = {-0.0}> "
        "{ y = Gemm(x, w, b) }",
    ),
    "an uneven Split lists its sizes": OneWay(
        18, "(float[5] x) => (float[3] y, float[2] z) { y, z = Split<num_outputs = 2>(x) }",
        13, "(float[5] x) => (float[3] y, float[2] z) <int64[2] s = {3, 2}> { y, z = Split(x, s) }",
    ),
    "saturate means nothing to a Cast to int64": OneWay(
        19, "(float[2] x) => (int64[2] y) { y = Cast<saturate = 0, to = 7>(x) }",
        13, "(float[2] x) => (int64[2] y) { y = Cast<to = 7>(x) }",
        "none",  # onnxruntime takes saturate for float8 alone
    ),
    "dilations of 1 are no dilations": OneWay(
        19, "(float[1,1,4] x) => (float[1,1,2] y) "
        "{ y = AveragePool<dilations = [1], kernel_shape = [3]>(x) }",
        18, "(float[1,1,4] x) => (float[1,1,2] y) { y = AveragePool<kernel_shape = [3]>(x) }",
        "none",
    ),
    "an output dtype is that of a zero point": OneWay(
        21, "(float[2] x) => (int8[2] y) <float s = {0.5}> "
        "{ y = QuantizeLinear<output_dtype = 3>(x, s) }",
        13, "(float[2] x) => (int8[2] y) <float s = {0.5}, int8 z = {0}> "
        "{ y = QuantizeLinear(x, s, z) }",
    ),
    "axes that nodes compute of constants": OneWay(
        18, X + "<int64 a = {-1}, int64[1] one = {1}> { r = Reshape(a, one)  y = ReduceL2(x, r) }",
        17, X + "{ y = ReduceL2<axes = [-1]>(x) }",
    ),
    "sizes that nodes compute of known shapes": OneWay(
        18, "(float[N,6] x) => (float[N,3] y, float[N,3] z) <int64[1] at = {1}, int64[1] h = {3}> "
        "{ s = Shape(x)  d = Gather<axis = 0>(s, at)  q = Sub(d, h)  p = Concat<axis = 0>(h, q)  "
        "y, z = Split<axis = 1>(x, p) }",
        12, "(float[N,6] x) => (float[N,3] y, float[N,3] z) "
        "{ y, z = Split<axis = 1, split = [3, 3]>(x) }",
    ),
    "limits that nodes cast and move": OneWay(
        12, X + "<int64[1] a = {-1}, double b = {2.5}> { f = Cast<to = 1>(a)  g = Squeeze(f)  "
        "h = Cast<to = 1>(b)  y = Clip(x, g, h) }",
        10, X + "{ y = Clip<max = 2.5, min = -1.0>(x) }",
    ),
    "a scalar where a list of axes is due": OneWay(
        13, "(float[3] x) => (float[3,1] y) <int64 a = {-1}> { y = Unsqueeze(x, a) }",
        12, "(float[3] x) => (float[3,1] y) { y = Unsqueeze<axes = [-1]>(x) }",
    ),
    "computed axes in a body": OneWay(
        13, "(bool c, float[1,3] x) => (float[D] y) { y = If(c) <"
        "then_branch = t () => (float[3] u) <int64 a = {0}, int64[1] one = {1}> "
        "{ r = Reshape(a, one)  u = Squeeze(x, r) }, "
        "else_branch = e () => (float[3] v) <int64[1] b = {0}> { v = ReduceSum<keepdims = 0>(x, b) }> }",
        11, "(bool c, float[1,3] x) => (float[D] y) { y = If(c) <"
        "then_branch = t () => (float[3] u) { u = Squeeze<axes = [0]>(x) }, "
        "else_branch = e () => (float[3] v) { v = ReduceSum<axes = [0], keepdims = 0>(x) }> }",
    ),
    "Resize of some axes has scales for all": OneWay(
        18, IMAGE + "<float[2] s = {2, 2}> "
        "{ y = Resize<axes = [2, 3], mode = \"linear\">(x, \"\", s) }",
        13, IMAGE + "<float[4] s = {1, 1, 2, 2}> { y = Resize<mode = \"linear\">(x, \"\", s) }",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ONE_WAY)
def test_what_an_opset_lacks_is_written_otherwise(name: str) -> None:
    case = ONE_WAY[name]
    before, made = at(case.before, case.text), at(case.after, case.made)
    assert_rewrites(PASS, before, made, runtime=case.runtime, to=case.after)
