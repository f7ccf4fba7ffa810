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
    assert_unchanged(PASS, text, because="the factors are no floats")


def test_a_side_that_a_call_decides_stays() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "local": 1]>
      g (float[2,2] x) => (float[2,2] y) { y = local.f<side=1>(x) }
      <domain: "local", opset_import: ["": 21]>
      f <side> (x) => (y) { y = Gemm<transB: int = @side>(x, x) }"""
    assert_unchanged(PASS, text, because="the call of the function decides")
