import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "factorize"
CONSTANTS = (
    *("float a = {3}", "float b = {3}", "float c = {2}", "float[2] d = {3,3}", "float z = {0}"),
)


def graph(nodes: str, out: str = "float[2] o") -> str:
    return f"(float[2] x, float[2] y) => ({out}) {spoken_of(nodes, *CONSTANTS)} {{ {nodes} }}"


@pytest.mark.parametrize("kind", ["Add", "Sub"])
@pytest.mark.parametrize("step", ["Mul", "Div"])
def test_one_product_after_the_sum(kind: str, step: str) -> None:
    assert_rewrites(
        PASS,
        graph(f"s = {step}(x, a) t = {step}(y, b) o = {kind}(s, t)"),
        graph(f"s = {kind}(x, y) o = {step}(s, a)"),
    )


def test_operands_that_broadcast() -> None:
    assert_rewrites(
        PASS,
        "(float[2,1] x, float[3] y) => (float[2,3] o) <float a = {3}>"
        " { s = Mul(a, x) t = Mul(y, a) o = Add(s, t) }",
        "(float[2,1] x, float[3] y) => (float[2,3] o) <float a = {3}>"
        " { s = Add(x, y) o = Mul(s, a) }",
    )


@pytest.mark.parametrize(
    ("nodes", "because"),
    [
        ("s = Mul(x, a) o = Add(s, y)", "an operand is not scaled by a constant"),
        ("s = Mul(x, a) t = Mul(y, c) o = Add(s, t)", "the factors differ"),
        ("s = Mul(x, a) t = Div(y, a) o = Add(s, t)", "the factors differ"),
        ("s = Mul(x, a) t = Mul(y, d) o = Add(s, t)", "the factors differ"),
        ("s = Mul(x, z) t = Mul(y, z) o = Add(s, t)", "a factor is 0 or not finite"),
        (
            "s = Mul(x, a) t = Mul(y, a) u = Add(s, t) v = Relu(s) o = Add(u, v)",
            "a scaled operand has other consumers",
        ),
    ],
)
def test_what_stays(nodes: str, because: str) -> None:
    assert_unchanged(PASS, graph(nodes), because=because)


def test_integers_may_wrap() -> None:
    assert_unchanged(
        PASS,
        "(int32[2] x, int32[2] y) => (int32[2] o) <int32 a = {3}>"
        " { s = Mul(x, a) t = Mul(y, a) o = Add(s, t) }",
        because="the constant is not a float",
    )
