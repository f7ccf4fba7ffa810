import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "decompose_gemm"
CONSTANTS = ("float p = {0.5}", "float q = {2.0}")


def graph(nodes: str, a: str = "float[N,2]") -> str:
    given = spoken_of(nodes, *CONSTANTS)
    return f"({a} a, float[2,3] b, float[3] c) => (float[N,3] y) {given} {{ {nodes} }}"


@pytest.mark.parametrize(
    ("gemm", "parts"),
    [
        ("Gemm(a, b, c)", "m = MatMul(a, b) y = Add(m, c)"),
        ("Gemm(a, b)", "y = MatMul(a, b)"),
        ("Gemm<beta=0.0>(a, b, c)", "y = MatMul(a, b)"),
        (
            "Gemm<alpha=0.5, beta=2.0>(a, b, c)",
            "m = MatMul(a, b) n = Mul(m, p) d = Mul(c, q) y = Add(n, d)",
        ),
    ],
)
def test_one_after_the_other(gemm: str, parts: str) -> None:
    assert_rewrites(PASS, graph(f"y = {gemm}"), graph(parts))


def test_factors_are_turned_round() -> None:
    assert_rewrites(
        PASS,
        graph("y = Gemm<transA=1>(a, b, c)", "float[2,N]"),
        graph("t = Transpose<perm=[1,0]>(a) m = MatMul(t, b) y = Add(m, c)", "float[2,N]"),
    )


def test_integers_stay() -> None:
    text = graph("y = Gemm(a, b, c)").replace("float", "int32")
    assert_unchanged(PASS, text, because="the factors are not floats")
