"""Gradients of operators that write at indices."""

import numpy as np
import onnx
import pytest

from tests.extensions.gradients.differences import (
    OnnxRuntime,
    check,
    gradients_of,
    with_gradients,
)
from tiered import get_pass
from tiered.extensions.gradients import NoGradient
from tiered.testing import parse

X = np.array([[0.5, -2, 0, 3], [1.5, 0, 0, 2], [4, 1, -1, 0.25]])


UPDATES = np.array([[0.75, 0, 0, 2.5], [2, 1.25, 0, -3]])


@pytest.mark.parametrize("reduction", ["mul", "max", "min", "add"])
def test_reductions_at_indices_that_occur_twice(reduction: str) -> None:
    check(
        "(double[3,4] x, double[2,4] u) => (double[3,4] y) <int64[2,4] i = {0,1,2,-1,0,2,2,1}> "
        f'{{ y = ScatterElements <axis = 0, reduction = "{reduction}"> (x, i, u) }}',
        feeds={"x": X, "u": UPDATES} if reduction == "mul" else {}, opset=18,
    )  # fmt: skip


@pytest.mark.parametrize("reduction", ["mul", "max", "min", "add"])
def test_reductions_of_rows(reduction: str) -> None:
    check(
        "(double[3,4] x, double[2,4] u) => (double[3,4] y) <int64[2,1] i = {2,2}> "
        f'{{ y = ScatterND <reduction = "{reduction}"> (x, i, u) }}',
        feeds={"x": X, "u": UPDATES} if reduction == "mul" else {}, opset=18,
    )  # fmt: skip


@pytest.mark.parametrize("axis", [0, 1])
def test_scatter_before_opset_11(axis: int) -> None:
    check(
        "(double[3,3] x, double[2,2] u) => (double[3,3] y) <int64[2,2] i = {1,0,0,2}> "
        f"{{ y = Scatter <axis = {axis}> (x, i, u) }}",
        opset=10, in_float=True,
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize(
    ("past", "update", "axis"),
    [("2,4,3", "2,2,3", 1), ("2,2,4,3", "2,2,2,3", -2), ("2,2,3,4", "2,2,3,2", 3)],
)
def test_tensor_scatter(past: str, update: str, axis: int, mode: str) -> None:
    starts = "3,1" if mode == "circular" else "2,0"
    check(
        f"(double[{past}] x, double[{update}] u) => (double[{past}] y) "
        f"<int64[2] s = {{{starts}}}> "
        f'{{ y = TensorScatter <axis = {axis}, mode = "{mode}"> (x, u, s) }}',
        opset=24,
    )


def test_tensor_scatter_at_the_start() -> None:
    check(
        "(double[2,4,3] x, double[2,2,3] u) => (double[2,4,3] y) { y = TensorScatter(x, u) }",
        opset=24,
    )


@pytest.mark.parametrize(("operands", "size"), [("x, i", "4,4"), ("x, i, s", "5,5")])
def test_max_unpool(operands: str, size: str) -> None:
    check(
        f"(double[1,1,2,2] x) => (double[1,1,{size}] y) "
        "<int64[1,1,2,2] i = {5,7,13,15}, int64[4] s = {1,1,5,5}> "
        f"{{ y = MaxUnpool <kernel_shape = [2,2], strides = [2,2]> ({operands}) }}"
    )


WRITTEN = [
    "(double[3,3] x, double[1,3] u) => (double[3,3] y) <int64[1,3] i = {1,0,2}> "
    "{ y = ScatterElements(x, i, u) }",
    "(double[3,3] x, double[2,3] u) => (double[3,3] y) <int64[2,1] i = {2,0}> "
    "{ y = ScatterND(x, i, u) }",
    "(double[3,3] x, double[2,3] u) => (double[3,3] y) <int64[2,1] i = {2,0}> "
    '{ y = ScatterND <reduction = "add"> (x, i, u) }',
]


@pytest.mark.parametrize("text", WRITTEN)
def test_elements_that_are_written_once(text: str) -> None:
    check(text)


@pytest.mark.parametrize(
    ("reduction", "of_x", "of_u"),
    [
        ("none", [1, 0, 100, 0], [1000, 10]),
        ("add", [1, 10, 100, 1000], [1000, 10]),
        ("mul", [1, 70, 100, 5000], [4000, 20]),
        ("max", [1, 0, 100, 500], [500, 10]),
        ("min", [1, 10, 100, 500], [500, 0]),
    ],
)
@pytest.mark.parametrize("operator", ["ScatterElements", "ScatterND"])
def test_updates_by_hand(
    operator: str, reduction: str, of_x: list[float], of_u: list[float]
) -> None:
    # x[3] = 4 meets u = 5 in a product, and 4 in an extreme; x[1] = 2 meets 7.
    indices = "int64[2] i = {-1,1}" if operator == "ScatterElements" else "int64[2,1] i = {-1,1}"
    text = f"""(float[4] x, float[2] u) => (float[4] y) <{indices}> {{
        y = {operator} <reduction = "{reduction}"> (x, i, u) }}"""
    u = [5 if reduction == "mul" else 4, 7]
    found = gradients_of(
        text, x=[1, 2, 3, 4], u=u, seed=[1, 10, 100, 1000], opset=18, in_float=True
    )
    np.testing.assert_allclose(found["x"], of_x)
    np.testing.assert_allclose(found["u"], of_u)


@pytest.mark.parametrize("wanted", ["x", "u"])
def test_only_the_wanted_gradient_is_computed(wanted: str) -> None:
    text = """(float[4] x, float[2] u) => (float[4] y) <int64[2] i = {0,1}> {
        y = ScatterElements(x, i, u) }"""
    made = get_pass("gradient", with_respect_to=[wanted], seed="input")(parse(text))
    assert isinstance(made, onnx.ModelProto)
    operators = [node.op_type for node in made.graph.node]
    assert operators.count("ScatterElements") == (2 if wanted == "x" else 1)
    assert operators.count("GatherElements") == (wanted == "u")


def test_a_scatter_before_opset_11_needs_known_dims_for_its_updates() -> None:
    text = """(float[N,3] x, float[1,3] u) => (float[N,3] y) <int64[1,3] i = {0,0,1}> {
        y = Scatter(x, i, u) }"""
    proto = parse(text, opset=10)
    with pytest.raises(NoGradient, match="Scatter needs known dims"):
        get_pass("gradient", seed="input")(proto)
    of_x = get_pass("gradient", seed="input", with_respect_to=["x"])(proto)
    assert isinstance(of_x, onnx.ModelProto)
    assert [info.name for info in of_x.graph.output] == ["y", "grad/x"]


def test_the_pads_of_an_unpool_belong_to_no_element() -> None:
    text = """(float[1,1,2,2] x) => (float[1,1,5,5] y)
        <int64[1,1,2,2] i = {0,3,9,15}, int64[4] s = {1,1,5,5}> {
        y = MaxUnpool <kernel_shape = [4,4], strides = [2,2], pads = [1,1,1,1]> (x, i, s) }"""
    seed = np.arange(25).reshape(1, 1, 5, 5)
    model = parse(text)
    feeds = {"x": np.ones((1, 1, 2, 2), np.float32), "seed/y": seed.astype(np.float32)}
    found = OnnxRuntime(with_gradients(model))(feeds)
    # The smallest output is 4 by 4: (2 - 1) * 2 + 4 - 1 - 1.
    read = seed[0, 0, :4, :4].ravel()[[0, 3, 9, 15]]
    np.testing.assert_array_equal(found["grad/x"].ravel(), read)
