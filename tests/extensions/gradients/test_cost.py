"""What gradients cost: the multiply-adds of the backward pass, and nodes that nothing reads."""

import numpy as np
import pytest

from tests.extensions.gradients.differences import largest_error
from tiered import Model, Sequential, add_gradients
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.graph.queries.multiply_adds import multiply_adds
from tiered.testing import parse

WINDOWS = [
    ("1,1", "strides = [2,2]"),
    ("3,3", "strides = [2,2], pads = [1,1,1,1]"),
    ("3,2", "strides = [3,2], dilations = [2,1], pads = [0,1,2,0]"),
    ("2,2", "strides = [3,3]"),
    ("3,3", 'strides = [2,2], auto_pad = "SAME_UPPER"'),
    ("3,3", "strides = [2,2], group = 2, pads = [1,1,1,1]"),
]


def differentiated(text: str) -> Model:
    model = Model.from_proto(parse(text))
    Sequential(["infer_shapes"])(model)
    main = model.main
    targets = [*main.inputs, *main.initializers]
    add_gradients(
        model, [main.outputs[0]], [each for each in targets if each.dtype == 1], seed="input"
    )
    return model


def cost(model: Model) -> int:
    dims = LayoutSizes({}, 2).known_dims
    return sum(multiply_adds(node, dims) for node in model.main.nodes)


@pytest.mark.parametrize(("kernel", "settings"), WINDOWS)
def test_a_convolution_costs_at_most_twice_as_much_backwards(kernel: str, settings: str) -> None:
    channels = 1 if "group" in settings else 2
    text = f"""(float[N,2,9,8] x, float[4,{channels},{kernel}] w) => (float[N,4,P,Q] y) {{
        y = Conv <{settings}> (x, w) }}"""
    forward = Model.from_proto(parse(text))
    Sequential(["infer_shapes"])(forward)
    assert 0 < cost(differentiated(text)) <= 3 * cost(forward)


@pytest.mark.parametrize(("kernel", "settings"), WINDOWS)
@pytest.mark.parametrize("dims", ["2,2,9,8", "N,2,H,W"])
def test_strides_that_leave_a_rest(kernel: str, settings: str, dims: str) -> None:
    if "SAME" in settings and "H" in dims:
        pytest.skip("auto_pad needs known spatial dims")
    channels = 1 if "group" in settings else 2
    text = f"""(double[{dims}] x, double[4,{channels},{kernel}] w) => (double[N,4,P,Q] y) {{
        y = Conv <{settings}> (x, w) }}"""
    x = np.random.default_rng(5).uniform(-1, 1, (2, 2, 9, 8))
    # onnx.reference does not compute a ConvTranspose of several groups.
    in_float = "group" in settings
    error = largest_error(text, feeds={"x": x}, in_float=in_float)
    assert error < (1e-2 if in_float else 1e-5)


def test_an_image_smaller_than_its_padding() -> None:
    text = """(double[1,1,1,1] x, double[1,1,1,1] w) => (double[1,1,P,Q] y) {
        y = Conv <strides = [3,3], pads = [2,2,1,1]> (x, w) }"""
    assert largest_error(text) < 1e-5


def test_what_a_body_computes_again_for_nothing_is_removed() -> None:
    model = differentiated(
        """(float[3,3] x, bool c) => (float[3,3] y) <float[3,3] w = {1,2,3,4,5,6,7,8,9}> {
            y = If(c) <then_branch = t () => (float[3,3] p) { p = MatMul(x, w) },
                       else_branch = e () => (float[3,3] q) { q = Exp(x) }> }"""
    )
    backward = model.main.nodes_of("If")[-1]
    found = {body.attribute: [node.op_type for node in body.nodes] for body in backward.bodies}
    assert found["then_branch"].count("MatMul") == 2
    assert found["else_branch"].count("Exp") == 1


def test_products_of_factors_with_unknown_dims_count_by_the_other_factor() -> None:
    text = """(float[M,K] x, float[K2,8] v) => (float[M,4] y) <
        float[8,4] w = {0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0}> {
            y = MatMul(x, w)  z = MatMul(w, y)  u = Gemm <transB = 1> (x, v) }"""
    model = Model.from_proto(parse(text))
    dims = LayoutSizes({}, 2).known_dims
    counts = [multiply_adds(node, dims) for node in model.main.topological_order()]
    assert counts[:2] == [2 * 4 * 8, 8 * 4 * 4]
