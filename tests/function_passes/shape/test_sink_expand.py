import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "sink_expand"


@pytest.mark.parametrize(
    ("op", "operand"), [("Expand", "int64[2] s = {4,3}"), ("Tile", "int64[2] s = {1,3}")]
)
def test_repeated_elements_are_computed_once(op: str, operand: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[4,1] x) => (float[4,3] y) <{operand}, float c = {{2}}>"
        f" {{ g = {op}(x, s)  h = Mul(g, c)  y = Relu(h) }}",
        f"(float[4,1] x) => (float[4,3] y) <{operand}, float c = {{2}}>"
        f" {{ g = Mul(x, c)  h = Relu(g)  y = {op}(h, s) }}",
    )


def test_both_operands_may_be_the_same() -> None:
    assert_rewrites(
        PASS,
        "(float[1] x, int64[1] s) => (float[N] y) { h = Expand(x, s)  y = Mul(h, h) }",
        "(float[1] x, int64[1] s) => (float[N] y) { h = Mul(x, x)  y = Expand(h, s) }",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[1] x) => (float[4] y, float[4] z) <int64[1] s = {4}>"
         " { h = Expand(x, s)  y = Relu(h)  z = Exp(h) }",
         "the repeated elements have other consumers"),
        ("(float[] x) => (float[] y) <int64[1] s = {4}> { h = Expand(x, s)  y = Relu(h) }",
         "a rank is not known"),
        ("(float[4] x) => (float[4] y) <int64[1] s = {1}> { h = Expand(x, s)  y = Relu(h) }",
         "nothing is repeated"),
        ("(float[1] x, float[4] z) => (float[4] y) <int64[1] s = {4}>"
         " { h = Expand(x, s)  y = Add(h, z) }", "another operand is no single number"),
        ("(bool[1] x) => (float[2] y) <int64[1] s = {2}>"
         " { h = Expand(x, s)  y = Cast<to=1>(h) }", "it would move more bytes"),
    ],
)  # fmt: skip
def test_others_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_operators_whose_kernels_know_the_place_stay() -> None:
    assert_unchanged(
        PASS,
        "(float[1] x) => (float[4] y) <int64[1] s = {4}> { h = Expand(x, s)  y = Exp(h) }",
    )
