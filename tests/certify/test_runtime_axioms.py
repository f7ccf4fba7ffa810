"""What onnxruntime grants, measured: the axioms of the runtime on special and random numbers."""

from typing import Any

import numpy as np
import pytest

from tiered.runtime.session import Session
from tiered.testing import parse

Array = np.ndarray[Any, Any]
SPECIAL = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1.0, 1.0, 3.4e38], np.float32)


def numbers(count: int = 4_000) -> Array:
    source = np.random.default_rng(0)
    drawn = source.standard_normal(count) * 10.0 ** source.integers(-30, 30, count)
    return np.concatenate([SPECIAL, drawn.astype(np.float32)])


def ran(text: str, *inputs: Array) -> Array:
    session = Session(parse(text))
    (made,) = session.run(dict(zip("xz", inputs, strict=False))).values()
    return np.asarray(made)


def same(one: Array, other: Array) -> bool:
    """Tell whether arrays have the same bits; all NaNs count as one."""
    bits = f"u{one.dtype.itemsize}"
    return bool(((one.view(bits) == other.view(bits)) | (np.isnan(one) & np.isnan(other))).all())


F = "(float[N] x) => (float[N] y)"


@pytest.mark.parametrize(("low", "high"), [(0.0, 6.0), (-0.0, 6.0), (-1.0, 0.0), (2.0, 2.0)])
def test_clip_keeps_equals(low: float, high: float) -> None:
    x = numbers()
    found = ran(f"{F} <float l = {{{low}}}, float h = {{{high}}}> {{ y = Clip(x, l, h) }}", x)
    bounds = np.float32(low), np.float32(high)
    expected = np.where(x < bounds[0], bounds[0], np.where(x > bounds[1], bounds[1], x))
    assert same(found, expected)


def test_an_absent_bound_is_the_furthest_finite_number() -> None:
    x, most = numbers(), np.finfo(np.float32).max
    expected = np.where(x > most, most, np.where(x < -most, -most, x))
    assert same(ran(f"{F} {{ y = Clip(x) }}", x), expected)
    assert same(ran(f"{F} {{ y = Relu(x) }}", x), np.where(x < 0, np.float32(0), x))


@pytest.mark.parametrize("op", ["Max", "Min"])
def test_no_zeros_meet(op: str) -> None:
    x = numbers()
    text = "(float[N] x, float[] z) => (float[N] y) {{ y = {}({}) }}"
    for bound in (np.array(2, np.float32), np.array(-2, np.float32)):
        one, other = (ran(text.format(op, order), x, bound) for order in ("x, z", "z, x"))
        assert same(one, other)
        chosen = np.maximum(x, bound) if op == "Max" else np.minimum(x, bound)
        assert same(one, chosen)


def test_zeros_that_meet_are_ordered() -> None:
    x, z = np.full(4, 0.0, np.float32), np.full(4, -0.0, np.float32)
    text = "(float[N] x, float[N] z) => (float[N] y) { y = Max(x, z) }"
    assert not same(ran(text, x, z), ran(text, z, x))


@pytest.mark.parametrize("exponent", [1, 2, 3])
def test_pow_is_product(exponent: int) -> None:
    x = numbers()
    found = ran(f"{F} <float p = {{{exponent}}}> {{ y = Pow(x, p) }}", x)
    with np.errstate(all="ignore"):
        expected = x if exponent == 1 else x * x if exponent == 2 else (x * x) * x
    assert same(found, expected)
    whole = np.array([3, -7, 50_000, 0, 2**31 - 1], np.int32)
    text = f"(int32[N] x) => (int32[N] y) <int32 p = {{{exponent}}}> {{ y = Pow(x, p) }}"
    with np.errstate(all="ignore"):
        product = whole if exponent == 1 else whole * whole
        product = product * whole if exponent == 3 else product
    assert (ran(text, whole) == product).all()


@pytest.mark.parametrize("op", ["Abs", "Cos", "Cosh", "Exp", "HardSigmoid", "Sigmoid", "Softplus"])
def test_zero_sign_unread(op: str) -> None:
    zeros = (np.full(9, zero, np.float32) for zero in (0.0, -0.0))
    one, other = (ran(f"{F} {{ y = {op}(x) }}", x) for x in zeros)
    assert same(one, other)


def test_quantized_again() -> None:
    """The definition of QuantizeLinear that the checker computes with is onnxruntime's."""
    from tiered.certify.rules.quantized_bits import rounded

    source = np.random.default_rng(1)
    for _ in range(20):
        scale = np.float32(10.0 ** source.uniform(-3, 1))
        zero = np.uint8(source.integers(0, 256))
        x = (numbers() if _ == 0 else source.standard_normal(2_000) * scale * 99).astype(np.float32)
        x = x[np.isfinite(x)]
        head = f"(float[N] x) => (uint8[N] y) <float s = {{{scale!s}}}, uint8 z = {{{zero}}}>"
        found = ran(f"{head} {{ y = QuantizeLinear(x, s, z) }}", x)
        assert (found == rounded(x, np.asarray(scale), np.asarray(zero))).all()


@pytest.mark.parametrize("hidden", [-np.inf, np.finfo(np.float32).min, -1e9, np.inf])
@pytest.mark.parametrize("length", [3, 40])
def test_multi_head_attention_adds_masks_as_the_chain_does(hidden: float, length: int) -> None:
    """A row that is hidden as a whole is no exception, so masks need no condition."""
    source = np.random.default_rng(1)
    head = "(float[2,S,8] x, float[2,1,S,S] z) => (float[2,S,8] y)"
    chain = f"""{head} <int64[4] h = {{0,0,2,4}}, int64[3] w = {{0,0,8}}, float c = {{0.5}}> {{
        a = Reshape(x, h)  q = Transpose<perm=[0,2,1,3]>(a)  k = Transpose<perm=[0,2,3,1]>(a)
        s = MatMul(q, k)  t = Mul(s, c)  m = Add(t, z)  p = Softmax(m)  o = MatMul(p, q)
        b = Transpose<perm=[0,2,1,3]>(o)  y = Reshape(b, w) }}"""
    call = "com.microsoft.MultiHeadAttention<num_heads=2, scale=0.5>(x, x, x, , , z)"
    x = source.standard_normal((2, length, 8)).astype(np.float32)
    mask = np.zeros((2, 1, length, length), np.float32)
    mask[0, 0, 1] = hidden
    mask[1, 0, 2, :2] = hidden
    one, other = (ran(text, x, mask) for text in (chain, f"{head} {{ y = {call} }}"))
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)
