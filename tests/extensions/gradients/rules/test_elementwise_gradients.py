"""Gradients of functions of one tensor, element by element."""

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


def unary(call: str) -> str:
    return f"(double[3,4] x) => (double[3,4] y) {{ y = {call} }}"


@pytest.mark.parametrize(
    "operator",
    ["Abs", "Acos", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cos", "Cosh", "Dropout", "Exp",
     "Floor", "Identity", "Mish", "Neg", "Reciprocal", "Round", "Shrink", "Sigmoid", "Sign", "Sin",
     "Sinh", "Softplus", "Softsign", "Tan", "Tanh"],
)  # fmt: skip
def test_functions_of_one_element(operator: str) -> None:
    check(unary(f"{operator}(x)"), low=-0.9, high=0.9)


@pytest.mark.parametrize("operator", ["Acosh", "Log", "Sqrt"])
def test_functions_of_large_numbers(operator: str) -> None:
    check(unary(f"{operator}(x)"), low=1.2, high=3)


def test_the_error_function() -> None:
    check(unary("Erf(x)"), in_float=True)


def test_clip_with_limits_that_are_operands() -> None:
    check(
        "(double[3,4] x, double low, double high) => (double[3,4] y) { y = Clip(x, low, high) }",
        feeds={"low": np.array(-0.5), "high": np.array(0.5)},
    )


def test_dropout_in_training_gets_a_mask() -> None:
    proto = parse(
        "(float[200] x, float r) => (float[200] y) <bool t = {1}> { y = Dropout(x, r, t) }"
    )
    made = OnnxRuntime(with_gradients(proto))
    x, seed = np.linspace(1, 2, 200, dtype=np.float32), np.ones(200, np.float32)
    found = made({"x": x, "r": np.array(0.25, np.float32), "seed/y": seed})
    kept = found["y"] != 0
    assert 100 < kept.sum() < 200
    np.testing.assert_allclose(found["grad/x"], kept / 0.75, rtol=1e-6)


def test_the_element_of_an_optional_tensor() -> None:
    check("(double[3] x) => (double[3] y) { y = OptionalGetElement(x) }")


@pytest.mark.parametrize("like", ["EyeLike", "RandomNormalLike", "RandomUniformLike"])
def test_operators_that_read_a_shape_only(like: str) -> None:
    proto = parse(
        f"(float[2,2] x) => (float[2,2] y, float[2,2] n) {{ n = {like}(x)  y = Mul(n, x) }}"
    )
    made = OnnxRuntime(get_pass("gradient", of=["y"], seed="ones")(proto))
    found = made({"x": np.array([[1, 2], [3, 4]], np.float32)})
    np.testing.assert_array_equal(found["grad/x"], found["n"])


@pytest.mark.parametrize(
    ("call", "x", "expected"),
    [
        ("Abs(x)", [-2, 0, 3], [-1, 0, 100]),
        ("Ceil(x)", [-2, 0.5, 3], [0, 0, 0]),
        ("Hardmax(x)", [-2, 0.5, 3], [0, 0, 0]),
        ("Neg(x)", [-2, 0, 3], [-1, -10, -100]),
        ("Reciprocal(x)", [-2, 0.5, 1], [-0.25, -40, -100]),
        ("Shrink <lambd = 0.5, bias = 0.25> (x)", [-0.5, 0.5, 0.75], [0, 0, 100]),
        ("Shrink <lambd = 0.5> (x)", [-0.75, 0, 0.5], [1, 0, 0]),
    ],
)  # fmt: skip
def test_gradients_at_three_points_by_hand(
    call: str, x: list[float], expected: list[float]
) -> None:
    text = f"(double[3] x) => (double[3] y) {{ y = {call} }}"
    np.testing.assert_allclose(gradients_of(text, x=x, seed=[1, 10, 100])["x"], expected)


CLIP = "(double[4] x, double a, double b) => (double[4] y) { y = Clip(x, a, b) }"


def test_a_clip_at_its_limits_passes_the_gradient_to_its_operand() -> None:
    found = gradients_of(CLIP, x=[-1, 0, 2, 3], a=0, b=2, seed=[1, 10, 100, 1000])
    np.testing.assert_array_equal(found["x"], [0, 10, 100, 0])
    assert (found["a"], found["b"]) == (1, 1000)


