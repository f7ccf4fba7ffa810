import numpy as np
import pytest

from tiered import Model, get_pass, optimize
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_pow_with_roots"


@pytest.mark.parametrize(
    ("exponent", "nodes"),
    [
        ("0.5", "y = Sqrt(a)"),
        ("-1", "y = Reciprocal(a)"),
        ("-0.5", "s = Sqrt(a) y = Reciprocal(s)"),
        ("4", "s = Mul(a, a) y = Mul(s, s)"),
    ],
)
def test_roots_and_reciprocals(exponent: str, nodes: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[N] x) => (float[N] y) <float p = {{{exponent}}}, float o = {{1}}>"
        " { b = Abs(x) a = Add(b, o) y = Pow(a, p) }",
        f"(float[N] x) => (float[N] y) <float o = {{1}}> {{ b = Abs(x) a = Add(b, o) {nodes} }}",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[N] x) => (float[N] y) <float p = {2.5}> { y = Pow(x, p) }", "the exponent is 2.5"),
        (
            "(float[2] x) => (float[2] y) <float[2] p = {0.5,4}> { y = Pow(x, p) }",
            "the exponent is not a scalar",
        ),
        (
            "(int32[2] x) => (int32[2] y) <int32 p = {4}> { y = Pow(x, p) }",
            "the float dtype of x may be unsupported",
        ),
        ("(float[2] x) => (float[2] y) <float p = {0.5}> { y = Pow(x, p) }", "x may be -Inf or"),
        (
            "(float[2] x) => (float[2] y) <float p = {-0.5}> { a = Relu(x) y = Pow(a, p) }",
            "x may be -Inf or -0.0",
        ),
        (
            """(float[2] x, float[2] z) => (float[2] y) <float p = {0.5}> {
            a = Abs(x) b = Relu(z) c = Div(a, b) y = Pow(c, p) }""",
            "x may be -Inf or -0.0",
        ),
        (
            """(float[2,0] x) => (float[2,1] y) <float p = {0.5}, int64[1] one = {1}> {
            a = Abs(x) b = ReduceMax(a, one) y = Pow(b, p) }""",
            "x may be -Inf or -0.0",
        ),
    ],
)
def test_it_declines(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


@pytest.mark.parametrize(
    "nodes",
    [
        "a = Mul(x, x) b = ReduceMean(a) v = Add(b, e)",
        "a = Exp(x) v = Div(a, e)",
        "a = Abs(x) v = Max(a, e)",
        "v = Max(x, e)",
        "v = Clip(x, e)",
        "a = Pow(x, two) v = ReduceSum(a)",
        "a = Neg(x) b = Relu(a) v = Add(b, e)",
    ],
)
def test_issue_40_roots_of_what_is_never_negative(nodes: str) -> None:
    text = f"(float[4] x) => (float[?] y) <float e = {{0.1}}, float two = {{2}}, float p = {{-0.5}}> {{ {nodes} y = Pow(v, p) }}"
    model = Model.from_proto(parse(text))
    get_pass(PASS).apply(model)
    assert [node.op_type for node in model.main.nodes][-2:] == ["Sqrt", "Reciprocal"]


def test_issue_40_the_root_of_minus_infinity_is_one() -> None:
    text = "(float[2] x) => (float[2] y) <float p = {0.5}> { y = Pow(x, p) }"
    feeds = {"x": np.array([-np.inf, 4], np.float32)}
    assert run(optimize(parse(text), opt_level=4), feeds)["y"].tolist() == [np.inf, 2]
