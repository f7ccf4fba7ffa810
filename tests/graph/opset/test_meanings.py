"""What would not mean the same at another opset blocks the conversion, with its reason."""

from typing import Any, Final, NamedTuple

import pytest

from tests.graph.opset.texts import IMAGE, X, at
from tests.small import content
from tiered import Model, PassContext, get_pass
from tiered.graph.opset.adapter import NoEquivalentForm
from tiered.graph.opset.conversion import form_between
from tiered.support.errors import OpsetError
from tiered.testing import parse

PASS = "convert_opset"


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
    "a sequence of strings that keeps both its names": Blocked(
        16, "(seq(string[2]) x) => (seq(string[2]) y) { y = Identity(x) }", 13, "takes no seq"
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


@pytest.mark.parametrize(
    ("before", "text", "after"),
    [
        # Its last window would start in the padding only if sizes were rounded up.
        (21, "(float[1,1,4] x) => (float[1,1,N] y) "
         "{ y = MaxPool<kernel_shape = [1], strides = [5], pads = [0, 0]>(x) }", 22),
        (21, "(float[1,1,4] x) => (float[1,1,N] y) { y = MaxPool<auto_pad = \"VALID\", "
         "ceil_mode = 0, kernel_shape = [1], strides = [5]>(x) }", 22),
    ],
)  # fmt: skip
def test_what_means_the_same_is_not_blocked(before: int, text: str, after: int) -> None:
    made = Model.from_proto(parse(at(before, text)))
    get_pass(PASS, to=after).apply(made, PassContext.isolated())
    assert made.main.opset() == after


def test_axes_of_slices_are_counted_from_the_front() -> None:
    made = Model.from_proto(
        parse(
            at(
                11,
                "(float[2,3] x) => (float[1,2] y) <int64[2] s = {0, 0}, int64[2] e = {1, 2}, "
                "int64[2] a = {0, -1}> { y = Slice(x, s, e, a) }",
            )
        )
    )
    get_pass(PASS, to=10).apply(made, PassContext.isolated())
    (node,) = made.main.nodes
    axes = node.input(3)
    assert axes is not None
    assert axes.tensor is not None
    assert axes.tensor.numpy().tolist() == [0, 1]


STOCK: Final = """(float[4,6] x, double[4] d, int32[4] n, uint8[4] u, float[1,4,5,5] im, float[1,4,5] line, float[1,4,M] wide, float[1,4,5,5,5] vol, int64[2] ind, int64[1] t, float[2,2,3,4] q, float[2,2,5,4] k, float[3,5] mask, float[3,4] short, float[3,8] long, float[1,3,3,2] grid, float[1,3,3,3,3] grid3, float scale, float[4] scales4, float16 half, float[K] un, float8e4m3fnuz[2] e8, float[3,L] some, float[2,2,L,4] keys, float[2,2,P,4] before) => (float[A] y)
<int64[2] neg={-1,0}, int64[2] pos={0,1}, int64[1] one={1}, int64[1] minus={-1}, float lo={0}, float hi={1}, uint8[1] zero={0}, int64[1] three={3}, float[2] s2={2,3}, int64[2] z2={7,8}, float[4] s4={1,1,2,2}, float[4] half4={1,1,0.5,2}, float[0] none={}, float[4] roi={0.1,0.2,0.8,0.9}, float[2] g2={5,6}, float[4] g4={1,2,3,4}, float[3] g3={1,2,3}, uint8[4] seven={7,7,7,7}, uint8[4] eight={8,7,7,7}, int32 depth={3}, int8 zp={1}, float[2] vals={0,1}> { r = vendor.F(x) rr = Reshape(x, ind)"""
"""r has no type."""

FORMS: Final[dict[tuple[str, int, int], tuple[str, dict[str, Any], list[Any]] | str]] = {
    # The operator, its attributes and its new constants at the second opset; or why it has no form.
    ('Gather(x, neg)', 11, 10): 'Gather counts negative indices from the end since opset 11',
    ('Gather(x, pos)', 11, 10): ('Gather', {}, []),
    ('Gather(x, ind)', 11, 10): 'Gather counts negative indices from the end since opset 11',
    ('OneHot(neg, depth, vals)', 11, 10): 'OneHot counts negative indices from the end since opset 11',
    ('OneHot(pos, depth, vals)', 11, 10): ('OneHot', {}, []),
    ('OneHot(u, depth, vals)', 11, 10): ('OneHot', {}, []),
    ('OneHot(pos, depth, vals)', 10, 11): ('OneHot', {}, []),
    ('Slice(x, pos, pos, neg)', 11, 10): ('Slice', {}, [[1, 0]]),
    ('Slice(x, pos, pos, pos)', 11, 10): ('Slice', {}, []),
    ('Slice(x, pos, pos)', 11, 10): ('Slice', {}, []),
    ('Slice(x, pos, pos, ind)', 11, 10): 'Slice counts negative axes from the end since opset 11',
    ('Slice(r, pos, pos, neg)', 11, 10): 'Slice needs a known rank to count its axes from the front',
    ('ConvTranspose<auto_pad="SAME_UPPER">(im, q)', 11, 10): 'ConvTranspose puts odd padding on the other side since opset 11',
    ('ConvTranspose<auto_pad="SAME_LOWER">(im, q)', 10, 11): 'ConvTranspose puts odd padding on the other side since opset 11',
    ('ConvTranspose<auto_pad="VALID">(im, q)', 10, 11): ('ConvTranspose', {'auto_pad': 'VALID'}, []),
    ('ConvTranspose<output_shape=[9,9]>(im, q)', 10, 11): 'ConvTranspose puts odd padding on the other side since opset 11',
    ('MaxPool<kernel_shape=[2],ceil_mode=1,strides=[2]>(line)', 21, 22): ('MaxPool', {'kernel_shape': (2,), 'ceil_mode': 1, 'strides': (2,)}, []),
    ('MaxPool<kernel_shape=[2],ceil_mode=1,strides=[3],pads=[0,1]>(line)', 21, 22): 'MaxPool has a window that starts in the padding, ignored since opset 22',
    ('MaxPool<kernel_shape=[2],ceil_mode=1,strides=[3],pads=[0,1]>(wide)', 21, 22): 'MaxPool may have a window that starts in the padding',
    ('MaxPool<kernel_shape=[2],ceil_mode=1,strides=[2],pads=[0,0]>(wide)', 21, 22): ('MaxPool', {'kernel_shape': (2,), 'ceil_mode': 1, 'strides': (2,), 'pads': (0, 0)}, []),
    ('MaxPool<kernel_shape=[2],ceil_mode=1,strides=[2],pads=[0,1]>(line)', 21, 22): ('MaxPool', {'kernel_shape': (2,), 'ceil_mode': 1, 'strides': (2,), 'pads': (0, 1)}, []),
    ('MaxPool<kernel_shape=[2],ceil_mode=1,strides=[2],pads=[1,1]>(line)', 21, 22): 'MaxPool has a window that starts in the padding, ignored since opset 22',
    ('MaxPool<kernel_shape=[2],ceil_mode=0,strides=[3],pads=[0,1]>(wide)', 21, 22): ('MaxPool', {'kernel_shape': (2,), 'ceil_mode': 0, 'strides': (3,), 'pads': (0, 1)}, []),
    ('MaxPool<kernel_shape=[2],ceil_mode=1,dilations=[2],strides=[3],pads=[0,0]>(wide)', 21, 22): ('MaxPool', {'kernel_shape': (2,), 'ceil_mode': 1, 'dilations': (2,), 'strides': (3,), 'pads': (0, 0)}, []),
    ('MaxPool<kernel_shape=[2],ceil_mode=1,dilations=[2],strides=[3],pads=[0,1]>(wide)', 21, 22): 'MaxPool may have a window that starts in the padding',
    ('MaxPool<kernel_shape=[2],ceil_mode=1,strides=[9],auto_pad="VALID">(wide)', 21, 22): ('MaxPool', {'kernel_shape': (2,), 'ceil_mode': 1, 'strides': (9,), 'auto_pad': 'VALID'}, []),
    ('MaxPool<kernel_shape=[2],ceil_mode=1,strides=[9]>(r)', 21, 22): 'MaxPool may have a window that starts in the padding',
    ('MaxPool<kernel_shape=[2],dilations=[1]>(line)', 10, 9): ('MaxPool', {'kernel_shape': (2,)}, []),
    ('MaxPool<kernel_shape=[2],ceil_mode=1,pads=[0,1]>(wide)', 21, 22): ('MaxPool', {'kernel_shape': (2,), 'ceil_mode': 1, 'pads': (0, 1)}, []),
    ('MaxPool<kernel_shape=[2],dilations=[2]>(line)', 10, 9): "MaxPool has no attribute 'dilations'",
    ('AveragePool<kernel_shape=[2],dilations=[1]>(line)', 19, 18): ('AveragePool', {'kernel_shape': (2,)}, []),
    ('AveragePool<kernel_shape=[2],ceil_mode=1,count_include_pad=1>(line)', 19, 18): 'AveragePool divides by other counts at the end before opset 19',
    ('AveragePool<kernel_shape=[2],ceil_mode=1,count_include_pad=1>(line)', 18, 19): 'AveragePool divides by other counts at the end before opset 19',
    ('AveragePool<kernel_shape=[2],ceil_mode=1>(line)', 18, 19): ('AveragePool', {'kernel_shape': (2,), 'ceil_mode': 1}, []),
    ('AveragePool<kernel_shape=[2],count_include_pad=1>(line)', 18, 19): ('AveragePool', {'kernel_shape': (2,), 'count_include_pad': 1}, []),
    ('LpPool<kernel_shape=[2],dilations=[1]>(line)', 18, 17): ('LpPool', {'kernel_shape': (2,)}, []),
    ('Cast<to=18>(x)', 23, 24): 'Cast makes NaN of infinities before opset 24',
    ('Cast<to=18,saturate=0>(x)', 23, 24): ('Cast', {'to': 18, 'saturate': 0}, []),
    ('Cast<to=17>(x)', 23, 24): ('Cast', {'to': 17}, []),
    ('Cast<to=20>(x)', 24, 23): 'Cast makes NaN of infinities before opset 24',
    ('CastLike(x, d)', 23, 24): ('CastLike', {}, []),
    ('CastLike(x, e8)', 23, 24): 'CastLike makes NaN of infinities before opset 24',
    ('CastLike<saturate=0>(x, e8)', 23, 24): ('CastLike', {'saturate': 0}, []),
    ('Cast<to=1,round_mode="down">(d)', 24, 23): ('Cast', {'to': 1}, []),
    ('Cast<to=24,round_mode="down">(x)', 24, 23): "Cast has no attribute 'round_mode'",
    ('CastLike<saturate=0>(x, d)', 19, 18): ('CastLike', {}, []),
    ('CastLike<saturate=0>(x, r)', 19, 18): "CastLike has no attribute 'saturate'",
    ('Clip<min=0.0>(r)', 10, 11): 'Clip without max has that of a float32',
    ('Clip<min=0.0>(x)', 10, 11): ('Clip', {}, [0.0]),
    ('Clip(x, hi, lo)', 11, 10): 'Clip has a min above max, which is not defined before opset 11',
    ('Clip(x, lo, hi)', 11, 10): ('Clip', {'min': 0.0, 'max': 1.0}, []),
    ('Clip(x, hi, hi)', 11, 10): ('Clip', {'min': 1.0, 'max': 1.0}, []),
    ('Clip(x, , hi)', 11, 10): ('Clip', {'max': 1.0}, []),
    ('Mod(x, x)', 28, 27): 'Mod rounds the quotient of floats down since opset 28',
    ('Mod<fmod=1>(x, x)', 28, 27): ('Mod', {'fmod': 1}, []),
    ('Mod(n, n)', 28, 27): ('Mod', {}, []),
    ('Mod(u, u)', 28, 27): ('Mod', {}, []),
    ('BitShift<direction="LEFT">(u, seven)', 28, 27): ('BitShift', {'direction': 'LEFT'}, []),
    ('BitShift<direction="LEFT">(u, eight)', 28, 27): 'BitShift defines shifts by all bits since opset 28',
    ('BitShift<direction="LEFT">(u, u)', 28, 27): 'BitShift defines shifts by all bits since opset 28',
    ('QuantizeLinear<output_dtype=3>(x, scale)', 21, 20): ('QuantizeLinear', {}, [0]),
    ('QuantizeLinear<output_dtype=2>(x, scale)', 21, 20): ('QuantizeLinear', {}, []),
    ('QuantizeLinear(x, scale)', 21, 20): ('QuantizeLinear', {}, []),
    ('QuantizeLinear<output_dtype=3>(x, scale, zp)', 21, 20): ('QuantizeLinear', {}, []),
    ('QuantizeLinear<axis=0,output_dtype=3>(x, g4)', 21, 20): ('QuantizeLinear', {'axis': 0}, [[0, 0, 0, 0]]),
    ('QuantizeLinear<output_dtype=3>(x, un)', 21, 20): "QuantizeLinear needs a zero point for its dtype, and the scale's shape is not known",
    ('DequantizeLinear<output_dtype=1>(u, scale)', 23, 22): ('DequantizeLinear', {}, []),
    ('DequantizeLinear<output_dtype=10>(u, scale)', 23, 22): "DequantizeLinear has no attribute 'output_dtype'",
    ('DequantizeLinear(u, scale)', 23, 22): ('DequantizeLinear', {}, []),
    ('DequantizeLinear(u, r)', 23, 22): ('DequantizeLinear', {}, []),
    ('DequantizeLinear<axis=0>(u, scale)', 13, 12): ('DequantizeLinear', {}, []),
    ('DequantizeLinear<axis=0>(u, scales4)', 13, 12): 'DequantizeLinear has one scale',
    ('GridSample(im, grid)', 20, 19): ('GridSample', {'mode': 'bilinear'}, []),
    ('GridSample(vol, grid3)', 20, 19): 'GridSample samples 4-D images alone before opset 20',
    ('Attention(q, k, k, mask)', 24, 23): ('Attention', {}, []),
    ('Attention(q, k, k, short)', 24, 23): 'Attention pads a shorter mask since opset 24',
    ('Attention(q, k, k)', 24, 23): ('Attention', {}, []),
    ('Attention(q, keys, keys, some)', 24, 23): ('Attention', {}, []),
    ('Attention(q, keys, keys, mask)', 24, 23): 'Attention pads a shorter mask since opset 24',
    ('Attention(q, r, r, r)', 24, 23): 'Attention pads a shorter mask since opset 24',
    ('Attention(q, k, k, long, before, before)', 24, 23): 'Attention pads a shorter mask since opset 24',
    ('Attention(q, k, k, some, q, q)', 24, 23): 'Attention pads a shorter mask since opset 24',
    ('Attention(q, k, k, mask, r, r)', 24, 23): 'Attention pads a shorter mask since opset 24',
    ('Attention(q, k, k, long, q, q)', 24, 23): ('Attention', {}, []),
    ('Attention(q, k, k, mask, q, q)', 24, 23): 'Attention pads a shorter mask since opset 24',
    ('Resize<axes=[2,3]>(im, , s2)', 18, 17): ('Resize', {}, [[1.0, 1.0, 2.0, 3.0]]),
    ('Resize<axes=[-1,-2]>(im, , s2)', 18, 17): ('Resize', {}, [[1.0, 1.0, 3.0, 2.0]]),
    ('Resize<axes=[2,3]>(im, , , z2)', 18, 17): ('Resize', {}, [[1, 4, 7, 8]]),
    ('Resize<axes=[2]>(wide, , , one)', 18, 17): 'Resize needs constant sizes and known dims without axes',
    ('Resize<axes=[2,3]>(r, , s2)', 18, 17): 'Resize needs a known rank and a constant roi without axes',
    ('Resize<axes=[2,3],coordinate_transformation_mode="tf_crop_and_resize">(im, roi, s2)', 18, 17): ('Resize', {'coordinate_transformation_mode': 'tf_crop_and_resize'}, [[0.0, 0.0, 0.10000000149011612, 0.20000000298023224, 1.0, 1.0, 0.800000011920929, 0.8999999761581421], [1.0, 1.0, 2.0, 3.0]]),
    ('Resize<axes=[2,3],coordinate_transformation_mode="tf_crop_and_resize">(im, scales4, s2)', 18, 17): 'Resize needs a known rank and a constant roi without axes',
    ('Resize<axes=[2,3]>(im, , ind)', 18, 17): 'Resize needs constant scales without axes',
    ('Resize<axes=[2,3]>(im, , , ind)', 18, 17): 'Resize needs constant sizes and known dims without axes',
    ('Resize<axes=[2,3]>(im, none, s2)', 18, 17): ('Resize', {}, [[1.0, 1.0, 2.0, 3.0]]),
    ('Resize(im, , s4)', 13, 12): ('Resize', {}, [[]]),
    ('Resize(im, none, s4)', 11, 13): ('Resize', {}, []),
    ('Resize<mode="nearest">(im, s4)', 10, 11): ('Resize', {'mode': 'nearest', 'nearest_mode': 'floor', 'coordinate_transformation_mode': 'asymmetric'}, [[]]),
    ('Resize<mode="linear">(im, s4)', 10, 11): ('Resize', {'mode': 'linear', 'coordinate_transformation_mode': 'asymmetric'}, [[]]),
    ('Upsample(im, s4)', 9, 11): ('Resize', {'nearest_mode': 'floor', 'coordinate_transformation_mode': 'asymmetric'}, [[]]),
    ('Upsample<mode="linear">(im, s4)', 9, 11): ('Resize', {'mode': 'linear', 'coordinate_transformation_mode': 'asymmetric'}, [[]]),
    ('Upsample(im, half4)', 9, 10): 'Upsample takes scales from 1 on',
    ('Upsample(im, scales4)', 9, 11): ('Resize', {'nearest_mode': 'floor', 'coordinate_transformation_mode': 'asymmetric'}, [[]]),
    ('Upsample(im, s4)', 9, 13): ('Resize', {'nearest_mode': 'floor', 'coordinate_transformation_mode': 'asymmetric'}, []),
    ('Upsample(im, scales4)', 9, 10): ('Resize', {}, []),
    ('Resize(im, s4)', 10, 9): ('Upsample', {}, []),
    ('Resize(im, half4)', 10, 9): 'Resize is Upsample before opset 10 for constant scales from 1 on',
    ('Resize(im, scales4)', 10, 9): 'Resize is Upsample before opset 10 for constant scales from 1 on',
    ('GroupNormalization<num_groups=2>(im, g2, g2)', 20, 21): ('GroupNormalization', {'num_groups': 2}, [[5.0, 5.0, 6.0, 6.0], [5.0, 5.0, 6.0, 6.0]]),
    ('GroupNormalization<num_groups=2>(im, scales4, g2)', 20, 21): 'GroupNormalization needs a constant scale and known channels',
    ('GroupNormalization<num_groups=2>(r, g2, g2)', 20, 21): 'GroupNormalization needs a constant scale and known channels',
    ('GroupNormalization<num_groups=3>(im, g3, g3)', 20, 21): 'GroupNormalization needs a constant scale and known channels',
    ('Gemm(x, x)', 11, 9): ('Gemm', {}, [-0.0]),
    ('Gemm<beta=2.0>(x, x)', 11, 9): ('Gemm', {}, [-0.0]),
    ('Gemm(r, x)', 11, 9): 'Gemm needs a bias, and the dtype is not known',
    ('GroupNormalization<num_groups=1>(scales4, g2, g2)', 20, 21): 'GroupNormalization needs a constant scale and known channels',
    ('Gemm(x, x, scales4)', 11, 9): ('Gemm', {}, []),
    ('Scatter(x, pos, x)', 9, 11): ('ScatterElements', {}, []),
    ('ScatterElements(x, pos, x)', 11, 10): ('Scatter', {}, []),
    ('ScatterElements(x, neg, x)', 11, 10): 'ScatterElements counts negative indices from the end since opset 11',
    ('ScatterElements(x, ind, x)', 11, 10): 'ScatterElements counts negative indices from the end since opset 11',
    ('Pad<pads=[0,0,1,1]>(r)', 10, 11): 'Pad needs a known dtype for its new operands',
    ('Pad<pads=[0,0,1,1]>(x)', 10, 11): ('Pad', {}, [[0, 0, 1, 1]]),
    ('Gather(x, u)', 11, 10): "Gather-1 takes no tensor(uint8) as 'indices'",
    ('OneHot(u, depth, vals)', 9, 11): ('OneHot', {}, []),
    ('OneHot(ind, depth, vals)', 9, 11): 'OneHot counts negative indices from the end since opset 11 (opset 9)',
    ('BitShift<direction="LEFT">(u, r)', 28, 27): 'BitShift defines shifts by all bits since opset 28 (opset 27)',
    ('BitShift<direction="LEFT">(r, seven)', 28, 27): 'BitShift defines shifts by all bits since opset 28 (opset 27)',
    ('QuantizeLinear<output_dtype=3>(x, scales4)', 21, 20): ('QuantizeLinear', {}, [[0, 0, 0, 0]]),
    ('QuantizeLinear<output_dtype=3>(x, r)', 21, 20): "QuantizeLinear needs a zero point for its dtype, and the scale's shape is not known (opset 20)",
    ('QuantizeLinear<axis=0>(x, scale)', 13, 10): ('QuantizeLinear', {}, []),
    ('QuantizeLinear<axis=0>(x, scales4)', 13, 10): 'QuantizeLinear has one scale (opset 10)',
    ('DequantizeLinear<output_dtype=1>(u, scale)', 23, 21): ('DequantizeLinear', {}, []),
    ('DequantizeLinear<output_dtype=10>(u, scale)', 23, 21): "DequantizeLinear has no attribute 'output_dtype' (opset 21)",
    ('DequantizeLinear<output_dtype=10>(u, half)', 23, 21): ('DequantizeLinear', {}, []),
    ('DequantizeLinear<output_dtype=1>(u, r)', 23, 21): "DequantizeLinear has no attribute 'output_dtype' (opset 21)",
    ('DequantizeLinear<axis=0>(u, scale)', 13, 10): ('DequantizeLinear', {}, []),
    ('DequantizeLinear<axis=0>(u, scales4)', 13, 10): 'DequantizeLinear has one scale (opset 10)',
}  # fmt: skip


def test_each_meaning_is_kept_or_declined() -> None:
    for (call, before, after), expected in FORMS.items():
        header = f'<ir_version: 8, opset_import: ["": {before}, "vendor": 1]> g'
        node = Model.from_proto(
            parse(f"{header} {STOCK} t0 = {call} y = vendor.F(t0) }}")
        ).main.nodes[-2]
        if isinstance(expected, str):
            with pytest.raises(NoEquivalentForm) as caught:
                form_between(node, before, after)
            assert str(caught.value).startswith(expected), call
            continue
        form = form_between(node, before, after)
        assert form is not None
        made = [
            value.default.numpy().tolist()
            for value in form.operands
            if value is not None and value.graph is None and value.default is not None
        ]
        assert (form.op_type, form.attributes, made) == expected, call
