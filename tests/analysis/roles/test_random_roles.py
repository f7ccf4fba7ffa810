"""Roles of random constants: large numbers, thresholds, variances, masks, probabilities, positions.

Each seed is a model of one form, which is converted and compared on both runtimes.
"""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.analysis.roles.test_few_bits import PASSES, converted as in_few_bits
from tests.analysis.roles.test_roles import ROW, ROWS, assert_close, converted
from tiered.runtime import run, run_reference
from tiered.testing import parse

Array = np.ndarray[Any, Any]


def large(source: np.random.Generator) -> float:
    """Return a number beyond float16."""
    return float(f"{10.0 ** source.uniform(4.9, 7.5):.6g}")


@pytest.mark.parametrize("seed", range(16))
def test_random_large_constants_are_not_clamped(seed: int) -> None:
    """As a factor, a divisor, an addend, a bound or a weight, scalar or one of a vector."""
    source = np.random.default_rng(seed)
    number = large(source)
    shape, values = "float", f"{number}"
    if source.integers(2):
        shape, values = "float[4]", ", ".join([f"{number}", *["1"] * 3])
    body, scale = [
        ("m = Mul(a, k) y = Tanh(m)", 1 / number),
        ("m = Div(a, k) y = Mul(m, m)", number),
        ("m = Add(a, k) y = Sub(m, k)", number / 8),
        ("m = Max(a, k) d = Div(m, k) y = Mul(d, d)", number / 8),
        ("m = Mul(k, a) r = Relu(m) y = Sigmoid(r)", 1 / number),
    ][source.integers(5)]
    text = f"{ROW} <{shape} k = {{{values}}}> {{ a = Relu(x) {body} }}"
    rows = ROWS * np.float32(scale)
    expected = run(parse(text, opset=17), {"x": rows})["y"]
    most = float(np.abs(expected[np.isfinite(expected)]).max())
    if most < 6e4:  # else the outputs are beyond float16 themselves
        assert_close(text, {"x": rows}, role="large constant", atol=2e-3 * max(most, 1))


@pytest.mark.parametrize("seed", range(12))
def test_random_thresholds_divide_as_in_float(seed: int) -> None:
    source = np.random.default_rng(seed)
    number, step = large(source), float(f"{source.uniform(1.5, 9):.4g}")
    operator = source.choice(["Greater", "Less", "GreaterOrEqual", "LessOrEqual"])
    operands = source.choice(["m, k", "k, m"])
    text = (
        f"(float[N] x) => (bool[N] y) <float k = {{{number}}}, float h = {{{step}}}> "
        f"{{ m = Mul(x, h) y = {operator}({operands}) }}"
    )
    x = (number / step * source.uniform(0.5, 1.5, 64)).astype(np.float32)
    proto, kept = converted(text)
    expected = run(parse(text, opset=17), {"x": x})["y"]
    assert any("large constant" in each for each in kept)
    assert expected.any()
    assert not expected.all()
    for runtime in (run, run_reference):
        assert np.array_equal(runtime(proto, {"x": x})["y"], expected)


@pytest.mark.parametrize("seed", range(12))
def test_random_variances_are_right(seed: int) -> None:
    """From 1e-10, which is 0 in float16, to 1e7, which is beyond it."""
    source = np.random.default_rng(seed)
    exponent = source.uniform(-10, -7) if source.integers(2) else source.uniform(4.9, 7)
    variance = float(f"{10.0**exponent:.6g}")
    epsilon = 10.0 ** source.uniform(-12, -10)
    text = (
        "(float[N,2] x) => (float[N,2] y) <float[2] s = {1,1}, float[2] b = {0,0}, "
        f"float[2] m = {{0,0}}, float[2] v = {{{variance},1}}> "
        f"{{ r = Relu(x) y = BatchNormalization<epsilon={epsilon:.6g}>(r,s,b,m,v) }}"
    )
    x = np.abs(source.standard_normal((8, 2))).astype(np.float32)
    x[:, 0] *= np.float32(variance**0.5)
    role = "epsilon" if variance < 1 else "large constant"
    assert_close(text, {"x": x}, role=role, atol=2e-3)


@pytest.mark.parametrize("seed", range(16))
def test_random_masks_stay_finite_and_are_no_large_constants(seed: int) -> None:
    source = np.random.default_rng(seed)
    number = -float(f"{10.0 ** source.uniform(4, 38):.4g}")
    masked = ", ".join("01"[int(bit)] for bit in source.integers(0, 2, 4))
    body = source.choice(
        [
            "b = Where(c, a, k)",
            "f = Cast<to=1>(c) n = Sub(one, f) m = Mul(n, k) b = Add(a, m)",
            "f = Cast<to=1>(c) n = Sub(f, one) m = Mul(n, p) b = Add(m, a)",
            "f = Cast<to=1>(c) n = Sub(one, f) m = Mul(n, p) b = Sub(a, m)",
        ]
    )
    text = (
        f"{ROW} <float k = {{{number}}}, float p = {{{-number}}}, float one = {{1}}, "
        f"bool[4] c = {{{masked}}}> {{ a = Relu(x) {body} y = Softmax(b) }}"
    )
    proto, kept = converted(text)
    assert not any("large constant" in each for each in kept)
    for runtime in (run, run_reference):
        found = runtime(proto, {"x": ROWS})["y"]
        assert np.isfinite(found).all()
        if "1" in masked:
            expected = runtime(parse(text, opset=17), {"x": ROWS})["y"]
            np.testing.assert_allclose(found, expected, rtol=5e-3, atol=4e-3)


