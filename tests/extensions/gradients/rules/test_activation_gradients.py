"""Gradients of activations that are defined piecewise, and of the softmaxes."""

import math

import numpy as np
import pytest

from tests.extensions.gradients.differences import check, gradients_of

POINTS, SEED = np.array([-2.0, 0.0, 3.0]), np.array([1.0, 10.0, 100.0])

PIECEWISE: dict[str, list[float]] = {
    "Relu(x)": [0, 0, 100],
    "LeakyRelu(x)": [0.01, 0.1, 100],
    "LeakyRelu <alpha = 0.25> (x)": [0.25, 2.5, 100],
    "Elu <alpha = 2.0> (x)": [2 * math.exp(-2), 20, 100],
    "Selu <alpha = 2.0, gamma = 3.0> (x)": [6 * math.exp(-2), 60, 300],
    "Celu <alpha = 2.0> (x)": [math.exp(-1), 10, 100],
    "HardSigmoid <alpha = 0.25, beta = 0.5> (x)": [0, 2.5, 0],
    "HardSigmoid <alpha = 0.5, beta = 0.0> (x)": [0, 0, 0],
    "HardSigmoid <alpha = 0.25, beta = 1.0> (x)": [0.25 * (-2 + 4 > 0), 0, 0],
    "ThresholdedRelu <alpha = 0.0> (x)": [0, 0, 100],
    "ThresholdedRelu <alpha = 3.0> (x)": [0, 0, 0],
    "ThresholdedRelu <alpha = -1.0> (x)": [0, 10, 100],
}
"""The gradients at -2, 0 and 3, by hand; at a kink it is that of the side below."""


@pytest.mark.parametrize("call", PIECEWISE)
def test_each_side_of_a_kink_and_the_kink_have_their_gradient(call: str) -> None:
    text = f"(double[3] x) => (double[3] y) {{ y = {call} }}"
    found = gradients_of(text.replace("double", "float"), in_float=True, x=POINTS, seed=SEED)
    np.testing.assert_allclose(found["x"], PIECEWISE[call], rtol=1e-6)


def test_the_slope_of_a_prelu_gets_the_elements_that_are_not_positive() -> None:
    text = "(double[3] x, double[3] s) => (double[3] y) { y = PRelu(x, s) }"
    found = gradients_of(text, x=POINTS, s=[0.5, 0.25, 7], seed=SEED)
    np.testing.assert_allclose(found["x"], [0.5, 2.5, 100])
    np.testing.assert_allclose(found["s"], [-2, 0, 0])


@pytest.mark.parametrize(
    "operator", ["Elu", "HardSigmoid", "HardSwish", "LeakyRelu", "Relu", "Selu", "ThresholdedRelu"]
)
def test_activations_with_default_attributes(operator: str) -> None:
    check(f"(double[3,4] x) => (double[3,4] y) {{ y = {operator}(x) }}", low=-0.9, high=0.9)


@pytest.mark.parametrize("call", ["Celu(x)", "Celu <alpha = 0.5> (x)", "Gelu(x)"])
def test_activations_that_the_reference_computes_in_float(call: str) -> None:
    check(f"(double[3,4] x) => (double[3,4] y) {{ y = {call} }}", in_float=True)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_the_forms_of_gelu(approximate: str) -> None:
    call = f'Gelu <approximate = "{approximate}"> (x)'
    check(f"(double[3,4] x) => (double[3,4] y) {{ y = {call} }}", low=-3, high=3)


@pytest.mark.parametrize(("operator", "axis"), [
    ("Softmax", "<axis = 1>"), ("LogSoftmax", "<axis = 0>"), ("Softmax", ""), ("LogSoftmax", ""),
])  # fmt: skip
def test_softmaxes_along_one_axis(operator: str, axis: str) -> None:
    check(f"(double[3,4,2] x) => (double[3,4,2] y) {{ y = {operator} {axis} (x) }}")


@pytest.mark.parametrize("operator", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", ["<axis = 1>", "<axis = -2>", ""])
def test_softmaxes_before_opset_13_are_over_all_axes_from_one_on(operator: str, axis: str) -> None:
    text = f"(double[3,4,2] x) => (double[3,4,2] y) {{ y = {operator} {axis} (x) }}"
    check(text, opset=11, in_float=True)
