"""Function bodies of operators neither cancel nor overflow where the operator's kernel does not."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser, printer

from tiered import Model, optimize
from tiered.analysis.legalization.legalization_sources import FunctionBody
from tiered.graph.queries.function_body import function_body
from tiered.graph.queries.stable_body import stabilized
from tiered.runtime import run
from tiered.support.numerics import Numerics
from tiered.testing import parse

OFFSETS = (0, 100, 1_000, 1e4)


def spread(*shape: int, offset: float = 0) -> Any:
    return np.random.default_rng(3).standard_normal(shape) + offset


def legalized(text: str, opset: int = 21) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Return a model of one node, and the same with the function body of the node."""
    before = parse(text, opset=opset)
    model = Model.from_proto(before)
    assert FunctionBody(Numerics.REASSOCIATING).apply(model.main.nodes[0]) is None
    return before, model.to_proto()


def outputs(model: onnx.ModelProto, x: Any, **feeds: Any) -> dict[str, Any]:
    return run(model, {"x": x.astype(np.float32), **feeds})


ONES = {"s": np.ones(4, np.float32)}


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize("opset", [17, 21])
def test_layer_norm_with_its_statistics(offset: float, opset: int) -> None:
    head = "(float[N,64] x, float[64] s) => (float[N,64] y, float[N,1] m, float[N,1] i)"
    _, after = legalized(f"{head} {{ y, m, i = LayerNormalization(x, s) }}", opset)
    x = spread(3, 64, offset=offset).astype(np.float32)
    wide = x.astype(np.float64)
    mean, deviation = wide.mean(1, keepdims=True), np.sqrt(wide.var(1, keepdims=True) + 1e-5)
    found = outputs(after, x, s=np.ones(64, np.float32))
    # A last place of x is this much of a deviation.
    near = 4 * max(offset, 1) * 2e-7
    np.testing.assert_allclose(found["y"], (wide - mean) / deviation, atol=near)
    np.testing.assert_allclose(found["m"], mean, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(found["i"], 1 / deviation, rtol=1e-5)


@pytest.mark.parametrize("offset", OFFSETS)
@pytest.mark.parametrize(
    "text",
    [
        "(float[N,4,5,5] x, float[4] s) => (y) { y = MeanVarianceNormalization(x) }",
        "(float[N,4,5,5] x, float[4] s) => (y) { y = Softmax<axis=1>(x) }",
        "(float[N,4,5,5] x, float[4] s) => (y) { y = LogSoftmax<axis=2>(x) }",
        "(float[N,4,5,5] x, float[4] s) => (y) { y = ReduceLogSumExp(x) }",
        "(float[N,4,5,5] x, float[4] s) => (y) { y = ReduceL2(x) }",
        "(float[N,4,5,5] x, float[4] s) => (y) { y = Softplus(x) }",
        "(float[N,4,5,5] x, float[4] s) => (y) { y = Mish(x) }",
    ],
)
def test_bodies_agree_with_the_kernels_at_an_offset(text: str, offset: float) -> None:
    before, after = legalized(text, 22)
    if "ReduceLogSumExp" in text and offset > 700:
        pytest.skip("its body computes with doubles, which overflow; lower_logsumexp does not")
    for sign in (1, -1):
        x = sign * spread(2, 4, 5, 5, offset=offset)
        expected, found = (outputs(model, x, **ONES)["y"] for model in (before, after))
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=4 * max(offset, 1) * 3e-7)


@pytest.mark.parametrize("offset", OFFSETS)
def test_group_norm_of_unknown_sizes(offset: float) -> None:
    """onnxruntime runs ONNX's body, which cancels, so that numpy says what is right."""
    text = "(float[N,C,25] x, float[4] s) => (y) { y = GroupNormalization<num_groups=2>(x, s, s) }"
    _, after = legalized(text)
    x = spread(2, 4, 25, offset=offset).astype(np.float32)
    groups = x.astype(np.float64).reshape(2, 2, 50)
    normed = (groups - groups.mean(2, keepdims=True)) / groups.std(2, keepdims=True)
    found = outputs(after, x, **ONES)["y"]
    near = 4 * max(offset, 1) * 3e-7 + 5e-5  # epsilon is left out of the expected numbers
    np.testing.assert_allclose(found, normed.reshape(2, 4, 25) + 1, atol=near)


def test_softplus_of_large_and_special_numbers() -> None:
    before, after = legalized("(float[N] x) => (y) { y = Softplus(x) }", 22)
    x = np.array([-1e4, -100, -20, -1, -0.0, 0, 1, 88, 89, 1e4, 3e38, np.inf, -np.inf, np.nan])
    expected, found = (outputs(model, x)["y"] for model in (before, after))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


def test_a_body_without_such_a_part_stays() -> None:
    model = Model.from_proto(parse("(float[2,3] x) => (y) { y = Softmax(x) }"))
    operators = [node.op_type for node in function_body(model.main.nodes[0]).node]
    assert operators == ["Constant", "ReduceMax", "Sub", "Exp", "ReduceSum", "Div"]


