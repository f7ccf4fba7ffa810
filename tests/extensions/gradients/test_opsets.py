"""Gradients in old and new opsets, with symbolic dims: rules write forms of the model's opset."""

import pytest

from tests.extensions.gradients.differences import largest_error
from tiered import get_pass
from tiered.extensions.gradients import NoGradient
from tiered.testing import parse

IMAGE = "double[N,2,H,W] x"

SINCE_13 = {
    "Add": ("double[N,C] x, double[1,C] b", "y = Add(x, b)"),
    "MatMul": ("double[N,C,3] x, double[1,3,4] b", "y = MatMul(x, b)"),
    "Gemm": ("double[N,3] x, double[C,3] b", "y = Gemm <transB = 1> (x, b)"),
    "Relu": ("double[N,C] x", "y = Relu(x)"),
    "Softmax": ("double[N,C] x", "y = Softmax(x)"),
    "Concat": ("double[N,C] x, double[N,4] b", "y = Concat <axis = 1> (x, b)"),
    "GlobalAveragePool": (IMAGE, "y = GlobalAveragePool(x)"),
    "GlobalMaxPool": (IMAGE, "y = GlobalMaxPool(x)"),
    "AveragePool": (
        IMAGE, "y = AveragePool <kernel_shape = [2,2], pads = [1,1,0,0], strides = [2,1]> (x)"),
    "MaxPool": (IMAGE, "y = MaxPool <kernel_shape = [2,2]> (x)"),
    "LpPool": (IMAGE, "y = LpPool <kernel_shape = [2,2], strides = [2,2]> (x)"),
    "Conv": (
        f"{IMAGE}, double[3,2,2,2] w", "y = Conv <strides = [2,2], pads = [1,0,0,1]> (x, w)"),
    "ConvTranspose": (f"{IMAGE}, double[2,3,2,2] w", "y = ConvTranspose <pads = [1,0,0,1]> (x, w)"),
    "DepthToSpace": ("double[N,4,H,W] x", "y = DepthToSpace <blocksize = 2> (x)"),
}  # fmt: skip
"""The inputs of a model of one operator, and the operator."""


@pytest.mark.parametrize("opset", [13, 14, 18, 26])
@pytest.mark.parametrize("name", SINCE_13)
def test_operators_with_symbolic_dims(name: str, opset: int) -> None:
    inputs, node = SINCE_13[name]
    dims = {"MatMul": "P,Q,R"}.get(name, "P,Q,R,T" if "H" in inputs else "P,Q")
    # onnxruntime computes pools in float only.
    in_float = name in ("AveragePool", "LpPool", "MaxPool")
    error = largest_error(
        f"({inputs}) => (double[{dims}] y) {{ {node} }}", opset=opset, in_float=in_float, low=0.1
    )
    assert error < (2e-2 if in_float else 1e-5)


OLD = {
    "(float[2] x) => (float[2] y) { y = Relu(x) }":
        r"node 'y' \(Relu\) has no gradient: .*has no Where.*convert_opset raises the opset",
    "(float[2] x) => (float[2] y) { y = Ceil(x) }":
        "the gradient of 'x' is 0: .*has no ConstantOfShape.*convert_opset",
}  # fmt: skip


@pytest.mark.parametrize("text", OLD)
def test_an_opset_that_lacks_an_operator_is_an_error_with_the_node(text: str) -> None:
    with pytest.raises(NoGradient, match=OLD[text]):
        get_pass("gradient", seed="input")(parse(text, opset=7))


def test_a_sum_of_exponentials_has_a_gradient_in_opset_7() -> None:
    text = "(float[2,3] x) => (float[2,1] y) { y = ReduceLogSumExp <axes = [1]> (x) }"
    assert largest_error(text, opset=7, in_float=True) < 1e-2


def test_products_have_gradients_in_opset_7() -> None:
    assert largest_error("(float[2,3] x, float[3,2] b) => (float[2,2] y) { h = MatMul(x, b) "
                         "y = Tanh(h) }", opset=7, in_float=True) < 1e-2  # fmt: skip


def test_an_unknown_rank_is_an_error_with_the_node() -> None:
    text = """(float[2] x) => (float y) {
        h = com.acme.F(x)  y = ReduceSum <keepdims = 0> (h) }"""
    with pytest.raises(NoGradient, match=r"node 'y' \(ReduceSum\) .*: the rank of 'h' is unknown"):
        get_pass("gradient")(parse(text))


def test_an_unknown_dtype_beside_a_number_is_an_error_with_the_node() -> None:
    text = "(float[2] x) => (float[2] y) { h = com.acme.F(x)  y = Relu(h) }"
    with pytest.raises(NoGradient, match=r"node 'y' \(Relu\) .*: the dtype of 'h' is unknown"):
        get_pass("gradient", seed="ones")(parse(text))