def test_a_clip_with_its_limits_crossed_is_the_upper_one() -> None:
    found = gradients_of(CLIP, x=[0, 1.5, 2, 4], a=2, b=1, seed=[1, 10, 100, 1000])
    np.testing.assert_array_equal(found["x"], [0, 0, 0, 0])
    assert (found["a"], found["b"]) == (0, 1111)


@pytest.mark.parametrize(
    ("operands", "inputs", "expected", "limit"),
    [("x, a", "double a", [0, 10, 100], 1), ('x, "", a', "double a", [1, 10, 0], 100)],
)
def test_a_clip_with_one_limit(
    operands: str, inputs: str, expected: list[float], limit: float
) -> None:
    text = f"(double[3] x, {inputs}) => (double[3] y) {{ y = Clip({operands}) }}"
    found = gradients_of(text, x=[-1, 0, 1], a=0, seed=[1, 10, 100])
    np.testing.assert_array_equal(found["x"], expected)
    assert found["a"] == limit


def test_a_clip_without_limits() -> None:
    text = "(double[2] x) => (double[2] y) { y = Clip(x) }"
    np.testing.assert_array_equal(gradients_of(text, x=[-1, 1])["x"], [1, 1])


@pytest.mark.parametrize("training", ["", " <bool t = {0}>"])
def test_dropout_is_the_identity_unless_it_trains(training: str) -> None:
    operands = "x, r, t" if training else "x, r"
    proto = parse(f"(float[3] x, float r) => (float[3] y){training} {{ y = Dropout({operands}) }}")
    made = with_gradients(proto, with_respect_to=["x"])
    assert "Cast" not in {node.op_type for node in made.graph.node}
    assert [len(node.output) for node in made.graph.node if node.op_type == "Dropout"] == [1]


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize(("operands", "kept"), [("x, r, t", 4), ('x, "", t', 2)])
@pytest.mark.parametrize("outputs", ["y", "y, m"])
def test_dropout_that_may_train(
    operands: str, kept: float, outputs: str, *, is_training: bool
) -> None:
    mask = ", bool[64] m" if "m" in outputs else ""
    proto = parse(
        f"(float[64] x, bool t) => (float[64] y{mask}) <float r = {{0.75}}> "
        f"{{ {outputs} = Dropout({operands}) }}"
    )
    made = get_pass("gradient", of=["y"], with_respect_to=["x"], seed="ones")(proto)
    assert isinstance(made, onnx.ModelProto)
    found = OnnxRuntime(made)({"x": np.ones(64, np.float32), "t": np.array(is_training)})
    expected = kept * (found["y"] != 0) if is_training else np.ones(64)
    np.testing.assert_allclose(found["grad/x"], expected, rtol=1e-6)


def test_an_optional_sequence_has_no_gradient() -> None:
    text = """<ir_version: 10, opset_import: ["" : 18]> g (float[2] x) => (float[2] y) {
        s = SequenceConstruct(x)  o = Optional(s)  e = OptionalGetElement(o)
        z = Constant <value_int = 0> ()  y = SequenceAt(e, z) }"""
    with pytest.raises(NoGradient, match="has no gradient"):
        get_pass("gradient", seed="ones")(parse(text))


def test_a_threshold_of_the_classical_domain_is_constant() -> None:
    text = """<ir_version: 10, opset_import: ["" : 13, "ai.onnx.ml" : 3]>
        g (float[3,4] x) => (float[3,4] y) {
            b = ai.onnx.ml.Binarizer <threshold = 0.1> (x)  y = Add(b, x) }"""
    x, seed = np.arange(12, dtype=np.float32).reshape(3, 4) / 4, np.ones((3, 4), np.float32)
    found = OnnxRuntime(with_gradients(parse(text)))({"x": x, "seed/y": seed})
    np.testing.assert_array_equal(found["grad/x"], np.ones((3, 4)))


@pytest.mark.parametrize("call", ["Cast <to = 1> (x)", "CastLike(x, like)"])
def test_the_gradient_of_a_cast_has_the_dtype_of_its_operand(call: str) -> None:
    text = f"(double[2] x) => (float[2] y) <float like = {{0}}> {{ y = {call} }}"
    found = gradients_of(text, x=[1, 2], seed=[0.5, 4])["x"]
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, [0.5, 4])
