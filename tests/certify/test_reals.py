"""Over the reals: what passes fold into weights is proved, with a bound on the rounding."""

import pytest

from tests.certify.test_checker import proof

XZ = "(float[2,3] x, float[2,3] z) => (float[2,3] y)"
CONV = "(float[N,2,4,4] x) => (float[N,2,4,4] y)"
BATCH_NORM = f"""{CONV} <float[2,2,1,1] w = {{1,2,3,4}}, float[2] b = {{1,2}}, float[2] s = {{3,5}},
    float[2] h = {{1,7}}, float[2] m = {{0.5,0.25}}, float[2] v = {{1,4}}> {{
    c = Conv(x, w, b)  y = BatchNormalization<epsilon = 0.0>(c, s, h, m, v) }}"""
EQUAL = {
    "a factor of a sum": (
        f"{XZ} <float c = {{3}}> {{ a = Add(x, z)  y = Mul(a, c) }}",
        f"{XZ} <float c = {{3}}> {{ a = Mul(x, c)  b = Mul(z, c)  y = Add(a, b) }}",
    ),
    "a reciprocal that rounds": (
        f"{XZ} <float c = {{3}}> {{ y = Div(x, c) }}",
        f"{XZ} <float c = {{0.33333334}}> {{ y = Mul(x, c) }}",
    ),
    "a factor folded into a weight": (
        """(float[N,3] x) => (float[N,2] y) <float[3,2] w = {1,2,3,4,5,6}, float c = {0.1}> {
            p = MatMul(x, w)  y = Mul(p, c) }""",
        """(float[N,3] x) => (float[N,2] y) <float[3,2] w = {0.1,0.2,0.3,0.4,0.5,0.6}> {
            y = MatMul(x, w) }""",
    ),
    "MatMul and Add as Gemm": (
        """(float[N,3] x) => (float[N,2] y) <float[3,2] w = {1,2,3,4,5,6}, float[2] b = {7,8}> {
            p = MatMul(x, w)  y = Add(p, b) }""",
        """(float[N,3] x) => (float[N,2] y) <float[2,3] w = {1,3,5,2,4,6}, float[2] b = {7,8}> {
            y = Gemm<transB = 1>(x, w, b) }""",
    ),
    "a batch norm in a convolution": (
        BATCH_NORM,
        f"""{CONV} <float[2,2,1,1] w = {{3,6,7.5,10}}, float[2] b = {{2.5,11.375}}> {{
            y = Conv(x, w, b) }}""",
    ),
    "a factor of one operand": (
        """(float[1,2,4] x, float[1,2,4] z) => (float[1,2,2] y) <float c = {0.3}> {
            t = Transpose<perm = [0,2,1]>(z)  p = MatMul(x, t)  y = Mul(p, c) }""",
        """(float[1,2,4] x, float[1,2,4] z) => (float[1,2,2] y) <float c = {0.3}> {
            s = Mul(x, c)  t = Transpose<perm = [0,2,1]>(z)  y = MatMul(s, t) }""",
    ),
    "Gelu": (
        """(float[4] x) => (float[4] y) <float r = {1.4142135}, float o = {1}, float h = {0.5}> {
            d = Div(x, r)  e = Erf(d)  a = Add(e, o)  m = Mul(x, a)  y = Mul(m, h) }""",
        "(float[4] x) => (float[4] y) { y = Gelu(x) }",
    ),
    "layer normalization": (
        """(float[2,4] x) => (float[2,4] y) <float e = {1e-5}, int64[1] a = {-1}, float k = {2},
            float[4] s = {1,2,3,4}, float[4] b = {5,6,7,8}> {
            m = ReduceMean(x, a)  d = Sub(x, m)  q = Pow(d, k)  v = ReduceMean(q, a)
            w = Add(v, e)  r = Sqrt(w)  n = Div(d, r)  t = Mul(n, s)  y = Add(t, b) }""",
        """(float[2,4] x) => (float[2,4] y) <float[4] s = {1,2,3,4}, float[4] b = {5,6,7,8}> {
            y = LayerNormalization(x, s, b) }""",
    ),
    "a factor through a Relu": (
        f"{XZ} <float c = {{3}}> {{ r = Relu(x)  y = Mul(r, c) }}",
        f"{XZ} <float c = {{3}}> {{ m = Mul(x, c)  y = Relu(m) }}",
    ),
}
DIFFERENT = {
    "another factor": (
        f"{XZ} <float c = {{3}}> {{ y = Div(x, c) }}",
        f"{XZ} <float c = {{0.33334}}> {{ y = Mul(x, c) }}",
    ),
    "another bias": (
        BATCH_NORM,
        f"""{CONV} <float[2,2,1,1] w = {{3,6,7.5,10}}, float[2] b = {{2.5,11.38}}> {{
            y = Conv(x, w, b) }}""",
    ),
    "another weight": (
        BATCH_NORM,
        f"""{CONV} <float[2,2,1,1] w = {{3,6,7.5,10.001}}, float[2] b = {{2.5,11.375}}> {{
            y = Conv(x, w, b) }}""",
    ),
    "a negative factor through a Relu": (
        f"{XZ} <float c = {{-3}}> {{ r = Relu(x)  y = Mul(r, c) }}",
        f"{XZ} <float c = {{-3}}> {{ m = Mul(x, c)  y = Relu(m) }}",
    ),
    "Tanh for Erf": (
        """(float[4] x) => (float[4] y) <float r = {1.4142135}, float o = {1}, float h = {0.5}> {
            d = Div(x, r)  e = Tanh(d)  a = Add(e, o)  m = Mul(x, a)  y = Mul(m, h) }""",
        "(float[4] x) => (float[4] y) { y = Gelu(x) }",
    ),
    "a narrow Cast": (
        "(float[4] x) => (float[4] y) { h = Cast<to = 10>(x)  y = Cast<to = 1>(h) }",
        "(float[4] x) => (float[4] y) { y = Identity(x) }",
    ),
    "a loop whose state is scaled": (
        """(float[2] x, int64 n) => (float[2] y) <bool c = {1}, float f = {2}> {
            y = Loop(n, c, x)<body = b (int64 i, bool k, float[2] s) => (bool k, float[2] t) {
                t = Mul(s, f) }> }""",
        """(float[2] x, int64 n) => (float[2] y) <bool c = {1}, float f = {3}> {
            y = Loop(n, c, x)<body = b (int64 i, bool k, float[2] s) => (bool k, float[2] t) {
                t = Mul(s, f) }> }""",
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_over_the_reals_is_proved(name: str) -> None:
    found = proof(*EQUAL[name])
    assert found.domain == "reals", found.reason
    assert found.bound < 1


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_not_proved(name: str) -> None:
    assert not proof(*DIFFERENT[name]).domain


def test_the_bound_of_rounded_constants_is_named() -> None:
    assert 0 < proof(*EQUAL["a reciprocal that rounds"]).bound <= 0.5
    assert proof(*EQUAL["a factor of a sum"]).bound == 0
