"""Fused operators of com.microsoft are what their definitions say."""

import pytest

from tests.certify.test_checker import proof

X4 = "(float[4] x, float[4] b) => (float[4] y)"
PAIR = "(float[2,4] x, float[2,4] z) => (float[2,2] y)"
EQUAL = {
    "BiasGelu": (
        f"""{X4} <float r = {{1.4142135}}, float o = {{1}}, float h = {{0.5}}> {{
            q = Add(x, b)  d = Div(q, r)  e = Erf(d)
            a = Add(e, o)  m = Mul(q, a)  y = Mul(m, h) }}""",
        f"{X4} {{ y = com.microsoft.BiasGelu(x, b) }}",
    ),
    "FusedMatMul": (
        f"{PAIR} <float c = {{0.3}}> {{ t = Transpose(z)  p = MatMul(x, t)  y = Mul(p, c) }}",
        f"{PAIR} {{ y = com.microsoft.FusedMatMul<transB = 1, alpha = 0.3>(x, z) }}",
    ),
    "FusedConv": (
        """(float[1,2,4,4] x) => (float[1,2,4,4] y) <float[2,2,1,1] w = {1,2,3,4}> {
            c = Conv(x, w)  y = Relu(c) }""",
        """(float[1,2,4,4] x) => (float[1,2,4,4] y) <float[2,2,1,1] w = {1,2,3,4}> {
            y = com.microsoft.FusedConv<activation = "Relu">(x, w) }""",
    ),
    "QuickGelu": (
        f"{X4} <float c = {{1.702}}> {{ m = Mul(x, c)  s = Sigmoid(m)  y = Mul(x, s) }}",
        f"{X4} {{ y = com.microsoft.QuickGelu(x) }}",
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_a_fused_operator_is_its_definition(name: str) -> None:
    found = proof(*EQUAL[name])
    assert found.domain == "reals", found.reason
    assert "definition" in found.axioms


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("FusedMatMul", "alpha = 0.3", "alpha = 0.31"),
        ("FusedConv", '"Relu"', '"Tanh"'),
        ("QuickGelu", "QuickGelu(x)", "QuickGelu<alpha = 1.7>(x)"),
    ],
)
def test_another_attribute_is_not_proved(name: str, right: str, wrong: str) -> None:
    before, after = EQUAL[name]
    assert not proof(before, after.replace(right, wrong)).domain
