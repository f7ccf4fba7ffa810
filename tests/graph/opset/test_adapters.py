"""Older forms become newer ones and back, and what an opset lacks is written otherwise."""

from typing import NamedTuple

import pytest

from tests.graph.opset.texts import IMAGE, X, at, form_text
from tiered.graph.core.schema import AttributeReference
from tiered.graph.opset.adapter import NoEquivalentForm, OperatorForm
from tiered.graph.opset.adapters import CHANGES
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


STOCK = """(float[2,3] x, float[1,2,4,4] im, double[2] d, float[2,1,3] mid, float[1,1,3] ones, float[3] v, float[] scalar, float[N,3] dyn, float[2,0] none, float[0] e, int64[1] ind, int64[2] inds, float[2] s2, float sc, float[M] un, bool[2,3] b, float[1,1,1] unit) => (float[A] last)
    <int64[2] pads = {1,2}, int64[1] one = {1}, int64[1] minus = {-1}, int64[4] four = {1,2,3,4}, int64[0] no = {},
    float[4] up = {1,1,2,2}, float[4] down = {1,1,0.5,0.5}, float[4] mixed = {1,1,0.5,2}, float[4] same = {1,1,1,1},
    int64[4] sizes = {1,2,3,3}, float[0] empty = {}, int64[2] target = {3,2}, int64[2] zeros = {0,2}, float half = {0.5},
    bool yes = {1}, bool not = {0}, int64[1] steps = {1}, int64[1] two = {2}>
    { r = Reshape(x, inds) u = vendor.F(x) f = Flatten(u) uf = vendor.Flatten(u)
    cast = Cast<to=1>(four) unk = Identity(u) rand = RandomNormal<shape=[4]>() deep = Identity(up) text = Cast<to=8>(up)"""
