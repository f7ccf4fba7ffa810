import pytest

from tiered.testing import assert_rewrites, assert_unchanged

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
    ],
)
def test_it_declines(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
