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
    "FusedConv with limits": (
        """(float[1,2,4,4] x) => (float[1,2,4,4] y) <float[2,2,1,1] w = {1,2,3,4},
            float l = {-1}, float h = {6}> { c = Conv(x, w)  y = Clip(c, l, h) }""",
        """(float[1,2,4,4] x) => (float[1,2,4,4] y) <float[2,2,1,1] w = {1,2,3,4}> {
            y = com.microsoft.FusedConv<activation = "Clip", activation_params = [-1.0, 6.0]>(x, w)
        }""",
    ),
    "RotaryEmbedding": (
        """(float[1,2,3,4] x) => (float[1,2,3,4] y) <int64[1,3] p = {0,1,2},
            float[5,2] c = {1,2,3,4,5,6,7,8,9,10}, float[5,2] s = {10,9,8,7,6,5,4,3,2,1},
            int64[2] h = {2,2}> {
            u = Gather<axis = 0>(c, p)  v = Gather<axis = 0>(s, p)
            a, b = Split<axis = 3>(x, h)  m = Mul(a, u)  n = Mul(b, v)  k = Sub(m, n)
            q = Mul(b, u)  r = Mul(v, a)  l = Add(q, r)  y = Concat<axis = 3>(k, l) }""",
        """(float[1,2,3,4] x) => (float[1,2,3,4] y) <int64[1,3] p = {0,1,2},
            float[5,2] c = {1,2,3,4,5,6,7,8,9,10}, float[5,2] s = {10,9,8,7,6,5,4,3,2,1}> {
            y = com.microsoft.RotaryEmbedding(x, p, c, s) }""",
    ),
    "MultiHeadAttention": (
        """(float[2,3,4] q, float[2,3,4] k, float[2,3,4] v) => (float[2,3,4] y)
            <int64[4] h = {0,0,2,2}, int64[3] w = {0,0,4}, float c = {0.25}> {
            a = Reshape(q, h)  b = Reshape(k, h)  d = Reshape(v, h)
            e = Transpose<perm = [0,2,1,3]>(a)  f = Transpose<perm = [0,2,3,1]>(b)
            g = Transpose<perm = [0,2,1,3]>(d)  s = Mul(e, c)  m = MatMul(s, f)
            p = Softmax(m)  o = MatMul(p, g)  t = Transpose<perm = [0,2,1,3]>(o)
            y = Reshape(t, w) }""",
        """(float[2,3,4] q, float[2,3,4] k, float[2,3,4] v) => (float[2,3,4] y) {
            y = com.microsoft.MultiHeadAttention<num_heads = 2, scale = 0.25>(q, k, v) }""",
    ),
    "QLinearAdd": (
        """(uint8[2] x, uint8[2] z) => (uint8[2] y)
            <float s = {0.5}, float t = {0.25}, float u = {2}, uint8 a = {3}, uint8 b = {7}> {
            p = DequantizeLinear(x, s, a)  q = DequantizeLinear(z, t, b)
            r = Add(p, q)  y = QuantizeLinear(r, u, a) }""",
        """(uint8[2] x, uint8[2] z) => (uint8[2] y)
            <float s = {0.5}, float t = {0.25}, float u = {2}, uint8 a = {3}, uint8 b = {7}> {
            y = com.microsoft.QLinearAdd(x, s, a, z, t, b, u, a) }""",
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
        ("FusedConv with limits", "6.0", "5.0"),
        ("FusedConv with limits", '"Clip"', '"Softplus"'),
        ("QuickGelu", "QuickGelu(x)", "QuickGelu<alpha = 1.7>(x)"),
        ("RotaryEmbedding", "(x, p, c, s)", "(x, p, s, c)"),
        ("MultiHeadAttention", "scale = 0.25", "scale = 0.3"),
        ("QLinearAdd", "z, t, b, u", "z, t, a, u"),
    ],
)
def test_another_attribute_is_not_proved(name: str, right: str, wrong: str) -> None:
    before, after = EQUAL[name]
    assert not proof(before, after.replace(right, wrong)).domain
