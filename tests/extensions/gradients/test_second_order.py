"""Products with Hessian matrices: a rule of each family, differentiated in its turn."""

import numpy as np
import pytest

from tests.extensions.gradients.differences import OnnxRuntime, Reference, random_feeds
from tiered import get_pass
from tiered.testing import parse

FAMILIES = {
    "activation": ("double[2,3] x", "y = Softplus(x)"),
    "arithmetic": ("double[2,3] x, double[3] b", "y = Div(b, x)"),
    "power": ("double[2,3] x, double[3] b", "y = Pow(x, b)"),
    "if": ("double[2,3] x, bool c",
           "y = If(c) <then_branch = t () => (double[2,3] p) { p = Exp(x) }, "
           "else_branch = e () => (double[2,3] q) { q = Sin(x) }>"),
    "loop": ("double[2,3] x",
             "n = Constant <value_int = 3> ()  g = Constant <value = bool {1}> ()  "
             "y = Loop(n, g, x) <body = b (int64 i, bool k, double[2,3] s) => "
             "(bool o, double[2,3] z) { o = Identity(k)  t = Mul(s, x)  z = Sin(t) }>"),
    "scan": ("double[3] x, double[4,3] b",
             "y, r = Scan <num_scan_inputs = 1, body = f (double[3] s, double[3] e) => "
             "(double[3] z, double[3] q) { z = Mul(s, e)  q = Mul(z, s) }> (x, b)"),
    "conv": ("double[1,2,5,5] x, double[3,2,3,3] w",
             "y = Conv <strides = [2,2], pads = [1,1,1,1]> (x, w)"),
    "conv_transpose": ("double[1,2,3,3] x, double[2,3,2,2] w",
                       "y = ConvTranspose <strides = [2,2]> (x, w)"),
    "cumulative": ("double[2,4] x", "a = Constant <value_int = 1> ()  y = CumSum(x, a)"),
    "elementwise": ("double[2,3] x", "y = Tanh(x)"),
    "gather": ("double[4,3] x",
               "i = Constant <value_ints = [0,2,0]> ()  y = Gather <axis = 0> (x, i)"),
    "movement": ("double[2,3] x",
                 "t = Transpose <perm = [1,0]> (x)  y = Concat <axis = 1> (t, t)"),
    "layer_normalization": ("double[2,4] x, double[4] s, double[4] b",
                            "y = LayerNormalization(x, s, b)"),
    "instance_normalization": ("double[2,3,4] x, double[3] s, double[3] b",
                               "y = InstanceNormalization(x, s, b)"),
    "pooling": ("double[1,2,4,4] x",
                "y = AveragePool <kernel_shape = [2,2]> (x)"),
    "products": ("double[2,3] x, double[3,4] b", "y = MatMul(x, b)"),
    "gemm": ("double[2,3] x, double[4,3] b, double[4] c",
             "y = Gemm <transB = 1, alpha = 0.5> (x, b, c)"),
    "einsum": ("double[2,3] x, double[3,4] b",
               'y = Einsum <equation = "ij,jk->ik"> (x, b)'),
    "gru": ("double[3,1,2] x, double[1,6,2] w, double[1,6,2] r",
            "y, h = GRU <hidden_size = 2> (x, w, r)"),
    "reduction": ("double[2,3] x",
                  "a = Constant <value_ints = [1]> ()  y = ReduceLogSumExp(x, a)"),
    "reduce_product": ("double[2,3] x",
                       "a = Constant <value_ints = [1]> ()  y = ReduceProd(x, a)"),
    "softmax": ("double[2,3] x", "y = Softmax(x)"),
    "resize": ("double[1,1,2,2] x",
               's = Constant <value_ints = [1,1,4,4]> ()  '
               'y = Resize <mode = "linear"> (x, "", "", s)'),
    "sampling": ("double[1,1,3,3] x, double[1,2,2,2] g", "y = GridSample(x, g)"),
    "scatter": ("double[2,3] x, double[2,2] u",
                "i = Constant <value = int64[2,2] {0,2,1,0}> ()  "
                'y = ScatterElements <axis = 1, reduction = "add"> (x, i, u)'),
    "signal": ("double[1,4,1] x", "y = DFT(x)"),
    "attention": ("double[1,2,3,4] x, double[1,2,3,4] k, double[1,2,3,4] v",
                  "y = Attention(x, k, v)"),
}  # fmt: skip
"""The inputs, and nodes that compute y; the loss is the sum of the cubes of y + 1."""


ON_ONNXRUNTIME = {"gru", "loop", "sampling"}
"""onnx.reference samples in float, and joins rows of a Loop that it should stack."""

IN_FLOAT = {"gru"}
"""onnxruntime has no GRU in double."""


@pytest.mark.parametrize("family", FAMILIES)
def test_a_product_with_the_hessian_is_the_change_of_the_gradient(family: str) -> None:
    inputs, nodes = FAMILIES[family]
    in_float = family in IN_FLOAT
    text = (
        f"({inputs}) => (double loss) <double one = {{1}}> {{ {nodes}  moved = Add(y, one)  "
        "square = Mul(moved, moved)  cube = Mul(square, moved)  "
        "loss = ReduceSum <keepdims = 0> (cube) }"
    )
    proto = parse(text.replace("double", "float") if in_float else text, opset=23)
    names = [info.name for info in proto.graph.input if info.type.tensor_type.elem_type in (1, 11)]
    first = get_pass("gradient", with_respect_to=names, higher_order=True)(proto)
    grads = [f"grad/{name}" for name in names]
    second = get_pass("gradient", of=grads, with_respect_to=names, seed="input")(first)
    run = OnnxRuntime if family in ON_ONNXRUNTIME else Reference
    gradient, product = run(first), run(second)
    feeds, random = random_feeds(proto, low=0.2, high=0.8), np.random.default_rng(2)
    step, limit = (1e-2, 1e-2) if in_float else (1e-5, 1e-5)
    v = {
        name: np.asarray(random.standard_normal(each.shape), each.dtype)
        for name, each in feeds.items()
        if name in names
    }
    found = product({**feeds, **{f"seed/grad/{name}": v[name] for name in names}})
    sides = [
        gradient({**feeds, **{name: feeds[name] + v[name].dtype.type(sign * step) * v[name]
                              for name in names}})
        for sign in (1, -1)
    ]  # fmt: skip
    for name in names:
        expected = (sides[0][f"grad/{name}"] - sides[1][f"grad/{name}"]) / (2 * step)
        assert np.abs(expected).max() > 1e-3
        np.testing.assert_allclose(
            found[f"grad/grad/{name}"], expected, rtol=limit, atol=limit * np.abs(expected).max()
        )