def test_a_target_without_layer_norm_gets_the_stable_form(tmp_path: Path) -> None:
    head = "(float[N,64] x, float[64] s) => (float[N,64] y, float[N,1] m)"
    profile = tmp_path / "plain.toml"
    profile.write_text('extends = "portable"\n[operators]\nLayerNormalization = false\n')
    text = f"{head} {{ y, m = LayerNormalization(x, s) }}"
    made = optimize(parse(text), backend=str(profile), opt_level=3, verify=True)
    assert all(node.op_type != "LayerNormalization" for node in made.graph.node)
    x, ones = spread(2, 64, offset=1_000).astype(np.float32), np.ones(64, np.float32)
    wide = x.astype(np.float64)
    expected = (wide - wide.mean(1, keepdims=True)) / wide.std(1, keepdims=True)
    np.testing.assert_allclose(outputs(made, x, s=ones)["y"], expected, atol=1e-3)


VARIANCE = """
    square = Mul(x, x)
    squares = ReduceMean<keepdims: int = 1>(square, axes)
    mean = ReduceMean<keepdims: int = 1>(x, axes)
    other = Mul(mean, mean)
    y = Sub(squares, other)"""

SOFTPLUS = """
    one = Constant<value: tensor = float {1}>()
    cast = CastLike(one, x)
    exp = Exp(x)
    total = Add(exp, cast)
    y = Log(total)"""


def body_of(nodes: str) -> onnx.FunctionProto:
    head = '<opset_import: ["" : 21], domain: "test"> f (x, axes) => (y)'
    return parser.parse_function(f"{head} {{{nodes}\n}}")


def nodes_of(body: onnx.FunctionProto) -> list[str]:
    return [line.strip() for line in printer.to_text(body).splitlines() if " = " in line]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("", ""),
        ("square = Mul(x, x)", "two = Constant<value: tensor = float {2}>() square = Pow(x, two)"),
        (
            "other = Mul(mean, mean)",
            "two = Constant<value: tensor = float[1] {2}>() other = Pow(mean, two)",
        ),
    ],
)
def test_a_variance_is_that_of_the_differences(old: str, new: str) -> None:
    body = body_of(VARIANCE.replace(old, new) if old else VARIANCE)
    stabilized(body)
    assert [each for each in nodes_of(body) if "Constant" not in each] == [
        "mean = ReduceMean <keepdims: int = 1> (x, axes)",
        "y_apart = Sub (x, mean)",
        "y_squares = Mul (y_apart, y_apart)",
        "y = ReduceMean <keepdims: int = 1> (y_squares, axes)",
    ]


@pytest.mark.parametrize("cast", ["CastLike(one, x)", "Cast<to: int = 1>(one)", ""])
def test_a_softplus_is_that_of_the_size(cast: str) -> None:
    text = SOFTPLUS.replace("CastLike(one, x)", cast)
    if not cast:
        text = SOFTPLUS.replace("    cast = CastLike(one, x)\n", "").replace("cast", "one")
    body = body_of(text)
    stabilized(body)
    one = "cast" if cast else "one"
    assert nodes_of(body)[2 if cast else 1 :] == [
        "y_size = Abs (x)",
        "y_below = Neg (y_size)",
        "y_exp = Exp (y_below)",
        f"y_total = Add (y_exp, {one})",
        "y_log = Log (y_total)",
        f"y_zero = Sub ({one}, {one})",
        "y_above = Max (x, y_zero)",
        "y = Add (y_above, y_log)",
    ]


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (VARIANCE, "Sub(squares, other)", "Add(squares, other)"),
        (VARIANCE, "Sub(squares, other)", "Sub(other, squares)"),
        (VARIANCE, "Sub(squares, other)", "Sub(x, other)"),
        (VARIANCE, "squares = ReduceMean", "squares = ReduceSum"),
        (VARIANCE, " mean = ReduceMean", " mean = ReduceMax"),
        (VARIANCE, "mean = ReduceMean<keepdims: int = 1>(x,", "mean = ReduceMean(x,"),
        (VARIANCE, "ReduceMean<keepdims: int = 1>(x, axes)", "ReduceMean<keepdims: int = 1>(x)"),
        (VARIANCE, "ReduceMean<keepdims: int = 1>(x,", "ReduceMean<keepdims: int = 1>(axes,"),
        (VARIANCE, "square = Mul(x, x)", "square = Mul(x, axes)"),
        (VARIANCE, "square = Mul(x, x)", "square = Add(x, x)"),
        (
            VARIANCE,
            "square = Mul(x, x)",
            "two = Constant<value: tensor = float {3}>() square = Pow(x, two)",
        ),
        (
            VARIANCE,
            "square = Mul(x, x)",
            "two = Constant<value: tensor = float[2] {2, 2}>() square = Pow(x, two)",
        ),
        (
            VARIANCE,
            "square = Mul(x, x)",
            "two = Constant<value_float: float = 2.0>() square = Pow(x, two)",
        ),
        (VARIANCE, "square = Mul(x, x)", "square = Pow(x, axes)"),
        (VARIANCE, "other = Mul(mean, mean)", "other = Mul(mean, x)"),
        (SOFTPLUS, "Log(total)", "Sqrt(total)"),
        (SOFTPLUS, "Log(total)", "Log(x)"),
        (SOFTPLUS, "Add(exp, cast)", "Sub(exp, cast)"),
        (SOFTPLUS, "Exp(x)", "Abs(x)"),
        (SOFTPLUS, "float {1}", "float {2}"),
        (SOFTPLUS, "CastLike(one, x)", "Neg(one)"),
        (SOFTPLUS, "Add(exp, cast)", "Add(exp, axes)"),
    ],
)
def test_a_form_that_is_neither_stays(text: str, old: str, new: str) -> None:
    assert old in text
    body = body_of(text.replace(old, new))
    before = nodes_of(body)
    stabilized(body)
    assert nodes_of(body) == before
