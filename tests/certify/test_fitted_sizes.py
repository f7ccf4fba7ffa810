"""Dims of different names that have one size in each run: sizes are tried at which they fit."""

import pytest

from tests.certify.test_checker import proof

TWO = "(float[N,3] x, float[M,3] z) => (y)"
PAST = "(float[B,P,4] p, float[B,S,4] k, float[B,T,1] m) => (y)"
DOT = "(float[N,3] x, float[M,2] z) => (y)"
ALIKE = {
    "operands of a sum": (f"{TWO} {{ y = Add(x, z) }}", f"{TWO} {{ y = Add(z, x) }}"),
    "a sum of sizes": (
        f"{PAST} {{ c = Concat<axis = 1>(p, k)  y = Mul(c, m) }}",
        f"{PAST} {{ c = Concat<axis = 1>(p, k)  y = Mul(m, c) }}",
    ),
    "operands of a product": (
        f"{DOT} {{ n = Neg(x)  m = Neg(n)  t = Transpose(m)  y = MatMul(t, z) }}",
        f"{DOT} {{ t = Transpose(x)  y = MatMul(t, z) }}",
    ),
    "parts of a Concat": (
        f"{TWO} {{ c = Concat<axis = 1>(x, z)  n = Neg(c)  y = Neg(n) }}",
        f"{TWO} {{ y = Concat<axis = 1>(x, z) }}",
    ),
    "a Reshape": (
        f"{TWO} <int64[2] s = {{3,8}}> {{ r = Reshape(x, s)  n = Neg(r)  y = Neg(n) }}",
        f"{TWO} <int64[2] s = {{3,8}}> {{ y = Reshape(x, s) }}",
    ),
}
OTHERS = {
    "equal at sizes of 1 alone": (
        f"{TWO} {{ y = Add(x, z) }}",
        f"{TWO} <int64[1] a = {{0}}, int64[1] b = {{1}}> {{ f = Slice(z, a, b)  y = Add(x, f) }}",
    ),
    "other operands": (f"{TWO} {{ y = Sub(x, z) }}", f"{TWO} {{ y = Sub(z, x) }}"),
    "another part": (
        f"{PAST} {{ c = Concat<axis = 1>(p, k)  y = Mul(c, m) }}",
        f"{PAST} {{ c = Concat<axis = 1>(k, p)  y = Mul(c, m) }}",
    ),
}


@pytest.mark.parametrize("name", ALIKE)
def test_what_fits_at_some_sizes_is_proved_at_such(name: str) -> None:
    found = proof(*ALIKE[name])
    assert found.is_proved, found.reason
    assert min(found.sizes[0].values()) > 1


@pytest.mark.parametrize("name", OTHERS)
def test_what_differs_at_sizes_that_fit_is_not_proved(name: str) -> None:
    found = proof(*OTHERS[name])
    assert found.differs is not None
    assert max(found.differs[1].values()) > 1


def test_two_names_get_one_size() -> None:
    sizes = proof(*ALIKE["operands of a sum"]).sizes[0]
    assert sizes["N"] == sizes["M"] > 1
    sizes = proof(*ALIKE["a sum of sizes"]).sizes[0]
    assert sizes["P"] + sizes["S"] == sizes["T"]


def test_no_sizes_fit() -> None:
    text = "(float[N,3] x, float[M,2] z) => (y) {{ y = Add({}) }}"
    found = proof(text.format("x, z"), text.format("z, x"))
    assert not found.is_proved
    assert found.differs is None
