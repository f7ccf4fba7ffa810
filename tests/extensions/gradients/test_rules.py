"""Each rule against central differences, on onnx.reference in float64 or on onnxruntime."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.extensions.gradients.differences import largest_error
from tiered import get_pass
from tiered.testing import parse

LIMIT = 3e-5
"""The largest relative error of central differences in float64."""

FLOAT_LIMIT = 3e-2
"""The same in float32."""


def check(text: str, **options: Any) -> None:
    limit = FLOAT_LIMIT if options.get("in_float") else LIMIT
    assert largest_error(text, **options) < limit


def unary(call: str, result: str = "3,4") -> str:
    return f"(double[3,4] x) => (double[{result}] y) {{ y = {call} }}"


@pytest.mark.parametrize(
    "operator",
    ["Abs", "Acos", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Dropout", "Elu",
     "Exp", "Floor", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Mish", "Neg",
     "Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus",
     "Softsign", "Tan", "Tanh", "ThresholdedRelu"],
)  # fmt: skip
def test_functions_of_one_element(operator: str) -> None:
    check(unary(f"{operator}(x)"), low=-0.9, high=0.9)


@pytest.mark.parametrize(("wide", "casts"), [(11, 0), (10, 2)], ids=["double", "float16"])
def test_a_cast_back_is_none_where_all_numbers_were_kept(wide: int, casts: int) -> None:
    model = parse(f"(float[3] x) => (float[3] y) {{ d = Cast<to={wide}>(x) y = Cast<to=1>(d) }}")
    made = get_pass("gradient", seed="input")(model)
    assert isinstance(made, onnx.ModelProto)
    found = [node for node in made.graph.node if node.op_type == "Cast"]
    assert len(found) == 2 + casts


@pytest.mark.parametrize("operator", ["Acosh", "Log", "Sqrt"])
def test_functions_of_large_numbers(operator: str) -> None:
    check(unary(f"{operator}(x)"), low=1.2, high=3)


@pytest.mark.parametrize("call", ["Celu(x)", "Celu <alpha = 0.5> (x)", "Erf(x)", "Gelu(x)"])
def test_functions_that_the_reference_computes_in_float(call: str) -> None:
    check(unary(call), in_float=True)


def test_the_tanh_form_of_gelu() -> None:
    check(unary('Gelu <approximate = "tanh"> (x)'))


BROADCAST = ["Add", "Div", "Max", "Min", "Mul", "Pow", "Sub", "Sum"]


@pytest.mark.parametrize("operator", BROADCAST)
def test_operands_that_are_repeated(operator: str) -> None:
    check(
        f"(double[3,4] a, double[2,1,4] b) => (double[2,3,4] y) {{ y = {operator}(a, b) }}",
        low=0.3, high=2,
    )  # fmt: skip


@pytest.mark.parametrize("operator", BROADCAST)
def test_operands_that_may_be_repeated_as_dims_are_named(operator: str) -> None:
    check(
        f"(double[N,4] a, double[B,M,K] b) => (double[B,P,Q] y) {{ y = {operator}(a, b) }}",
        low=0.3, high=2, feeds={"b": np.random.default_rng(0).uniform(0.3, 2, (2, 1, 4))},
    )  # fmt: skip


def test_mean_of_operands() -> None:
    text = "(double[3,4] a, double[3,1] b) => (double[3,4] y) { y = Mean(a, b) }"
    check(text)


@pytest.mark.parametrize(
    "text",
    [
        "(double[3,4] a) => (double[3,4] y) { y = Mul(a, a) }",
        "(double[3,4] a) => (double[3,4] y) <int64 b = {3}> { y = Pow(a, b) }",
        "(double[3,4] a, double[4] b) => (double[3,4] y) { y = Mod <fmod = 1> (a, b) }",
        "(bool[3,1] c, double[3,4] a, double[4] b) => (double[3,4] y) { y = Where(c, a, b) }",
        "(double[3,4] x, double[4] s) => (double[3,4] y) { y = PRelu(x, s) }",
    ],
)
def test_more_arithmetic(text: str) -> None:
    check(text)


def test_clip_with_limits_that_are_operands() -> None:
    check(
        "(double[3,4] x, double low, double high) => (double[3,4] y) { y = Clip(x, low, high) }",
        feeds={"low": np.array(-0.5), "high": np.array(0.5)},
    )


REDUCTIONS = ["ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
              "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"]  # fmt: skip


@pytest.mark.parametrize("operator", REDUCTIONS)
@pytest.mark.parametrize(("keepdims", "result"), [(0, "3,2"), (1, "3,1,2")])
def test_reductions(operator: str, keepdims: int, result: str) -> None:
    check(
        f"(double[3,4,2] x) => (double[{result}] y) <int64[1] axes = {{1}}> "
        f"{{ y = {operator} <keepdims = {keepdims}> (x, axes) }}",
        low=0.2, high=2,
    )  # fmt: skip


@pytest.mark.parametrize("operator", REDUCTIONS)
def test_reductions_of_all_axes(operator: str) -> None:
    check(f"(double[N,4] x) => (double y) {{ y = {operator} <keepdims = 0> (x) }}", low=0.2, high=2)


@pytest.mark.parametrize("operator", ["ReduceMean", "ReduceSum", "ReduceMax"])
def test_reductions_of_axes_known_at_run_time(operator: str) -> None:
    check(
        f"(double[3,4,2] x, int64[1] axes) => (double[A,B] y) "
        f"{{ y = {operator} <keepdims = 0> (x, axes) }}",
        feeds={"axes": np.array([1])},
    )


def test_products_with_zeros() -> None:
    check(
        "(double[3,4] x) => (double[3] y) <int64[1] a = {1}> "
        "{ y = ReduceProd <keepdims = 0> (x, a) }",
        feeds={"x": np.array([[0, 2, 3, 4], [0, 0, 1, 2], [1, 2, 3, 4]])},
    )


@pytest.mark.parametrize(
    "text",
    [
        "(double[3,4,2] x) => (double[3,4,2] y) { y = Softmax <axis = 1> (x) }",
        "(double[3,4,2] x) => (double[3,4,2] y) { y = LogSoftmax(x) }",
        "(double[3,4] x) => (double[3,4] y) <int64 a = {1}> { y = CumSum <exclusive = 1> (x, a) }",
        "(double[3,4] x) => (double[3,4] y) <int64 a = {0}> { y = CumSum <reverse = 1> (x, a) }",
        "(double[3,4] x) => (double[3,2] y) <int64[1] k = {2}> { y, i = TopK(x, k) }",
    ],
)
def test_along_an_axis(text: str) -> None:
    check(text)


def test_softmax_over_several_axes_in_opset_11() -> None:
    text = "(double[3,4,2] x) => (double[3,4,2] y) { y = Softmax <axis = 1> (x) }"
    check(text, opset=11, in_float=True)


@pytest.mark.parametrize(
    ("a", "b", "y"),
    [("3,4", "4,5", "3,5"), ("2,3,4", "4,5", "2,3,5"), ("4", "4,5", "5"), ("3,4", "4", "3"),
     ("2,3,4", "2,4,5", "2,3,5"), ("1,3,4", "2,4,5", "2,3,5"), ("2,3,4", "4", "2,3"),
     ("4", "2,4,5", "2,5"), ("3,4", "2,4,5", "2,3,5"), ("B,S,4", "4,5", "B,S,5")],
)  # fmt: skip
def test_matrix_products(a: str, b: str, y: str) -> None:
    check(f"(double[{a}] a, double[{b}] b) => (double[{y}] y) {{ y = MatMul(a, b) }}")


def test_the_product_of_vectors() -> None:
    check("(double[4] a, double[4] b) => (double y) { y = MatMul(a, b) }")


@pytest.mark.parametrize("a", ["3,4", "4,3"])
@pytest.mark.parametrize("b", ["4,5", "5,4"])
def test_gemm(a: str, b: str) -> None:
    settings = f"transA = {int(a == '4,3')}, transB = {int(b == '5,4')}, alpha = 0.5, beta = 2.0"
    check(
        f"(double[{a}] a, double[{b}] b, double[5] c) => (double[3,5] y) "
        f"{{ y = Gemm <{settings}> (a, b, c) }}"
    )


@pytest.mark.parametrize(
    ("equation", "a", "b", "y"),
    [("ij,jk->ik", "3,4", "4,5", "3,5"), ("bij,bjk->bik", "2,3,4", "2,4,5", "2,3,5"),
     ("ij,j", "3,4", "4", "3"), ("ij,k->i", "3,4", "5", "3"), ("i,j->ij", "3", "4", "3,4"),
     ("...ij,...jk->...ik", "2,3,4", "2,4,5", "2,3,5")],
)  # fmt: skip
def test_einsum(equation: str, a: str, b: str, y: str) -> None:
    check(
        f"(double[{a}] a, double[{b}] b) => (double[{y}] y) "
        f'{{ y = Einsum <equation = "{equation}"> (a, b) }}'
    )


CONVOLUTIONS = {
    "plain": ("2,3,5,6", "4,3,3,3", "kernel_shape = [3,3]"),
    "strides": ("2,3,6,7", "4,3,3,2", "strides = [2,3], pads = [1,0,0,1]"),
    "dilations": ("1,2,8,8", "3,2,2,3", "dilations = [2,2], pads = [1,2,1,0], strides = [2,1]"),
    "depthwise": ("2,3,5,5", "3,1,3,3", "group = 3, pads = [1,1,1,1]"),
    "one axis": ("2,3,8", "4,3,3", "strides = [2]"),
    "three axes": ("1,2,4,4,4", "2,2,2,2,2", "strides = [2,1,1]"),
    "same": ("1,2,5,6", "2,2,3,3", 'auto_pad = "SAME_UPPER", strides = [2,2]'),
    "named batch": ("N,2,5,6", "2,2,3,3", "strides = [2,2]"),
    "named image": ("N,2,H,W", "2,2,3,3", "strides = [2,2], pads = [1,1,1,1]"),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str) -> None:
    x, w, settings = CONVOLUTIONS[name]
    y = ",".join("NCPQR"[: x.count(",") + 1])
    feeds = {"x": np.random.default_rng(0).uniform(-1, 1, (2, 2, 6, 5))} if "H" in x else {}
    check(
        f"(double[{x}] x, double[{w}] w, double[{w[0]}] b) => (double[{y}] y) "
        f"{{ y = Conv <{settings}> (x, w, b) }}",
        feeds=feeds,
    )


def test_a_grouped_convolution() -> None:
    check(
        "(double[2,4,5,5] x, double[6,2,3,3] w) => (double[N,C,P,Q] y) "
        "{ y = Conv <group = 2, pads = [1,1,1,1], strides = [2,2]> (x, w) }",
        in_float=True,
    )


@pytest.mark.parametrize(
    ("x", "w", "settings"),
    [("2,3,4,4", "3,2,3,3", "strides = [2,2], pads = [1,1,1,1]"),
     ("1,4,3,3", "4,2,3,3", "strides = [2,2], output_padding = [1,1], group = 2")],
)  # fmt: skip
def test_transposed_convolutions(x: str, w: str, settings: str) -> None:
    check(
        f"(double[{x}] x, double[{w}] w) => (double[N,C,P,Q] y) "
        f"{{ y = ConvTranspose <{settings}> (x, w) }}",
        in_float=True,
    )


@pytest.mark.parametrize(
    "call",
    ["MaxPool <kernel_shape = [2,3], strides = [2,1], pads = [1,1,0,1]>",
     "AveragePool <kernel_shape = [2,3], strides = [2,1]>",
     "AveragePool <kernel_shape = [3,3], strides = [2,2], pads = [1,1,1,1]>",
     "AveragePool <kernel_shape=[3,3], strides=[2,2], pads=[1,1,0,1], count_include_pad = 1>",
     "AveragePool <kernel_shape = [3,3], strides = [2,2], ceil_mode = 1>",
     "GlobalAveragePool", "GlobalMaxPool"],
)  # fmt: skip
def test_pools(call: str) -> None:
    check(f"(double[1,2,6,6] x) => (double[N,C,P,Q] y) {{ y = {call}(x) }}")


def test_a_global_pool_of_powers() -> None:
    check("(double[2,3,4,5] x) => (double[2,3,1,1] y) { y = GlobalLpPool(x) }", in_float=True)


@pytest.mark.parametrize(
    "text",
    [
        "(float[2,4,3,3] x) => (float[2,4,3,3] y) { y = LRN <size = 3, alpha = 0.5> (x) }",
        "(float[2,4,3] x, float[4] s, float[4] b) => (float[2,4,3] y) "
        "{ y = GroupNormalization <num_groups = 2> (x, s, b) }",
        "(float[2,4,3,3] x) => (float[2,4,3,3] y) "
        "{ y = MeanVarianceNormalization <axes = [0,2,3]> (x) }",
    ],
)
def test_normalizations_in_float(text: str) -> None:
    check(text, in_float=True)


@pytest.mark.parametrize("opset", [23])
@pytest.mark.parametrize(
    "text",
    [
        "(double[2,4,4] x, double[4] s) => (double[2,4,4] y) { y = RMSNormalization(x, s) }",
        "(double[1,2,3,4] q, double[1,2,3,4] k, double[1,2,3,4] v) => (double[1,2,3,4] y) "
        "{ y = Attention(q, k, v) }",
    ],
)
def test_function_bodies_of_newer_opsets(text: str, opset: int) -> None:
    check(text, opset=opset)


@pytest.mark.parametrize("loss", ["NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"])
@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_losses(loss: str, reduction: str) -> None:
    check(
        f"(double[3,4] x, int64[3] t) => (double y) "
        f'{{ y = {loss} <reduction = "{reduction}"> (x, t) }}'
    )


MOVEMENTS = [
    "(double[3,4] x) => (double[2,6] y) <int64[2] s = {2,6}> { y = Reshape(x, s) }",
    "(double[N,4,2] x) => (double[N,8] y) { y = Flatten(x) }",
    "(double[3,1,4] x) => (double[3,4] y) { y = Squeeze(x) }",
    "(double[3,4] x) => (double[3,1,4] y) <int64[1] s = {1}> { y = Unsqueeze(x, s) }",
    "(double[3,4,2] x) => (double[2,3,4] y) { y = Transpose <perm = [2,0,1]> (x) }",
    "(double[3,1] x) => (double[2,3,4] y) <int64[3] s = {2,3,4}> { y = Expand(x, s) }",
    "(double[3,2] x) => (double[6,6] y) <int64[2] s = {2,3}> { y = Tile(x, s) }",
    "(double[N,2] x) => (double[M,6] y) <int64[2] s = {2,3}> { y = Tile(x, s) }",
    "(double[3,2] a, double[3,4] b) => (double[3,6] y) { y = Concat <axis = 1> (a, b) }",
    "(double[3,K] a, double[3,L] b) => (double[3,M] y) { y = Concat <axis = -1> (a, b) }",
    "(double[3,6] x) => (double[3,2] a, double[3,2] b) "
    "{ a, c, b = Split <axis = 1, num_outputs = 3> (x) }",
    "(double[5,6] x) => (double[2,3] y) <int64[2] s = {1,-4}, int64[2] e = {3,-1}> "
    "{ y = Slice(x, s, e) }",
    "(double[5,6] x) => (double[2,6] y) <int64[1] s = {-1}, int64[1] e = {0}, int64[1] a = {0}, "
    "int64[1] t = {-2}> { y = Slice(x, s, e, a, t) }",
    "(double[N,6] x) => (double[M,6] y) <int64[1] s = {-2}, int64[1] e = {9}, int64[1] a = {0}> "
    "{ y = Slice(x, s, e, a) }",
    "(double[3,3] x) => (double[3,3] y) { y = Trilu <upper = 0> (x) }",
    "(double[1,8,2,3] x) => (double[1,2,4,6] y) { y = DepthToSpace <blocksize = 2> (x) }",
    "(double[N,8,2,3] x) => (double[N,2,4,6] y) "
    '{ y = DepthToSpace <blocksize = 2, mode = "CRD"> (x) }',
    "(double[1,2,4,6] x) => (double[1,8,2,3] y) { y = SpaceToDepth <blocksize = 2> (x) }",
    "(double[4,3] x) => (double[4,3] y) <int64[3] l = {4,2,1}> { y = ReverseSequence(x, l) }",
    "(double[4,3] x) => (double[2,3] y) <bool[4] c = {1,0,1,0}> { y = Compress <axis = 0> (x, c) }",
]


@pytest.mark.parametrize("text", MOVEMENTS)
def test_movements(text: str) -> None:
    check(text)


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge", "wrap"])
def test_padding(mode: str) -> None:
    check(
        f"(double[3,4] x) => (double[4,7] y) <int64[4] p = {{1,2,0,1}}> "
        f'{{ y = Pad <mode = "{mode}"> (x, p) }}'
    )


@pytest.mark.parametrize("scale", ["", "[4]"])
def test_the_scale_of_quantized_weights(scale: str) -> None:
    check(
        f"(float{scale} s) => (float[3,4] y) <int8[3,4] q = {{1,-2,3,4,5,-6,7,8,9,10,-11,12}}> "
        "{ y = DequantizeLinear(q, s) }",
        in_float=True,
    )


@pytest.mark.parametrize(("scale", "axis"), [("", ""), ("[4]", "<axis = 1>")])
def test_the_scale_of_weights_of_16_bits(scale: str, axis: str) -> None:
    check(
        f"(float{scale} s) => (float[3,4] y) <int16[3,4] q = {{1,-2,3,4,5,-6,7,8,9,10,-11,12}}> "
        f"{{ y = com.microsoft.DequantizeLinear{axis}(q, s) }}",
        in_float=True,
    )


def test_padding_with_an_operand() -> None:
    check(
        "(double[3,4] x, double[1] v) => (double[4,7] y) <int64[4] p = {1,2,0,1}> {"
        " s = Squeeze(v)  y = Pad(x, p, s) }"
    )


INDICES = [
    "(double[5,3] x) => (double[2,2,3] y) <int64[2,2] i = {0,4,-1,0}> { y = Gather(x, i) }",
    "(double[2,5,3] x) => (double[2,2,2,3] y) <int64[2,2] i = {0,4,-1,0}> "
    "{ y = Gather <axis = 1> (x, i) }",
    "(double[2,5,3] x) => (double[2,3] y) <int64 i = {1}> { y = Gather <axis = 1> (x, i) }",
    "(double[3,3] x) => (double[2,3] y) <int64[2,3] i = {0,1,2,0,-1,2}> "
    "{ y = GatherElements(x, i) }",
    "(double[3,3] x) => (double[2] y) <int64[2,2] i = {0,1,0,1}> { y = GatherND(x, i) }",
    "(double[2,3] x) => (double[2] y) <int64[2,1] i = {0,2}> "
    "{ y = GatherND <batch_dims = 1> (x, i) }",
    "(double[3,3] x, double[1,3] u) => (double[3,3] y) <int64[1,3] i = {1,0,2}> "
    "{ y = ScatterElements(x, i, u) }",
    "(double[3,3] x, double[2,3] u) => (double[3,3] y) <int64[2,1] i = {2,0}> "
    "{ y = ScatterND(x, i, u) }",
    "(double[3,3] x, double[2,3] u) => (double[3,3] y) <int64[2,1] i = {2,0}> "
    '{ y = ScatterND <reduction = "add"> (x, i, u) }',
    "(double[2] v) => (double[2,3] y) <int64[2] i = {0,2}, int64 d = {3}> { y = OneHot(i, d, v) }",
]


@pytest.mark.parametrize("text", INDICES)
def test_indices(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    ("settings", "operands", "y"),
    [('mode = "nearest"', 'x, "", s', "6,8"), ('mode = "linear"', 'x, "", "", t', "5,7"),
     ('mode = "cubic"', 'x, "", s', "6,8"),
     ('mode = "linear", coordinate_transformation_mode = "align_corners"', 'x, "", "", t', "5,7")],
)  # fmt: skip
def test_resize(settings: str, operands: str, y: str) -> None:
    check(
        f"(double[1,1,3,4] x) => (double[1,1,{y}] y) "
        f"<float[4] s = {{1,1,2,2}}, int64[4] t = {{1,1,5,7}}> "
        f"{{ y = Resize <{settings}> ({operands}) }}"
    )


BRANCHES = """(double[3] x, double[3] w, bool c) => (double[3] y) {
    y = If(c) <then_branch = t () => (double[3] a) { b = Mul(x, w)  a = Exp(b) },
               else_branch = e () => (double[3] d) { d = Sin(x) }> }"""


@pytest.mark.parametrize("chosen", [True, False])
def test_if(chosen: bool) -> None:
    check(BRANCHES, feeds={"c": np.array(chosen)})


LOOP = """(double[3] x, double[3] w) => (double[3] y, double[K,3] z) <int64 n = {3}, bool t = {1}> {
    y, z = Loop(n, t, x) <body = b (int64 i, bool c, double[3] h) =>
        (bool d, double[3] next, double[3] row) {
            d = Identity(c)  p = Mul(h, w)  next = Sin(p)  row = Mul(p, p) }> }"""

COUNTED = """(double[3] x) => (double[3] y) <int64 n = {3}, bool t = {1}> {
    y = Loop(n, t, x) <body = b (int64 i, bool c, double[3] h) => (bool d, double[3] next) {
        d = Identity(c)  j = Cast <to = 11> (i)  p = Mul(h, j)  next = Add(p, h) }> }"""

SCAN = """(double[3] h0, double[%s] xs) => (double[3] y, double[%s] z) {
    y, z = Scan <num_scan_inputs = 1 %s, body = b (double[3] h, double[3] x) =>
        (double[3] next, double[3] row) {
            p = Mul(h, x)  next = Tanh(p)  row = Add(p, next) }> (h0, xs) }"""

BACKWARDS = """, scan_input_axes = [1], scan_input_directions = [1], scan_output_axes = [1],
    scan_output_directions = [1]"""


UNTYPED = (SCAN % ("5,3", "5,3", "")).replace(
    "(double[3] h, double[3] x) =>\n        (double[3] next, double[3] row)",
    "(h, x) =>\n        (next, row)",
)


@pytest.mark.parametrize(
    "text",
    [LOOP, COUNTED.replace("to = 11", "to = 1").replace("double", "float"),
     SCAN % ("5,3", "5,3", ""), SCAN % ("3,5", "3,5", BACKWARDS), UNTYPED],
    ids=["loop", "counted", "scan", "scan backwards", "scan without types"],
)  # fmt: skip
def test_loops(text: str) -> None:
    check(text, in_float=True)