@pytest.mark.parametrize("seed", range(8))
def test_random_probabilities_have_finite_logarithms(seed: int) -> None:
    source = np.random.default_rng(seed)
    kind = source.choice(["Softmax", "Sigmoid"])
    between = source.choice(["q = Identity(p)", "q = Mul(p, h)", "q = Max(p, e)", "q = Add(p, e)"])
    text = (
        f"{ROW} <float h = {{0.5}}, float e = {{1e-7}}> "
        f"{{ r = Neg(x) p = {kind}(r) {between} y = Log(q) }}"
    )
    x = (source.uniform(0, 14, (3, 4))).astype(np.float32)
    assert_close(text, {"x": x}, role="probability", atol=3e-2)


@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("seed", range(4))
def test_random_angles_are_exact_in_few_bits(name: str, seed: int) -> None:
    """Scales, shifts and outer products of positions, up to a sine; a product of data follows."""
    source = np.random.default_rng(seed)
    steps, value = ["f = Cast<to = 1>(p)", "g = Unsqueeze(f, axis)"], "g"
    for at in range(int(source.integers(1, 4))):
        step = source.choice(["Add({}, one)", "Sub({}, half)", "Mul({}, half)", "Div({}, one)"])
        steps.append(f"v{at} = {step.format(value)}")
        value = f"v{at}"
    end = source.choice(["Sin", "Cos"])
    text = (
        "(int64[N] p, float[N,32] x) => (float[N,32] s, float[N,32] y) <int64[1] axis = {1}, "
        f"float one = {{1}}, float half = {{0.5}}> {{ {' '.join(steps)} m = MatMul({value}, k) "
        f"s = {end}(m) z = Mul(x, s) y = MatMul(z, w) }}"
    )
    proto = parse(text, opset=21)
    weights = {
        "k": source.uniform(0.01, 2, (1, 32)).astype(np.float32),
        "w": source.standard_normal((32, 32)).astype(np.float32),
    }
    proto.graph.initializer.extend(
        numpy_helper.from_array(array, key) for key, array in weights.items()
    )
    made, kept = in_few_bits(proto, name)
    assert any("MatMul unchanged: position: " in each for each in kept)
    assert any(tensor.name.startswith("w_") for tensor in made.graph.initializer)
    feeds = {"p": source.integers(1000, 4000, 7), "x": np.ones((7, 32), np.float32)}
    assert np.array_equal(run(made, feeds)["s"], run(proto, feeds)["s"])
    assert isinstance(made, onnx.ModelProto)


@pytest.mark.parametrize("seed", range(16))
def test_random_ways_from_an_epsilon_lose_nothing(seed: int) -> None:
    """Operators that keep a small number small may be between it and what is sensitive to it."""
    source = np.random.default_rng(seed)
    epsilon = float(f"{10.0 ** source.uniform(-12, -8):.4g}")
    steps, value = [f"b = {source.choice(['Add(a, e)', 'Max(a, e)'])}"], "b"
    for at in range(int(source.integers(1, 4))):
        step = source.choice(
            ["Relu({})", "Abs({})", "Elu({})", "LeakyRelu({})", "Tanh({})", "Erf({})", "Mul({}, h)",
             "ReduceMax<axes=[1], keepdims=1>({})", "ReduceMean<axes=[1], keepdims=1>({})",
             "Unsqueeze({}, z)", "Max({}, t)"]
        )  # fmt: skip
        if step.startswith("Unsqueeze"):
            steps.append(f"u{at} = {step.format(value)} v{at} = Squeeze(u{at}, z)")
        else:
            steps.append(f"v{at} = {step.format(value)}")
        value = f"v{at}"
    end = source.choice(["Log({})", "Div(x, {})", "Reciprocal({})", "Pow({}, m)"]).format(value)
    last = {"R": "y = Mul(x, r)", "P": "y = Mul(x, r)"}.get(end[0], "y = Neg(r)")
    text = (
        f"(float[N,4] x) => (float[N,M] y) <float e = {{{epsilon}}}, float t = {{1e-11}}, "
        "float h = {0.5}, float m = {-0.5}, int64[1] z = {0}> "
        f"{{ a = Relu(x) {' '.join(steps)} r = {end} {last} }}"
    )
    proto, _ = converted(text)
    for runtime in (run, run_reference):
        exact, found = (runtime(each, {"x": ROWS})["y"] for each in (parse(text, opset=17), proto))
        assert np.isfinite(found[np.isfinite(exact)]).all(), text