FORMS: dict[tuple[str, int, int], str] = {
    ('y = Softmax(x)', 12, 13): "Softmax {'axis': -1} x",
    ('y = Softmax<axis=0>(x)', 12, 13): 'Softmax flattens several dims (opset 12)',
    ('y = Softmax<axis=-1>(x)', 12, 13): "Softmax {'axis': -1} x",
    ('y = Softmax<axis=-2>(x)', 12, 13): 'Softmax flattens several dims (opset 12)',
    ('y = Softmax<axis=1>(mid)', 12, 13): "Softmax {'axis': 2} mid",
    ('y = Softmax<axis=0>(mid)', 12, 13): 'Softmax flattens several dims (opset 12)',
    ('y = Softmax<axis=1>(ones)', 12, 13): "Softmax {'axis': 2} ones",
    ('y = Softmax<axis=0>(ones)', 12, 13): "Softmax {'axis': 2} ones",
    ('y = Softmax<axis=2>(x)', 12, 13): 'Softmax flattens several dims (opset 12)',
    ('y = Softmax<axis=1>(v)', 12, 13): 'Softmax flattens several dims (opset 12)',
    ('y = Softmax(u)', 12, 13): 'Softmax flattens, and the rank is not known (opset 12)',
    ('y = Softmax<axis=1>(f)', 12, 13): "Softmax {'axis': -1} f",
    ('y = Softmax<axis=1>(uf)', 12, 13): 'Softmax flattens, and the rank is not known (opset 12)',
    ('y = Softmax<axis=-1>(u)', 12, 13): "Softmax {'axis': -1} u",
    ('y = LogSoftmax(dyn)', 12, 13): "LogSoftmax {'axis': -1} dyn",
    ('y = Softmax<axis=0>(dyn)', 12, 13): 'Softmax flattens several dims (opset 12)',
    ('y = Softmax<axis=-3>(ones)', 12, 13): "Softmax {'axis': 2} ones",
    ('y = Softmax(x)', 13, 12): "Softmax {'axis': 1} x",
    ('y = Softmax(x)', 13, 10): "Softmax {'axis': 1} x",
    ('y = Softmax(x)', 13, 11): "Softmax {'axis': 1} x",
    ('y = Softmax<axis=0>(x)', 13, 12): 'Softmax would flatten the dims after its axis (opset 12)',
    ('y = Softmax<axis=0>(x)', 13, 10): 'Softmax would flatten the dims after its axis (opset 10)',
    ('y = Softmax<axis=0>(x)', 13, 11): 'Softmax would flatten the dims after its axis (opset 11)',
    ('y = Softmax<axis=1>(x)', 13, 12): "Softmax {'axis': 1} x",
    ('y = Softmax<axis=1>(x)', 13, 10): "Softmax {'axis': 1} x",
    ('y = Softmax<axis=1>(x)', 13, 11): "Softmax {'axis': 1} x",
    ('y = Softmax<axis=-2>(x)', 13, 12): 'Softmax would flatten the dims after its axis (opset 12)',
    ('y = Softmax<axis=-2>(x)', 13, 10): 'Softmax would flatten the dims after its axis (opset 10)',
    ('y = Softmax<axis=-2>(x)', 13, 11): 'Softmax would flatten the dims after its axis (opset 11)',
    ('y = Softmax<axis=1>(mid)', 13, 12): 'Softmax would flatten the dims after its axis (opset 12)',
    ('y = Softmax<axis=1>(mid)', 13, 10): 'Softmax would flatten the dims after its axis (opset 10)',
    ('y = Softmax<axis=1>(mid)', 13, 11): 'Softmax would flatten the dims after its axis (opset 11)',
    ('y = Softmax<axis=0>(ones)', 13, 12): 'Softmax would flatten the dims after its axis (opset 12)',
    ('y = Softmax<axis=0>(ones)', 13, 10): 'Softmax would flatten the dims after its axis (opset 10)',
    ('y = Softmax<axis=0>(ones)', 13, 11): 'Softmax would flatten the dims after its axis (opset 11)',
    ('y = Softmax<axis=1>(ones)', 13, 12): 'Softmax would flatten the dims after its axis (opset 12)',
    ('y = Softmax<axis=1>(ones)', 13, 10): 'Softmax would flatten the dims after its axis (opset 10)',
    ('y = Softmax<axis=1>(ones)', 13, 11): 'Softmax would flatten the dims after its axis (opset 11)',
    ('y = Softmax(u)', 13, 12): "Softmax-11 takes no tensor(bfloat16) as 'input', whose type is not known",
    ('y = Softmax(u)', 13, 10): 'Softmax needs a known rank (opset 10)',
    ('y = Softmax(u)', 13, 11): "Softmax-11 takes no tensor(bfloat16) as 'input', whose type is not known",
    ('y = Softmax<axis=1>(u)', 13, 12): 'Softmax needs a known rank (opset 12)',
    ('y = Softmax<axis=1>(u)', 13, 10): 'Softmax needs a known rank (opset 10)',
    ('y = Softmax<axis=1>(u)', 13, 11): 'Softmax needs a known rank (opset 11)',
    ('y = Softmax(scalar)', 13, 12): "Softmax {'axis': -1} scalar",
    ('y = Softmax(scalar)', 13, 10): 'Softmax needs a known rank (opset 10)',
    ('y = Softmax(scalar)', 13, 11): "Softmax {'axis': -1} scalar",
    ('y = Softmax<axis=-2>(ones)', 13, 12): 'Softmax would flatten the dims after its axis (opset 12)',
    ('y = Softmax<axis=-2>(ones)', 13, 10): 'Softmax would flatten the dims after its axis (opset 10)',
    ('y = Softmax<axis=-2>(ones)', 13, 11): 'Softmax would flatten the dims after its axis (opset 11)',
    ('y = Clip<min=0.5>(d)', 10, 11): 'Clip without max has that of a float32 (opset 10)',
    ('y = Clip<max=0.5>(d)', 10, 11): 'Clip without min has that of a float32 (opset 10)',
    ('y = Clip<max=0.5,min=0.1>(d)', 10, 11): 'Clip {} d 0.10000000149011612 0.5',
    ('y = Clip(d)', 10, 11): 'Clip without min has that of a float32 (opset 10)',
    ('y = Clip(d)', 11, 10): 'Clip without min has that of a float32 (opset 10)',
    ('y = Clip(x)', 10, 11): 'Clip {} x',
    ('y = Clip(x)', 11, 10): 'Clip {} x',
    ('y = Clip(d, d)', 11, 10): 'Clip without max has that of a float32 (opset 10)',
    ('y = Clip(x, half)', 11, 10): "Clip {'min': 0.5} x",
    ('y = BatchNormalization<spatial=0>(im,s2,s2,s2,s2)', 8, 9): 'BatchNormalization is not spatial (opset 8)',
    ('y = BatchNormalization<spatial=1>(im,s2,s2,s2,s2)', 8, 9): 'BatchNormalization {} im s2 s2 s2 s2',
    ('y = BatchNormalization(im,s2,s2,s2,s2)', 8, 9): 'BatchNormalization {} im s2 s2 s2 s2',
    ('y = BatchNormalization(im,s2,s2,s2,s2)', 9, 8): 'BatchNormalization {} im s2 s2 s2 s2',
    ('y = BatchNormalization(im,s2,s2,s2,s2)', 13, 14): 'BatchNormalization {} im s2 s2 s2 s2',
    ('y = BatchNormalization(im,s2,s2,s2,s2)', 14, 13): 'BatchNormalization {} im s2 s2 s2 s2',
    ('y, m1 = BatchNormalization(im,s2,s2,s2,s2)', 13, 14): 'BatchNormalization trains (opset 13)',
    ('y, m1, m2, m3, m4 = BatchNormalization(im,s2,s2,s2,s2)', 13, 14): 'BatchNormalization trains (opset 13)',
    ('y, m1, m2 = BatchNormalization<training_mode=1>(im,s2,s2,s2,s2)', 14, 13): 'BatchNormalization cannot train like that (opset 13)',
    ('y = BatchNormalization<training_mode=1>(im,s2,s2,s2,s2)', 14, 13): 'BatchNormalization cannot train like that (opset 13)',
    ('y = BatchNormalization<training_mode=0>(im,s2,s2,s2,s2)', 14, 13): 'BatchNormalization {} im s2 s2 s2 s2',
    ('y, m1, m2 = BatchNormalization(im,s2,s2,s2,s2)', 14, 13): 'BatchNormalization cannot train like that (opset 13)',
    ('y, z = Split<num_outputs=2>(x)', 18, 13): 'Split {} x',
    ('y, z = Split<num_outputs=2>(x)', 18, 11): 'Split {} x',
    ('y, z = Split<num_outputs=2, axis=1>(x)', 18, 13): "Split {'axis': 1} x [2, 1]",
    ('y, z = Split<num_outputs=2, axis=1>(x)', 18, 11): "Split {'axis': 1, 'split': [2, 1]} x",
    ('y, z, w = Split<num_outputs=3, axis=1>(x)', 18, 13): "Split {'axis': 1} x",
    ('y, z, w = Split<num_outputs=3, axis=1>(x)', 18, 11): "Split {'axis': 1} x",
    ('y, z = Split<num_outputs=2>(dyn)', 18, 13): 'Split needs a known size to split evenly (opset 13)',
    ('y, z = Split<num_outputs=2>(dyn)', 18, 11): 'Split needs a known size to split evenly (opset 11)',
    ('y, z = Split<num_outputs=2>(u)', 18, 13): 'Split needs a known size to split evenly (opset 13)',
    ('y, z = Split<num_outputs=2>(u)', 18, 11): 'Split needs a known size to split evenly (opset 11)',
    ('y, z = Split<axis=1>(x, four)', 18, 13): "Split {'axis': 1} x four",
    ('y, z = Split<axis=1>(x, four)', 18, 11): "Split-11 takes no tensor(bfloat16) as 'outputs', whose type is not known",
    ('y, z, w, k, q = Split<num_outputs=5, axis=1>(x)', 18, 13): 'Split cannot split 3 in 5 (opset 13)',
    ('y, z, w, k, q = Split<num_outputs=5, axis=1>(x)', 18, 11): 'Split cannot split 3 in 5 (opset 11)',
    ('y, z, w, k = Split<num_outputs=4, axis=1>(x)', 18, 13): "Split {'axis': 1} x [1, 1, 1, 0]",
    ('y, z, w, k = Split<num_outputs=4, axis=1>(x)', 18, 11): "Split {'axis': 1, 'split': [1, 1, 1, 0]} x",
    ('y, z = Split<num_outputs=2, axis=-1>(x)', 18, 13): "Split {'axis': -1} x [2, 1]",
    ('y, z = Split<num_outputs=2, axis=-1>(x)', 18, 11): "Split {'axis': -1, 'split': [2, 1]} x",
    ('y, z = Split(x)', 13, 18): "Split {'num_outputs': 2} x",
    ('y, z = Split(x)', 11, 18): "Split {'num_outputs': 2} x",
    ('y, z = Split(x)', 11, 13): 'Split {} x',
    ('y, z = Split<axis=1, split=[1,2]>(x)', 11, 13): "Split {'axis': 1} x [1, 2]",
    ('y, z = Split<axis=1, split=[1,2]>(x)', 11, 18): "Split {'axis': 1} x [1, 2]",
    ('y, z = Split(x, one)', 13, 18): 'Split {} x one',
    ('y, z = Split(x, one)', 13, 11): "Split-11 takes no tensor(bfloat16) as 'outputs', whose type is not known",
    ('y = Pad(x, pads, , one)', 19, 18): 'Pad {} x pads - one',
    ('y = Pad(x, pads, , one)', 18, 13): 'Pad {} x [0, 1, 0, 2]',
    ('y = Pad(x, pads, , one)', 18, 10): "Pad {'pads': [0, 1, 0, 2]} x",
    ('y = Pad(x, pads, , minus)', 19, 18): 'Pad {} x pads - minus',
    ('y = Pad(x, pads, , minus)', 18, 13): 'Pad {} x [0, 1, 0, 2]',
    ('y = Pad(x, pads, , minus)', 18, 10): "Pad {'pads': [0, 1, 0, 2]} x",
    ('y = Pad(x, four)', 19, 18): 'Pad {} x four',
    ('y = Pad(x, four)', 18, 13): 'Pad {} x four',
    ('y = Pad(x, four)', 18, 10): "Pad {'pads': [1, 2, 3, 4]} x",
    ('y = Pad(x, inds, , one)', 19, 18): 'Pad {} x inds - one',
    ('y = Pad(x, inds, , one)', 18, 13): 'Pad needs constant pads and axes, and a known rank (opset 13)',
    ('y = Pad(x, inds, , one)', 18, 10): 'Pad needs constant pads and axes, and a known rank (opset 10)',
    ('y = Pad(u, pads, , one)', 19, 18): 'Pad {} u pads - one',
    ('y = Pad(u, pads, , one)', 18, 13): 'Pad needs constant pads and axes, and a known rank (opset 13)',
    ('y = Pad(u, pads, , one)', 18, 10): 'Pad needs constant pads and axes, and a known rank (opset 10)',
    ('y = Pad(x, pads, , ind)', 19, 18): 'Pad {} x pads - ind',
    ('y = Pad(x, pads, , ind)', 18, 13): 'Pad needs constant pads and axes, and a known rank (opset 13)',
    ('y = Pad(x, pads, , ind)', 18, 10): 'Pad needs constant pads and axes, and a known rank (opset 10)',
    ('y = Pad(x, four, half)', 19, 18): 'Pad {} x four half',
    ('y = Pad(x, four, half)', 18, 13): 'Pad {} x four half',
    ('y = Pad(x, four, half)', 18, 10): "Pad {'pads': [1, 2, 3, 4], 'value': 0.5} x",
    ('y = Pad<mode="wrap">(x, four)', 19, 18): "Pad has no mode='wrap' before opset 19 (opset 18)",
    ('y = Pad<mode="wrap">(x, four)', 18, 13): "Pad {'mode': 'wrap'} x four",
    ('y = Pad<mode="wrap">(x, four)', 18, 10): "Pad {'mode': 'wrap', 'pads': [1, 2, 3, 4]} x",
    ('y = Pad<mode="edge">(x, four)', 19, 18): "Pad {'mode': 'edge'} x four",
    ('y = Pad<mode="edge">(x, four)', 18, 13): "Pad {'mode': 'edge'} x four",
    ('y = Pad<mode="edge">(x, four)', 18, 10): "Pad {'mode': 'edge', 'pads': [1, 2, 3, 4]} x",
    ('y = Reshape<allowzero=1>(x, target)', 14, 13): 'Reshape {} x target',
    ('y = Reshape<allowzero=1>(x, zeros)', 14, 13): 'Reshape copies a dim for a 0 (opset 13)',
    ('y = Reshape<allowzero=1>(x, inds)', 14, 13): 'Reshape copies a dim for a 0 (opset 13)',
    ('y = Reshape<allowzero=0>(x, zeros)', 14, 13): 'Reshape {} x zeros',
    ('y = Reshape(x, zeros)', 14, 13): 'Reshape {} x zeros',
    ('y = ReduceMax<noop_with_empty_axes=1>(x)', 18, 17): 'ReduceMax reduces all axes if none are named (opset 17)',
    ('y = ReduceMax<noop_with_empty_axes=1>(x)', 18, 10): 'ReduceMax reduces all axes if none are named (opset 10)',
    ('y = ReduceMax<noop_with_empty_axes=1>(x, one)', 18, 17): "ReduceMax {'axes': [1]} x",
    ('y = ReduceMax<noop_with_empty_axes=1>(x, one)', 18, 10): "ReduceMax {'axes': [1]} x",
    ('y = ReduceMax<noop_with_empty_axes=1>(x, no)', 18, 17): 'ReduceMax reduces all axes if none are named (opset 17)',
    ('y = ReduceMax<noop_with_empty_axes=1>(x, no)', 18, 10): 'ReduceMax reduces all axes if none are named (opset 10)',
    ('y = ReduceMax<noop_with_empty_axes=1>(x, ind)', 18, 17): 'ReduceMax reduces all axes if none are named (opset 17)',
    ('y = ReduceMax<noop_with_empty_axes=1>(x, ind)', 18, 10): 'ReduceMax reduces all axes if none are named (opset 10)',
    ('y = ReduceMax<noop_with_empty_axes=0>(x)', 18, 17): 'ReduceMax {} x',
    ('y = ReduceMax<noop_with_empty_axes=0>(x)', 18, 10): 'ReduceMax {} x',
    ('y = ReduceMax(x)', 18, 17): 'ReduceMax {} x',
    ('y = ReduceMax(x)', 18, 10): 'ReduceMax {} x',
    ('y = ReduceMax(x, minus)', 18, 17): "ReduceMax {'axes': [-1]} x",
    ('y = ReduceMax(x, minus)', 18, 10): "ReduceMax {'axes': [1]} x",
    ('y = ReduceSum<noop_with_empty_axes=1>(x, one)', 13, 12): "ReduceSum {'axes': [1]} x",
    ('y = ReduceSum<noop_with_empty_axes=1>(x)', 13, 12): 'ReduceSum reduces all axes if none are named (opset 12)',
    ('y = Constant<value_float=0.5>()', 12, 11): "Constant {'value': 0.5} ",
    ('y = Constant<value_floats=[0.5,1.0]>()', 12, 11): "Constant {'value': [0.5, 1.0]} ",
    ('y = Constant<value_int=3>()', 12, 11): "Constant {'value': 3} ",
    ('y = Constant<value_ints=[3,4]>()', 12, 11): "Constant {'value': [3, 4]} ",
    ('y = Constant<value_string="a">()', 12, 11): "Constant {'value': 'a'} ",
    ('y = Constant<value_strings=["a","b"]>()', 12, 11): "Constant {'value': ['a', 'b']} ",
    ('y = Constant<value=float[1] {2}>()', 12, 11): "Constant {'value': [2.0]} ",
    ('y = Resize(im, up)', 10, 11): "Resize {'nearest_mode': 'floor', 'coordinate_transformation_mode': 'asymmetric'} im [] up",
    ('y = Resize(im, up)', 10, 13): "Resize {'nearest_mode': 'floor', 'coordinate_transformation_mode': 'asymmetric'} im - up",
    ('y = Resize(im, down)', 10, 11): "Resize {'nearest_mode': 'ceil', 'coordinate_transformation_mode': 'asymmetric'} im [] down",
    ('y = Resize(im, down)', 10, 13): "Resize {'nearest_mode': 'ceil', 'coordinate_transformation_mode': 'asymmetric'} im - down",
    ('y = Resize(im, same)', 10, 11): "Resize {'nearest_mode': 'floor', 'coordinate_transformation_mode': 'asymmetric'} im [] same",
    ('y = Resize(im, same)', 10, 13): "Resize {'nearest_mode': 'floor', 'coordinate_transformation_mode': 'asymmetric'} im - same",
    ('y = Resize(im, mixed)', 10, 11): 'Resize rounds up where it shrinks and down where it grows (opset 10)',
    ('y = Resize(im, mixed)', 10, 13): 'Resize rounds up where it shrinks and down where it grows (opset 10)',
    ('y = Resize<mode="linear">(im, mixed)', 10, 11): "Resize {'mode': 'linear', 'coordinate_transformation_mode': 'asymmetric'} im [] mixed",
    ('y = Resize<mode="linear">(im, mixed)', 10, 13): "Resize {'mode': 'linear', 'coordinate_transformation_mode': 'asymmetric'} im - mixed",
    ('y = Resize(im, un)', 10, 11): 'Resize rounds up where it shrinks and down where it grows (opset 10)',
    ('y = Resize(im, un)', 10, 13): 'Resize rounds up where it shrinks and down where it grows (opset 10)',
    ('y = Resize<mode="linear">(im, un)', 10, 11): "Resize {'mode': 'linear', 'coordinate_transformation_mode': 'asymmetric'} im [] un",
    ('y = Resize<mode="linear">(im, un)', 10, 13): "Resize {'mode': 'linear', 'coordinate_transformation_mode': 'asymmetric'} im - un",
    ('y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(im, , up)', 13, 10): 'Resize {} im up',
    ('y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(im, , up)', 13, 11): "Resize {'coordinate_transformation_mode': 'asymmetric', 'nearest_mode': 'floor'} im [] up",
    ('y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(im, , down)', 13, 10): "Resize has no nearest_mode='floor' (opset 10)",
    ('y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(im, , down)', 13, 11): "Resize {'coordinate_transformation_mode': 'asymmetric', 'nearest_mode': 'floor'} im [] down",
    ('y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="ceil">(im, , down)', 13, 10): 'Resize {} im down',
    ('y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="ceil">(im, , down)', 13, 11): "Resize {'coordinate_transformation_mode': 'asymmetric', 'nearest_mode': 'ceil'} im [] down",
    ('y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(im, , same)', 13, 10): 'Resize {} im same',
    ('y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(im, , same)', 13, 11): "Resize {'coordinate_transformation_mode': 'asymmetric', 'nearest_mode': 'floor'} im [] same",
    ('y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="ceil">(im, , same)', 13, 10): "Resize has no nearest_mode='ceil' (opset 10)",
    ('y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="ceil">(im, , same)', 13, 11): "Resize {'coordinate_transformation_mode': 'asymmetric', 'nearest_mode': 'ceil'} im [] same",
    ('y = Resize<coordinate_transformation_mode="asymmetric">(im, , up)', 13, 10): "Resize has no nearest_mode='round_prefer_floor' (opset 10)",
    ('y = Resize<coordinate_transformation_mode="asymmetric">(im, , up)', 13, 11): "Resize {'coordinate_transformation_mode': 'asymmetric'} im [] up",
    ('y = Resize<coordinate_transformation_mode="asymmetric", mode="linear">(im, , mixed)', 13, 10): "Resize {'mode': 'linear'} im mixed",
    ('y = Resize<coordinate_transformation_mode="asymmetric", mode="linear">(im, , mixed)', 13, 11): "Resize {'coordinate_transformation_mode': 'asymmetric', 'mode': 'linear'} im [] mixed",
    ('y = Resize<coordinate_transformation_mode="asymmetric", mode="linear", nearest_mode="ceil">(im, , mixed)', 13, 10): "Resize {'mode': 'linear'} im mixed",
    ('y = Resize<coordinate_transformation_mode="asymmetric", mode="linear", nearest_mode="ceil">(im, , mixed)', 13, 11): "Resize {'coordinate_transformation_mode': 'asymmetric', 'mode': 'linear', 'nearest_mode': 'ceil'} im [] mixed",
    ('y = Resize<coordinate_transformation_mode="asymmetric", mode="linear">(im, , , sizes)', 13, 10): 'Resize takes scales alone (opset 10)',
    ('y = Resize<coordinate_transformation_mode="asymmetric", mode="linear">(im, , , sizes)', 13, 11): "Resize {'coordinate_transformation_mode': 'asymmetric', 'mode': 'linear'} im [] [] sizes",
    ('y = Resize<coordinate_transformation_mode="asymmetric", mode="linear">(im, v, up)', 13, 10): 'Resize takes scales alone (opset 10)',
    ('y = Resize<coordinate_transformation_mode="asymmetric", mode="linear">(im, v, up)', 13, 11): "Resize {'coordinate_transformation_mode': 'asymmetric', 'mode': 'linear'} im v up",
    ('y = Resize<coordinate_transformation_mode="asymmetric", mode="linear">(im, empty, up)', 13, 10): "Resize {'mode': 'linear'} im up",
    ('y = Resize<coordinate_transformation_mode="asymmetric", mode="linear">(im, empty, up)', 13, 11): "Resize {'coordinate_transformation_mode': 'asymmetric', 'mode': 'linear'} im empty up",
    ('y = Resize<mode="linear">(im, , up)', 13, 10): 'Resize is asymmetric (opset 10)',
    ('y = Resize<mode="linear">(im, , up)', 13, 11): "Resize {'mode': 'linear'} im [] up",
    ('y = Resize<coordinate_transformation_mode="asymmetric", mode="linear">(im, , un)', 13, 10): "Resize {'mode': 'linear'} im un",
    ('y = Resize<coordinate_transformation_mode="asymmetric", mode="linear">(im, , un)', 13, 11): "Resize {'coordinate_transformation_mode': 'asymmetric', 'mode': 'linear'} im [] un",
    ('y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(im, , un)', 13, 10): 'Resize rounds up where it shrinks and down where it grows (opset 10)',
    ('y = Resize<coordinate_transformation_mode="asymmetric", nearest_mode="floor">(im, , un)', 13, 11): "Resize {'coordinate_transformation_mode': 'asymmetric', 'nearest_mode': 'floor'} im [] un",
    ('y = Resize<mode="linear">(im, empty, empty, sizes)', 11, 13): "Resize {'mode': 'linear'} im - - sizes",
    ('y = Resize<mode="linear">(im, empty, empty, sizes)', 12, 13): "Resize {'mode': 'linear'} im - - sizes",
    ('y = Resize<mode="linear">(im, v, up)', 11, 13): "Resize {'mode': 'linear'} im v up",
    ('y = Resize<coordinate_transformation_mode="half_pixel_symmetric">(im, , up)', 19, 18): "Resize has no coordinate_transformation_mode='half_pixel_symmetric' before opset 19 (opset 18)",
    ('y = QuantizeLinear(x, sc)', 13, 12): 'QuantizeLinear {} x sc',
    ('y = QuantizeLinear(x, v)', 13, 12): 'QuantizeLinear has one scale (opset 12)',
    ('y = QuantizeLinear(x, un)', 13, 12): 'QuantizeLinear has one scale (opset 12)',
    ('y = QuantizeLinear(x, u)', 13, 12): 'QuantizeLinear has one scale (opset 12)',
    ('y = Max(x)', 8, 7): 'Max {} x',
    ('y = Max(x)', 7, 8): 'Max {} x',
    ('y = Max(x, x)', 8, 7): 'Max {} x x',
    ('y = Max(x, x)', 7, 8): 'Max {} x x',
    ('y = Max(x, v)', 8, 7): 'Max does not broadcast (opset 7)',
    ('y = Max(x, v)', 7, 8): 'Max {} x v',
    ('y = Max(x, dyn)', 8, 7): 'Max does not broadcast (opset 7)',
    ('y = Max(x, dyn)', 7, 8): 'Max {} x dyn',
    ('y = Max(dyn, dyn)', 8, 7): 'Max does not broadcast (opset 7)',
    ('y = Max(dyn, dyn)', 7, 8): 'Max {} dyn dyn',
    ('y = Max(u)', 8, 7): 'Max {} u',
    ('y = Max(u)', 7, 8): 'Max {} u',
    ('y = Max(u, u)', 8, 7): 'Max does not broadcast (opset 7)',
    ('y = Max(u, u)', 7, 8): 'Max {} u u',
    ('y = Mean(x, x, v)', 8, 7): 'Mean does not broadcast (opset 7)',
    ('y = Mean(x, x, v)', 7, 8): 'Mean {} x x v',
    ('y = DFT(im)', 20, 19): "DFT {'axis': -2} im",
    ('y = DFT(im, one)', 20, 19): "DFT {'axis': -2} im one",
    ('y = DFT(im)', 17, 20): 'DFT {} im - 1',
    ('y = DFT(im)', 20, 17): "DFT {'axis': -2} im",
    ('y = DFT<axis=2>(im)', 17, 20): 'DFT {} im - 2',
    ('y = DFT(im, , sc)', 20, 17): 'DFT needs a constant axis before opset 20 (opset 17)',
    ('y = DFT<axis=1>(im, one)', 17, 20): 'DFT {} im one 1',
    ('y = Dropout(x)', 9, 10): 'Dropout {} x',
    ('y = Dropout(x)', 10, 9): 'Dropout {} x',
    ('y = Dropout(x)', 11, 12): 'Dropout {} x',
    ('y = Dropout(x)', 12, 11): 'Dropout {} x',
    ('y, m = Dropout(x)', 9, 10): 'Dropout returns a mask that is not bool (opset 9)',
    ('y, m = Dropout(x)', 10, 9): 'Dropout returns a mask that is not bool (opset 9)',
    ('y = Dropout<ratio=0.25>(x)', 11, 12): 'Dropout {} x 0.25',
    ('y = Dropout(x, half)', 12, 11): "Dropout {'ratio': 0.5} x",
    ('y = Dropout(x, half, yes)', 12, 11): 'Dropout has no operand 2 before opset 12 (opset 11)',
    ('y = Dropout(x, half, not)', 12, 11): "Dropout {'ratio': 0.5} x",
    ('y = Dropout(x, sc)', 12, 11): 'Dropout needs a constant ratio before opset 12 (opset 11)',
    ('y = Dropout(x, , b)', 12, 11): 'Dropout has no operand 2 before opset 12 (opset 11)',
    ('y = Slice(x, one, two)', 10, 9): "Slice {'starts': [1], 'ends': [2]} x",
    ('y = Slice(x, one, two)', 11, 9): "Slice {'starts': [1], 'ends': [2]} x",
    ('y = Slice(x, one, two, one)', 10, 9): "Slice {'starts': [1], 'ends': [2], 'axes': [1]} x",
    ('y = Slice(x, one, two, one)', 11, 9): "Slice {'starts': [1], 'ends': [2], 'axes': [1]} x",
    ('y = Slice(x, one, two, minus)', 10, 9): "Slice {'starts': [1], 'ends': [2], 'axes': [-1]} x",
    ('y = Slice(x, one, two, minus)', 11, 9): "Slice {'starts': [1], 'ends': [2], 'axes': [1]} x",
    ('y = Slice(x, one, two, one, steps)', 10, 9): "Slice {'starts': [1], 'ends': [2], 'axes': [1]} x",
    ('y = Slice(x, one, two, one, steps)', 11, 9): "Slice {'starts': [1], 'ends': [2], 'axes': [1]} x",
    ('y = Slice(x, one, two, one, two)', 10, 9): 'Slice has no operand 4 before opset 10 (opset 9)',
    ('y = Slice(x, one, two, one, two)', 11, 9): 'Slice has no operand 4 before opset 10 (opset 9)',
    ('y = Slice(x, one, two, one, minus)', 10, 9): 'Slice has no operand 4 before opset 10 (opset 9)',
    ('y = Slice(x, one, two, one, minus)', 11, 9): 'Slice has no operand 4 before opset 10 (opset 9)',
    ('y = Slice(x, ind, two)', 10, 9): 'Slice needs a constant starts before opset 10 (opset 9)',
    ('y = Slice(x, ind, two)', 11, 9): 'Slice needs a constant starts before opset 10 (opset 9)',
    ('y = Slice<starts=[0],ends=[1]>(x)', 9, 10): 'Slice {} x [0] [1]',
    ('y = Slice<starts=[0],ends=[1],axes=[1]>(x)', 9, 13): 'Slice {} x [0] [1] [1]',
    ('y, i = TopK<k=2>(x)', 9, 10): 'TopK {} x [2]',
    ('y, i = TopK<k=2>(x)', 9, 11): 'TopK {} x [2]',
    ('y, i = TopK(x, two)', 10, 9): "TopK {'k': 2} x",
    ('y, i = TopK<axis=0>(x, two)', 11, 9): "TopK {'axis': 0, 'k': 2} x",
    ('y, i = TopK(x, pads)', 10, 9): 'TopK needs one number as k before opset 10 (opset 9)',
    ('y = Squeeze(ones, minus)', 13, 12): "Squeeze {'axes': [-1]} ones",
    ('y = Squeeze(ones, minus)', 13, 10): "Squeeze {'axes': [2]} ones",
    ('y = Squeeze(ones, no)', 13, 12): "Squeeze {'axes': []} ones",
    ('y = Squeeze(ones, no)', 13, 10): "Squeeze {'axes': []} ones",
    ('y = Squeeze(ones)', 13, 12): 'Squeeze {} ones',
    ('y = Squeeze(ones)', 13, 10): 'Squeeze {} ones',
    ('y = Unsqueeze(x, minus)', 13, 12): "Unsqueeze {'axes': [-1]} x",
    ('y = Unsqueeze(x, minus)', 13, 10): "Unsqueeze {'axes': [2]} x",
    ('y = Unsqueeze(u, minus)', 13, 12): "Unsqueeze-11 takes no tensor(bfloat16) as 'data', whose type is not known",
    ('y = Unsqueeze(u, minus)', 13, 10): 'Unsqueeze needs a known rank to count axes from the front (opset 10)',
    ('y = Squeeze<axes=[0]>(ones)', 12, 13): 'Squeeze {} ones [0]',
    ('y = Unsqueeze<axes=[0]>(x)', 12, 13): 'Unsqueeze {} x [0]',
    ('y = ArgMax<axis=-1>(x)', 11, 10): "ArgMax {'axis': 1} x",
    ('y = ArgMax<axis=-1>(u)', 11, 10): 'ArgMax needs a known rank to count axis from the front (opset 10)',
    ('y = Gather<axis=-1>(x, one)', 11, 10): "Gather {'axis': 1} x one",
    ('y = Flatten<axis=-1>(x)', 11, 9): "Flatten {'axis': 1} x",
    ('y = Concat<axis=-2>(x, x)', 11, 10): "Concat {'axis': 0} x x",
    ('y = Hardmax(x)', 12, 13): "Hardmax {'axis': -1} x",
    ('y = Hardmax(x)', 13, 12): "Hardmax {'axis': 1} x",
    ('y = GridSample<mode="bilinear">(im, im)', 16, 20): "GridSample {'mode': 'linear'} im im",
    ('y = GridSample<mode="cubic">(im, im)', 20, 16): "GridSample {'mode': 'bicubic'} im im",
    ('y = GridSample(im, im)', 16, 20): "GridSample {'mode': 'linear'} im im",
    ('y = GridSample(im, im)', 20, 16): "GridSample {'mode': 'bilinear'} im im",
    ('y = ScatterElements<reduction="max">(x, ind, x)', 18, 16): "ScatterElements has no reduction='max' before opset 18 (opset 16)",
    ('y = ScatterElements<reduction="min">(x, ind, x)', 18, 16): "ScatterElements has no reduction='min' before opset 18 (opset 16)",
    ('y = ScatterElements<reduction="add">(x, ind, x)', 18, 16): "ScatterElements {'reduction': 'add'} x ind x",
    ('y = ScatterND<reduction="min">(x, ind, x)', 18, 16): "ScatterND has no reduction='min' before opset 18 (opset 16)",
    ('y = ScatterND<reduction="max">(x, ind, x)', 18, 16): "ScatterND has no reduction='max' before opset 18 (opset 16)",
    ('y = RoiAlign(im, x, ind)', 15, 16): "RoiAlign {'coordinate_transformation_mode': 'output_half_pixel'} im x ind",
    ('y = RoiAlign(im, x, ind)', 16, 15): "RoiAlign means coordinate_transformation_mode='output_half_pixel' before opset 16 (opset 15)",
    ('y = RoiAlign<coordinate_transformation_mode="output_half_pixel">(im, x, ind)', 16, 15): 'RoiAlign {} im x ind',
    ('y = Upsample(im, up)', 9, 8): "Upsample {'scales': [1.0, 1.0, 2.0, 2.0]} im",
    ('y = Upsample<scales=[1.0,1.0,2.0,2.0]>(im)', 8, 9): 'Upsample {} im [1.0, 1.0, 2.0, 2.0]',
    ('y = Upsample(im, un)', 9, 8): 'Upsample needs a constant scales before opset 9 (opset 8)',
    ('y = GroupNormalization<num_groups=2>(im, s2, s2)', 21, 20): 'GroupNormalization is deprecated in opset 20',
    ('y = Relu(x)', 13, 14): 'Relu {} x',
    ('y = Relu(x)', 12, 13): 'Relu {} x',
    ('y = Softmax<axis=1>(un)', 9, 13): 'Softmax flattens several dims (opset 9)',
    ('y = Softmax(u)', 9, 13): 'Softmax flattens, and the rank is not known (opset 9)',
    ('y = Softmax<axis=0>(scalar)', 9, 13): 'Softmax flattens, and the rank is not known (opset 9)',
    ('y = Softmax<axis=0>(ones)', 9, 13): "Softmax {'axis': 2} ones",
    ('y = Softmax<axis=2>(ones)', 9, 13): "Softmax {'axis': -1} ones",
    ('y = Softmax<axis=3>(ones)', 9, 13): 'Softmax flattens several dims (opset 9)',
    ('y = Softmax(sc)', 13, 12): 'Softmax would flatten the dims after its axis (opset 12)',
    ('y = Softmax<axis=0>(sc)', 13, 12): 'Softmax would flatten the dims after its axis (opset 12)',
    ('y = Softmax<axis=0>(u)', 13, 12): 'Softmax needs a known rank (opset 12)',
    ('y = LogSoftmax<axis=1>(f)', 9, 13): "LogSoftmax {'axis': -1} f",
    ('y = LogSoftmax<axis=1>(uf)', 9, 13): 'LogSoftmax flattens, and the rank is not known (opset 9)',
    ('y = Clip<min=0.0,max=1.0>(d)', 10, 11): 'Clip {} d 0.0 1.0',
    ('y = Clip<max=1.0>(d)', 10, 11): 'Clip without min has that of a float32 (opset 10)',
    ('y = Clip<min=0.0>(u)', 10, 11): 'Clip without max has that of a float32 (opset 10)',
    ('y, z = Split<num_outputs=2>(x, pads)', 18, 13): 'Split {} x pads',
    ('y, z = Split<num_outputs=2,axis=1>(x)', 18, 13): "Split {'axis': 1} x [2, 1]",
    ('y, z = Split(x, pads)', 18, 13): 'Split {} x pads',
    ('y, z = Split<num_outputs=2>(x)', 18, 12): 'Split {} x',
    ('y, z = Split<num_outputs=2, axis=1>(dyn)', 18, 12): "Split {'axis': 1, 'split': [2, 1]} dyn",
    ('y, z = Split<num_outputs=2>(dyn)', 18, 12): 'Split needs a known size to split evenly (opset 12)',
    ('y = Resize<coordinate_transformation_mode="asymmetric",nearest_mode="floor">(im, v, up)', 11, 10): 'Resize takes scales alone (opset 10)',
    ('y = Max(x, )', 8, 7): 'Max {} x',
    ('y = Max(u, )', 8, 7): 'Max {} u',
    ('y = Upsample(im, cast)', 9, 8): "Upsample {'scales': [1.0, 2.0, 3.0, 4.0]} im",
    ('y = Upsample(im, unk)', 9, 8): 'Upsample needs a constant scales before opset 9 (opset 8)',
    ('y = Upsample(im, rand)', 9, 8): 'Upsample needs a constant scales before opset 9 (opset 8)',
    ('y = Upsample(im, deep)', 9, 8): "Upsample {'scales': [1.0, 1.0, 2.0, 2.0]} im",
    ('y = Upsample(im, text)', 9, 8): 'Upsample needs a constant scales before opset 9 (opset 8)',
    ('y = Softmax<axis=0>(unit)', 9, 13): "Softmax {'axis': 2} unit",
    ('y = Softmax<axis=1>(unit)', 9, 13): "Softmax {'axis': 2} unit",
}  # fmt: skip


