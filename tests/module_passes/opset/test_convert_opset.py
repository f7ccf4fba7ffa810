"""Both directions of each change of form, what blocks each change of meaning, functions, IR."""

from typing import Any, NamedTuple

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.rollback import assert_undone
from tests.small import content
from tiered import Model, Numerics, PassContext, UsageError, get_pass
from tiered.runtime import run
from tiered.support.errors import OpsetError
from tiered.testing import Runtime, assert_rewrites, assert_unchanged, parse

PASS = "convert_opset"


def at(opset: int, text: str, ir: int = 10) -> str:
    return f'<ir_version: {ir}, opset_import: ["" : {opset}]> g {text}'


class Pair(NamedTuple):
    """A model in the forms of two opsets, the older one first."""

    low: int
    older: str
    high: int
    newer: str
    runtime: Runtime = "onnxruntime"


X = "(float[2,3] x) => (float[N,M] y) "
IMAGE = "(float[1,2,4,4] x) => (float[1,2,H,W] y) "

PAIRS = {
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


class Blocked(NamedTuple):
    before: int
    text: str
    after: int
    reason: str


BLOCKED = {
    "a new operator": Blocked(
        20, X + "{ y = Gelu(x) }", 19, "opset 19 has no Gelu, which opset 20 brought"
    ),
    "an operator that went": Blocked(
        9, IMAGE + "<float[4] s = {1, 1, 0.5, 2}> { y = Upsample(x, s) }", 10, "scales from 1 on"
    ),
    "a dtype": Blocked(
        14, "(int8[2] x) => (int8[2] y) { y = Add(x, x) }", 13, r"Add-7|Add-13 takes no tensor\(int8\)"
    ),
    "a dtype that went": Blocked(
        9, "(int32[2] x) => (int32[2] y) { y = Erf(x) }", 13, r"Erf-13 takes no tensor\(int32\)"
    ),
    "strings were not equal": Blocked(
        19, "(string[2] x) => (bool[2] y) { y = Equal(x, x) }", 18, r"takes no tensor\(string\)"
    ),
    "two dtypes were one": Blocked(
        12, "(float[2] x, int64[2] e) => (float[2] y) { y = Pow(x, e) }", 11,
        r"Pow-7 takes no tensor\(int64\)|not tensor\(int64\)",
    ),
    "computed axes": Blocked(
        18, "(float[2,3] x, int64[1] a) => (float[N,M] y) { y = ReduceMax(x, a) }", 17,
        "needs a constant axes before opset 18",
    ),
    "overridable axes": Blocked(
        18, "(float[2,3] x, int64[1] a) => (float[N,M] y) <int64[1] a = {1}> "
        "{ y = ReduceMax(x, a) }", 17, "needs a constant axes before opset 18",
    ),
    "computed limits": Blocked(
        11, "(float[2] x, float m) => (float[2] y) { y = Clip(x, m) }", 10, "needs a constant min"
    ),
    "a limit that is no float32": Blocked(
        11, "(double[2] x) => (double[2] y) <double m = {0.1}, double n = {2.0}> "
        "{ y = Clip(x, m, n) }", 10, "has min as a float32 before opset 11",
    ),
    "no limit of a double": Blocked(
        10, "(double[2] x) => (double[2] y) { y = Clip<min = 0.0>(x) }", 11,
        "without max has that of a float32",
    ),
    "training of a BatchNormalization": Blocked(
        15, "(float[1,2,2] x) => (float[1,2,2] y, float[2] m, float[2] v) <float[2] s = {2, 3}> "
        "{ y, m, v = BatchNormalization<training_mode = 1>(x, s, s, s, s) }", 13, "cannot train",
    ),
    "training of an old BatchNormalization": Blocked(
        9, "(float[1,2,2] x) => (float[1,2,2] y, float[2] m, float[2] v, float[2] p, float[2] q) "
        "<float[2] s = {2, 3}> { y, m, v, p, q = BatchNormalization(x, s, s, s, s) }", 14, "trains",
    ),
    "training of a Dropout": Blocked(
        12, "(float[2] x) => (float[2] y) <float r = {0.5}, bool t = {1}> "
        "{ y = Dropout(x, r, t) }", 11, "has no operand 2 before opset 12",
    ),
    "the mask of a Dropout": Blocked(
        9, "(float[2] x) => (float[2] y, float[2] m) { y, m = Dropout(x) }", 10, "not bool"
    ),
    "a 0 that is no copy": Blocked(
        14, "(float[0,3] x) => (float[N,M] y) <int64[2] s = {3, 0}> "
        "{ y = Reshape<allowzero = 1>(x, s) }", 13, "copies a dim for a 0",
    ),
    "a layout of an RNN": Blocked(
        14, "(float[1,2,3] x, float[1,4,3] w, float[1,4,4] r) => (float[1,2,1,4] y) "
        "{ y = RNN<hidden_size = 4, layout = 1>(x, w, r) }", 13, "has no attribute 'layout'",
    ),
    "a new mode": Blocked(
        19, X + "<int64[4] p = {0, 1, 1, 0}> { y = Pad<mode = \"wrap\">(x, p) }", 18,
        "no mode='wrap' before opset 19",
    ),
    "a new reduction": Blocked(
        18, "(float[3] x, float[2] u) => (float[3] y) <int64[2] i = {2, 0}> "
        "{ y = ScatterElements<reduction = \"max\">(x, i, u) }", 16, "no reduction='max'",
    ),
    "antialias": Blocked(
        18, IMAGE + "<float[4] s = {1, 1, 0.5, 0.5}> "
        "{ y = Resize<antialias = 1, mode = \"linear\">(x, \"\", s) }", 17, "no attribute 'antialias'",
    ),
    "half_pixel_symmetric": Blocked(
        19, IMAGE + "<float[4] s = {1, 1, 2, 2}> { y = Resize<coordinate_transformation_mode = "
        "\"half_pixel_symmetric\">(x, \"\", s) }", 18, "half_pixel_symmetric",
    ),
    "half pixels before opset 11": Blocked(
        11, IMAGE + "<float[0] none = {}, float[4] s = {1, 1, 2, 2}> "
        "{ y = Resize<mode = \"linear\">(x, none, s) }", 10, "is asymmetric|takes scales alone",
    ),
    "a RoiAlign of half pixels": Blocked(
        16, "(float[1,1,4,4] x, float[1,4] r) => (float[1,1,1,1] y) <int64[1] b = {0}> "
        "{ y = RoiAlign(x, r, b) }", 15, "output_half_pixel",
    ),
    "a volume": Blocked(
        20, "(float[1,1,3,3,3] x, float[1,2,2,2,3] g) => (float[1,1,2,2,2] y) "
        "{ y = GridSample(x, g) }", 19, "4-D images alone",
    ),
    "a window in the padding": Blocked(
        21, "(float[1,1,4] x) => (float[1,1,N] y) "
        "{ y = MaxPool<ceil_mode = 1, kernel_shape = [1], strides = [5], pads = [0, 0]>(x) }", 22,
        "a window that starts in the padding",
    ),
    "a window that may be in the padding": Blocked(
        22, "(float[1,1,L] x) => (float[1,1,N] y) "
        "{ y = MaxPool<ceil_mode = 1, kernel_shape = [2], strides = [3]>(x) }", 21,
        "may have a window that starts in the padding",
    ),
    "padding that is counted": Blocked(
        18, "(float[1,1,4] x) => (float[1,1,N] y) { y = AveragePool<ceil_mode = 1, "
        "count_include_pad = 1, kernel_shape = [3], strides = [2]>(x) }", 19, "divides by other counts",
    ),
    "dilations of a pool": Blocked(
        19, "(float[1,1,6] x) => (float[1,1,2] y) "
        "{ y = AveragePool<dilations = [2], kernel_shape = [3]>(x) }", 18, "no attribute 'dilations'",
    ),
    "sides of an odd padding": Blocked(
        10, "(float[1,1,3] x) => (float[1,1,N] y) <float[1,1,2] w = {1, 2}> "
        "{ y = ConvTranspose<auto_pad = \"SAME_UPPER\">(x, w) }", 11, "on the other side",
    ),
    "indices from the end": Blocked(
        11, "(float[3] x, int64[1] i) => (float[1] y) { y = Gather(x, i) }", 10, "negative indices"
    ),
    "one-hot indices from the end": Blocked(
        9, "(int64[3] i) => (float[3,4] y) <int64 d = {4}, float[2] v = {0, 1}> "
        "{ y = OneHot(i, d, v) }", 11, "negative indices",
    ),
    "infinities of float8": Blocked(
        21, "(float[2] x) => (float8e4m3fnuz[2] y) { y = Cast<to = 18>(x) }", 24,
        "makes NaN of infinities",
    ),
    "a deprecated form": Blocked(
        21, "(float[1,4,2] x) => (float[1,4,2] y) <float[4] s = {1, 1, 1, 1}> "
        "{ y = GroupNormalization<num_groups = 2>(x, s, s) }", 20, "is deprecated in opset 20",
    ),
    "computed scales of groups": Blocked(
        20, "(float[1,4,2] x, float[2] s) => (float[1,4,2] y) "
        "{ y = GroupNormalization<num_groups = 2>(x, s, s) }", 21, "needs a constant scale",
    ),
    "scales of axes": Blocked(
        13, "(float[2,3] x) => (uint8[2,3] y) <float[3] s = {1, 2, 4}> "
        "{ y = QuantizeLinear(x, s) }", 12, "has one scale",
    ),
    "broadcasting": Blocked(
        8, "(float[2,3] x, float[3] z) => (float[2,3] y) { y = Max(x, z) }", 7, "does not broadcast"
    ),
    "a Scan with a batch": Blocked(
        8, "(float[1,2] i, float[1,3,2] x) => (float[1,2] o, float[1,3,2] y) { o, y = Scan"
        "<num_scan_inputs = 1, body = b (float[2] s, float[2] e) => (float[2] t, float[2] f) "
        "{ t = Add(s, e)  f = Identity(t) }>(\"\", i, x) }", 9, "has a batch",
    ),
    "a Dropout that may train": Blocked(6, X + "{ y = Dropout(x) }", 7, "trains without is_test"),
    "a BatchNormalization that may train": Blocked(
        6, IMAGE + "<float[2] s = {2, 3}> { y = BatchNormalization(x, s, s, s, s) }", 7,
        "trains without is_test",
    ),
    "an operand of unknown rank": Blocked(
        6, "(float[2,3] x, float[2] b, int64[r] s) => (float[2,3] y) "
        "{ c = Reshape(b, s)  y = Add<axis = 0, broadcast = 1>(x, c) }", 7, "a rank is not known",
    ),
    "an axis from the end": Blocked(
        6, "(float[2,3,4] x, float[3] b) => (float[2,3,4] y) "
        "{ y = Add<axis = -2, broadcast = 1>(x, b) }", 7, "broadcasts along axis -2",
    ),
    "dims before the last ones": Blocked(
        7, "(float[2,3] x, float[2,1] b) => (float[2,3] y) { y = Add(x, b) }", 6,
        "more than the last dims",
    ),
    "dims that may differ": Blocked(
        7, "(float[N] x, float[M] b) => (float[K] y) { y = Add(x, b) }", 6, "more than the last dims"
    ),
    "slopes of several dims": Blocked(
        7, "(float[2,3,4] x, float[3,1] s) => (float[2,3,4] y) { y = PRelu(x, s) }", 6,
        "a slope for each channel before opset 7",
    ),
    "a slope of unknown rank": Blocked(
        6, "(float[2,3] x, float[3] b, int64[r] s) => (float[2,3] y) "
        "{ c = Reshape(b, s)  y = PRelu(x, c) }", 7, "its rank is not known",
    ),
    "Clip of doubles without a limit": Blocked(
        5, "(double[2] x) => (double[2] y) { y = Clip<min = 0.0>(x) }", 6, "without max"
    ),
    "a dtype that has no such name": Blocked(
        5, "(float[2] x) => (float[2] y) { y = Cast<to = \"REAL\">(x) }", 6, "no name of a dtype"
    ),
    "Softmax of several dynamic dims before Reshape has an operand": Blocked(
        1, "(float[N,M,4] x) => (float[N,M,4] y) { y = Softmax(x) }", 13, "flattens"
    ),
    "a Split without an axis": Blocked(
        1, "(float[2] x) => (float[1] y, float[1] z) { y, z = Split(x) }", 2, "no default axis"
    ),
    "computed sizes of a Split": Blocked(
        1, "(float[2] x, float[2] s) => (float[1] y, float[1] z) { y, z = Split<axis = 0>(x, s) }", 2,
        "needs constant sizes",
    ),
    "computed tiles": Blocked(
        1, "(float[2] x, float[1] t) => (float[N] y) { y = Tile(x, t, t) }", 6, "needs constant tiles"
    ),
    "tiles of several axes": Blocked(
        6, X + "<int64[2] r = {1, 2}> { y = Tile(x, r) }", 5, "repeats along one axis"
    ),
    "half a norm": Blocked(
        1, "(float[1,1,4] x) => (float[1,1,1] y) { y = GlobalLpPool<p = 0.5>(x) }", 2, "a whole p"
    ),
    "an Upsample of channels": Blocked(
        7, IMAGE + "{ y = Upsample<scales = [1.0, 2.0, 2.0, 2.0]>(x) }", 6, "height and width"
    ),
    "a bias of unknown rank": Blocked(
        7, "(float[2,3] x, float[3,4] w, float[2,1] b) => (float[2,4] y) { y = Gemm(x, w, b) }", 5,
        "a bias of a known rank",
    ),
    "what BatchNormalization-1 overwrites": Blocked(
        7, IMAGE + "<float[2] s = {2, 3}> { y = BatchNormalization(x, s, s, s, s) }", 5,
        "needs the attribute 'consumed_inputs'",
    ),
    "a sequence that keeps both its names": Blocked(
        16, "(seq(float[2]) x) => (seq(float[2]) y) { y = Identity(x) }", 13, "takes no seq"
    ),
    "an index of a longer mask": Blocked(
        24, "(float[1,1,2,4] q, float[1,1,3,4] k, float[2,M] m) => (float[1,1,2,4] y) "
        "{ y = Attention(q, k, k, m) }", 23, "pads a shorter mask",
    ),
    "floats of a floored Mod": Blocked(
        28, "(float[2] x) => (float[2] y) { y = Mod(x, x) }", 27, "rounds the quotient"
    ),
    "shifts by all bits": Blocked(
        28, "(uint8[2] x) => (uint8[2] y) { y = BitShift<direction = \"LEFT\">(x, x) }", 27,
        "shifts by all bits",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BLOCKED)
def test_what_would_not_mean_the_same_blocks(name: str) -> None:
    case = BLOCKED[name]
    made = Model.from_proto(parse(at(case.before, case.text)))
    before = content(made)
    with pytest.raises(OpsetError, match=case.reason) as caught:
        get_pass(PASS, to=case.after).apply(made, PassContext.isolated())
    assert content(made) == before
    assert len(caught.value.blocked) == 1
    assert caught.value.blocked[0].graph == "main graph"


def test_all_that_blocks_is_listed_and_nothing_is_half_converted() -> None:
    calls = " ".join(f"x{i + 1} = Gelu(x{i})" for i in range(7))
    text = at(20, f"(float[2] x0) => (float[2] y) {{ {calls} r = Relu(x7)  y = Celu(r) }}")
    made = Model.from_proto(parse(text))
    before = content(made)
    with pytest.raises(OpsetError, match=r"9 nodes|8 nodes") as caught:
        made.convert_opset(11)
    assert content(made) == before
    assert [each.operator for each in caught.value.blocked] == ["Gelu"] * 7 + ["Celu"]
    assert "and 3 more" in str(caught.value)


FUNCTION = """<ir_version: 8, opset_import: ["" : 12, "own" : 1]>
g (float[2,3] x) => (float[N,M] y) {{ h = own.f(x)  y = ReduceSum<axes = [0]>(h) }}
<domain: "own", opset_import: ["" : 12]> f {}(a) => (b) {{ b = {}(a) }}"""


def test_local_functions_are_converted() -> None:
    made = assert_undone(PASS, parse(FUNCTION.format("", "ReduceSum<axes = [1]>")), to=13)
    (function,) = made.functions
    assert [entry.version for entry in function.opset_import] == [13]
    assert [node.op_type for node in function.node] == ["Constant", "ReduceSum"]
    onnx.checker.check_model(made, full_check=True)


def test_axes_that_a_function_computes_of_constants_are_known() -> None:
    text = """<ir_version: 8, opset_import: ["" : 18, "own" : 1]>
        g (float[2,3] x) => (float[N,M] y) { y = own.f(x) }
        <domain: "own", opset_import: ["" : 18]> f (a) => (b) {
        c = Constant<value = int64 {1}>()  s = Constant<value_ints = [1]>()  r = Reshape(c, s)
        b = ReduceMax(a, r) }"""
    made = assert_undone(PASS, parse(text), to=17)
    (function,) = made.functions
    assert [node.op_type for node in function.node] == ["ReduceMax"]
    onnx.checker.check_model(made, full_check=True)


@pytest.mark.parametrize(
    ("parameters", "call", "reason"),
    [
        ("<n>", "ReduceSum<axes: ints = @n>", "attribute 'axes' is a function parameter"),
        ("", "Mul", r"takes no tensor\(int16\) as 'A', whose type is not known"),
    ],
)
def test_what_only_the_call_of_a_function_decides_blocks(
    parameters: str, call: str, reason: str
) -> None:
    text = FUNCTION.format(parameters, call)
    if call == "Mul":
        text = text.replace("(a) }", "(a, a) }").replace(": 12", ": 14")
        text = text.replace("ReduceSum<axes = [0]>", "Relu")
    made = Model.from_proto(parse(text))
    with pytest.raises(OpsetError, match=f"(?s)opset 1[24] to 13.*function f: node .*: .*{reason}"):
        made.convert_opset(13)


def test_bounds_in_the_wrong_order_block_below_opset_11() -> None:
    text = "(float[2] x) => (float[2] y) <float l = {1}, float h = {-1}> { y = Clip(x, l, h) }"
    made = Model.from_proto(parse(text, opset=12))
    with pytest.raises(OpsetError, match="Clip has a min above max"):
        made.convert_opset(10)
    made.convert_opset(11)


SOFTMAX = """<ir_version: 8, opset_import: ["" : 12, "l": 1]>
g (float[2,3] x) => (float[2,3] y, float[2,3] z, float[2,3] u) {{ {} }}
<domain: "l", opset_import: ["" : 12]> f <a: int = {}, alpha: float = 0.5>(x) => (y) {{
    e = Elu<alpha: float = @alpha>(x) y = Softmax<axis: int = @a>(e) }}"""


def test_each_call_with_other_attributes_gets_a_function_if_a_form_depends_on_them() -> None:
    calls = "y = l.f<a = 1>(x) z = l.f<a = -1, alpha = 2.0>(x) u = l.f(x)"
    before = parse(SOFTMAX.format(calls, 1))
    made = get_pass(PASS, to=13)(before)
    assert isinstance(made, onnx.ModelProto)
    onnx.checker.check_model(made, full_check=True)
    assert len(made.functions) == 2  # the first and the last call are equal
    x = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)
    expected, found = run(before, {"x": x}), run(made, {"x": x})
    assert all((found[name] == expected[name]).all() for name in expected)


def test_a_call_without_a_form_leaves_the_functions_as_they_were() -> None:
    calls = "y = l.f<a = 0>(x) z = l.f<a = 1>(x) u = Celu(x)"
    model = Model.from_proto(parse(SOFTMAX.format(calls, 1).replace(": 12", ": 13")))
    before = model.to_proto()
    with pytest.raises(OpsetError, match="opset 11 has no Celu"):
        get_pass(PASS, to=11)(model)
    assert model.to_proto() == before


def test_a_function_that_is_named_like_an_operator_is_left_alone() -> None:
    made = assert_undone(
        PASS,
        parse(
            """<ir_version: 8, opset_import: ["" : 9]>
            g (float[2] x) => (float[2] y) { y = Clip <min = 0.0> (x) }
            <domain: "", opset_import: ["" : 9]> Clip <min>(a) => (b) { b = Relu(a) }"""
        ),
        to=13,
    )
    assert [len(node.attribute) for node in made.graph.node] == [1]


def test_the_first_forms_of_broadcasting_compute_what_they_meant() -> None:
    text = """(float[2,3,2,2] x, float[3] b) => (float[2,3,2,2] y, float[2,3,2,2] z) {
        y = Add<axis = 1, broadcast = 1>(x, b)  z = PRelu(x, b) }"""
    made = assert_undone(PASS, at(6, text), to=13)
    numbers = np.random.default_rng(0)
    x, b = (numbers.standard_normal(shape).astype(np.float32) for shape in ((2, 3, 2, 2), 3))
    found, each = run(made, {"x": x, "b": b}), b.reshape(3, 1, 1)
    np.testing.assert_array_equal(found["y"], x + each)
    np.testing.assert_array_equal(found["z"], np.where(x < 0, x * each, x))


def test_a_constant_that_no_node_can_hold_raises_the_ir_version() -> None:
    made = assert_undone(PASS, at(4, X + "{ y = Reshape<shape = [0, -1]>(x) }", ir=3), to=7)
    assert (made.ir_version, len(made.graph.initializer)) == (4, 1)
    onnx.checker.check_model(made, full_check=True)


def test_overridable_initializers_stay_inputs() -> None:
    text = at(
        12, "(float[1,3] x, int64[2] s) => (float[N,M] y) <int64[2] s = {3, 1}> "
        "{ y = Reshape(x, s) }",
    )  # fmt: skip
    made = assert_undone(PASS, text, to=21)
    assert [info.name for info in made.graph.input] == ["x", "s"]


def test_equal_new_constants_are_one_and_unread_ones_go() -> None:
    text = at(12, "(float[2,3] x) => (float y) { a = ReduceSum<axes = [1], keepdims = 0>(x)  "
              "b = ReduceSum<axes = [1], keepdims = 0>(x)  c = Mul(a, b)  y = ReduceMean(c) }")  # fmt: skip
    raised = assert_undone(PASS, text, to=13)
    assert len(raised.graph.initializer) == 1
    lowered = assert_undone(PASS, raised, to=12)
    assert not lowered.graph.initializer


def test_a_constant_that_another_node_reads_stays() -> None:
    text = at(13, "(float[2,3] x) => (float[2,1] y, int64[1] z) <int64[1] a = {1}> "
              "{ y = ReduceSum(x, a)  z = Neg(a) }")  # fmt: skip
    assert len(assert_undone(PASS, text, to=12).graph.initializer) == 1


def test_before_ir_4_constants_are_nodes() -> None:
    text = at(9, "(float[2] x) => (float[2] y) { y = Clip<min = 0.0>(x) }", ir=3)
    made = assert_undone(PASS, text, to=11)
    assert {node.op_type for node in made.graph.node} <= {"Clip", "Constant"}


@pytest.mark.parametrize(
    ("ir", "to", "option", "expected"),
    [(8, 21, 0, 10), (8, 15, 0, 8), (10, 13, 0, 10), (10, 13, 7, 7), (8, 21, 9, 9), (8, 17, 10, 10)],
)
def test_the_ir_version_is_raised_only_as_needed_or_as_asked(
    ir: int, to: int, option: int, expected: int
) -> None:
    made = assert_undone(PASS, at(17, "(float[2] x) => (float[2] y) { y = Relu(x) }", ir), to=to, ir=option)
    assert (made.ir_version, made.opset_import[0].version) == (expected, to)


def test_the_ir_version_alone_can_be_set() -> None:
    made = assert_undone(PASS, at(17, "(float[2] x) => (float[2] y) { y = Relu(x) }", 8), ir=9)
    assert (made.ir_version, made.opset_import[0].version) == (9, 17)


@pytest.mark.parametrize(
    ("text", "ir", "reason"),
    [
        ("(float[2] x) => (float[2] y) <float[2] w = {1, 2}> { y = Add(x, w) }", 3, "needs 4 or more"),
        ("(float[2] x) => (float[2] y) { y = Relu(x) }", 99, "no IR version 99"),
        ("(int4[2] x) => (int4[2] y) { y = Identity(x) }", 9, "has no int4"),
    ],
)
def test_an_ir_version_that_the_model_cannot_have_is_an_error(text: str, ir: int, reason: str) -> None:
    made = Model.from_proto(parse(at(21, text)))
    before = content(made)
    with pytest.raises(UsageError, match=reason):
        made.convert_opset(23, ir=ir)
    assert content(made) == before


@pytest.mark.parametrize("version", [0, -1, 99])
def test_an_opset_that_does_not_exist_is_an_error(version: int) -> None:
    made = Model.from_proto(parse(at(17, "(float[2] x) => (float[2] y) { y = Relu(x) }")))
    with pytest.raises(UsageError, match="there is no opset"):
        made.convert_opset(version)


def test_function_bodies_are_used_where_rounding_is_allowed() -> None:
    text = at(20, X + "{ y = Gelu(x) }")
    made = Model.from_proto(parse(text))
    with pytest.raises(OpsetError, match=r"has no Gelu, .*; --expand \(numerics=reassociating\)"):
        get_pass(PASS, to=13).apply(made, PassContext.isolated())
    made_of = get_pass(PASS, to=13, numerics="reassociating")
    assert made_of.info.numerics is Numerics.REASSOCIATING
    made_of.apply(made, PassContext.isolated())
    made.check_view()
    result = made.to_proto()
    assert "Erf" in [node.op_type for node in result.graph.node]
    assert (made.opset(), len(made.functions)) == (13, 0)
    onnx.checker.check_model(result, full_check=True)


@pytest.mark.parametrize(
    ("opset", "text", "to"),
    [
        (20, "(float[2] x) => (float[2] y) { y = Gelu(x) }", 3),
        (18, X + "<int64[4] p = {0, 1, 1, 0}> { y = Pad<mode = \"wrap\">(x, p) }", 17),
    ],
)  # fmt: skip
def test_expansion_is_not_named_where_it_does_not_help(opset: int, text: str, to: int) -> None:
    made = Model.from_proto(parse(at(opset + 1, text)))
    with pytest.raises(OpsetError) as caught:
        made.convert_opset(to)
    assert "--expand" not in str(caught.value)
    assert [each.expands for each in caught.value.blocked] == [False]


NORMALIZED = "(float[N,T,8] x) => (float[N,T,8] y) <float[8] s = {1, 2, 3, 4, 5, 6, 7, 8}> "
ROTATED = "(float[N,2,T,8] x, float[N,T,4] c, float[N,T,4] s) => (float[N,2,T,8] y) "


@pytest.mark.parametrize("to", [18, 17, 13, 11])
@pytest.mark.parametrize(
    "text",
    [NORMALIZED + "{ y = RMSNormalization(x, s) }", ROTATED + "{ y = RotaryEmbedding(x, c, s) }"],
)
def test_axes_and_sizes_in_function_bodies_are_known(text: str, to: int) -> None:
    made = Model.from_proto(parse(at(23, text)))
    before = made.to_proto()
    get_pass(PASS, to=to, numerics="reassociating").apply(made, PassContext.isolated())
    made.check_view()
    assert made.opset() == to
    onnx.checker.check_model(made.to_proto(), full_check=True)
    numbers = np.random.default_rng(0)
    sizes: dict[Any, int] = {"N": 2, "T": 3}
    feeds = {}
    for value in made.main.inputs:
        shape = [dim if isinstance(dim, int) else sizes[dim] for dim in value.shape or ()]
        feeds[value.name] = numbers.standard_normal(shape).astype(np.float32)
    expected, found = (run(proto, feeds)["y"] for proto in (before, made.to_proto()))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_training_graphs_block_where_they_would_change() -> None:
    proto = parse(at(12, "(float[2] x) => (float[2] y) { y = Relu(x) }"))
    clip = helper.make_node("Softmax", ["y"], ["z"], name="step")
    value = helper.make_tensor_value_info("z", TensorProto.FLOAT, [2])
    proto.training_info.add().algorithm.CopyFrom(helper.make_graph([clip], "a", [], [value]))
    made = Model.from_proto(proto)
    with pytest.raises(OpsetError, match="training_info is not converted"):
        made.convert_opset(13)
    made.convert_opset(11)


def test_an_unknown_dtype_blocks_only_where_it_matters() -> None:
    text = """<ir_version: 10, opset_import: ["" : 14, "other" : 1]>
        g (float[2] x) => (y) { h = other.Op(x)  y = Add(h, h) }"""
    made = Model.from_proto(parse(text))
    with pytest.raises(OpsetError, match=r"takes no tensor\(.*\) as 'A', whose type is not known"):
        made.convert_opset(13)
    made.convert_opset(21)


def test_softmax_of_an_unknown_type_is_flattened() -> None:
    text = """<ir_version: 8, opset_import: ["" : 12, "other" : 1]>
        g (float[2] x) => (float[c,d,e] y) { h = other.Op(x)  y = Hardmax<axis = -2>(h) }"""
    made = assert_undone(PASS, parse(text), to=13)
    assert [node.op_type for node in made.graph.node] == ["Op", "Shape", "Flatten", "Hardmax", "Reshape"]
    assert made.graph.node[3].attribute[0].i == -1


def test_without_an_opset_nothing_is_converted() -> None:
    assert_unchanged(PASS, X + "{ y = Relu(x) }", because="no opset is given")


def test_a_model_of_the_opset_is_left_alone() -> None:
    assert_unchanged(PASS, X + "{ y = Relu(x) }", because="the model has this opset", to=21)


def test_a_newer_model_is_converted_to_the_highest_opset_of_a_target() -> None:
    assert_rewrites(
        PASS,
        at(21, X + "{ y = Softmax<axis = 1>(x) }"),
        at(13, X + "{ y = Softmax<axis = 1>(x) }"),
        most=13,
    )


def test_a_model_of_an_older_opset_stays() -> None:
    assert_unchanged(
        PASS,
        at(11, X + "{ y = Relu(x) }"),
        because="the opset is 11, not above 13",
        most=13,
    )


def test_a_model_that_has_no_form_at_the_highest_opset_stays() -> None:
    image = "(float[1,2,4,4] x, float[1,3,3,2] g) => (float[1,2,3,3] y) { y = GridSample(x, g) }"
    assert_unchanged(PASS, at(20, image), because="GridSample", most=13)


@pytest.mark.parametrize(("to", "noted"), [(21, False), (23, True)])
def test_an_operator_that_onnxruntime_lacks_at_the_opset_is_noted(to: int, noted: bool) -> None:
    head = "(float[1,1,4,4] x, float[1,4] r) => (float[1,1,1,1] y)"
    made = Model.from_proto(parse(at(16, f"{head} <int64[1] b = {{0}}> {{ y = RoiAlign(x, r, b) }}")))
    get_pass(PASS, to=to).apply(made, PassContext.isolated())
    assert any("no kernel for RoiAlign now (1 node, as 'y')" in note for note in made.notes) is noted
