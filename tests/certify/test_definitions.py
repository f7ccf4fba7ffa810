"""Operators of the standard over the reals are what the standard says."""

import pytest

from tests.certify.test_checker import proof

F = "(float[2,4] x) => (float[2,4] y)"
PAIR = "(float[2,3] x, float[4,3] z) => (float[4,2] y)"
EQUAL = {
    "HardSwish": (
        f"{F} <float t = {{3}}, float z = {{0}}, float s = {{6}}> {{ a = Add(x, t)"
        "  c = Clip(a, z, s)  m = Mul(x, c)  y = Div(m, s) }",
        f"{F} {{ y = HardSwish(x) }}",
    ),
    "Softmax": (
        f"""{F} <int64[1] a = {{1}}> {{ m = ReduceMax(x, a)  d = Sub(x, m)  e = Exp(d)
            s = ReduceSum(e, a)  y = Div(e, s) }}""",
        f"{F} {{ y = Softmax(x) }}",
    ),
    "Mish": (f"{F} {{ s = Softplus(x)  t = Tanh(s)  y = Mul(t, x) }}", f"{F} {{ y = Mish(x) }}"),
    "a factor into a ConvTranspose": (
        """(float[1,2,2,2] x) => (float[1,2,2,2] y) <float[2,2,1,1] w = {1,2,3,4},
            float[2,1,1] s = {2,4}> { a = Mul(x, s)  y = ConvTranspose(a, w) }""",
        """(float[1,2,2,2] x) => (float[1,2,2,2] y) <float[2,2,1,1] w = {2,4,12,16}> {
            y = ConvTranspose(x, w) }""",
    ),
    "Einsum": (
        f'{PAIR} {{ y = Einsum<equation = "ij,kj->ki">(x, z) }}',
        f"{PAIR} {{ t = Transpose(x)  y = MatMul(z, t) }}",
    ),
    "a bound through a scale": (
        f"{F} <float c = {{2}}, float z = {{0}}, float o = {{6}}, float p = {{3}}> {{"
        " m = Mul(x, c)  y = Clip(m, z, o) }",
        f"{F} <float c = {{2}}, float z = {{0}}, float p = {{3}}> {{"
        " m = Clip(x, z, p)  y = Mul(m, c) }",
    ),
}  # fmt: skip
DIFFERENT = {
    "another offset": (
        f"{F} <float t = {{2}}, float z = {{0}}, float s = {{6}}> {{ a = Add(x, t)"
        "  c = Clip(a, z, s)  m = Mul(x, c)  y = Div(m, s) }",
        f"{F} {{ y = HardSwish(x) }}",
    ),
    "another axis": (
        f"""{F} <int64[1] a = {{0}}> {{ m = ReduceMax(x, a)  d = Sub(x, m)  e = Exp(d)
            s = ReduceSum(e, a)  y = Div(e, s) }}""",
        f"{F} {{ y = Softmax(x) }}",
    ),
    "a bound through a negative scale": (
        f"{F} <float c = {{-2}}, float z = {{0}}, float o = {{6}}, float p = {{3}}> {{"
        " m = Mul(x, c)  y = Clip(m, z, o) }",
        f"{F} <float c = {{-2}}, float z = {{0}}, float p = {{3}}> {{"
        " m = Clip(x, z, p)  y = Mul(m, c) }",
    ),
    "other places of a ConvTranspose": (
        """(float[1,1,2] x) => (float[1,1,3] y) <float[1,1,2] w = {1,2}> {
            y = ConvTranspose(x, w) }""",
        """(float[1,1,2] x) => (float[1,1,3] y) <float[1,1,2] w = {2,1}> {
            y = ConvTranspose(x, w) }""",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", EQUAL)
def test_what_is_equal_over_the_reals_is_proved(name: str) -> None:
    found = proof(*EQUAL[name])
    assert found.domain == "reals", found.reason


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_not_proved(name: str) -> None:
    assert not proof(*DIFFERENT[name]).is_proved