def test_the_form_of_each_call_at_another_opset() -> None:
    for (call, before, after), expected in FORMS.items():
        assert form_text(STOCK, call, before, after) == expected, (call, before, after)


def test_forms_of_nodes_that_are_not_made_yet() -> None:
    parameter = AttributeReference("p")
    for op_type, row, attributes, n_outputs, expected in (
        ("Softmax", 0, {"axis": parameter}, 1, "Softmax flattens from an axis that the call decides (opset 9)"),
        ("BatchNormalization", 0, {}, None, {}), ("BatchNormalization", 0, {}, 1, {}),
        ("BatchNormalization", 0, {}, 2, "BatchNormalization trains (opset 9)"),
        ("Dropout", 2, {}, None, {}), ("Dropout", 2, {}, 1, {}),
        ("Dropout", 2, {}, 2, "Dropout returns a mask that is not bool (opset 9)"),
        ("Split", 0, {}, None, {}), ("Split", 0, {}, 3, {"num_outputs": 3}),
        ("Split", 0, {"split": [1]}, 3, {"split": [1]}),
    ):  # fmt: skip
        form = OperatorForm(op_type, 9, [], dict(attributes), n_outputs)
        if isinstance(expected, str):
            with pytest.raises(NoEquivalentForm) as caught:
                CHANGES[op_type][row].read(form)
            assert str(caught.value) == expected
        else:
            CHANGES[op_type][row].read(form)
            assert form.attributes == expected
    for n_outputs, is_fine in ((None, True), (1, True), (2, False)):
        form = OperatorForm("BatchNormalization", 9, [], {}, n_outputs)
        if is_fine:
            CHANGES["BatchNormalization"][0].write(form)
        else:
            with pytest.raises(NoEquivalentForm, match="cannot train like that"):
                CHANGES["BatchNormalization"][0].write(form)
