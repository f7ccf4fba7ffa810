"""Fused operators of com.microsoft are what their definitions say."""

from typing import Any

import numpy as np
import pytest

from tests.certify.call import call
from tests.certify.reals.field import DOMAIN, are_same, number, ran, unknown
from tests.certify.test_checker import proof
from tiered.certify.definitions.contrib_definitions import OWN
from tiered.certify.evaluation.call import NoRule
from tiered.certify.evaluation.values import CheckedTensor

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


# --- by the operators of the definition -----------------------------------------------------------


X, Z, ROW = unknown("x", 2, 3), unknown("z", 2, 3), unknown("row", 3)
CUBE, OTHER = unknown("cube", 2, 5, 3), unknown("other", 5, 3, 4)
MICROSOFT = "com.microsoft::"


def made(
    op: str, *inputs: CheckedTensor | None, outputs: tuple[str, ...] = ("y",), **held: Any
) -> Any:
    return OWN[op](call(op, *inputs, domain=DOMAIN, outputs=outputs, **held))


def one(op: str, *inputs: CheckedTensor | None, **held: Any) -> CheckedTensor:
    (result,) = made(MICROSOFT + op, *inputs, **held)
    assert isinstance(result, CheckedTensor)
    return result


def test_a_gelu_has_a_bias_or_none_and_the_fast_one_is_by_tanh() -> None:
    biased = ran("Add", X, ROW)
    for op, kind in (("BiasGelu", "none"), ("FastGelu", "tanh"), ("Gelu", "none")):
        assert are_same(one(op, X, ROW), ran("Gelu", biased, approximate=kind)), op
        assert are_same(one(op, X), ran("Gelu", X, approximate=kind)), op


@pytest.mark.parametrize(
    ("inputs", "held", "perms"),
    [
        ((unknown("a", 3, 2), unknown("b", 3, 4)), {"transA": 1}, ([1, 0], None)),
        ((CUBE, unknown("b", 2, 4, 3)), {"transB": 1}, (None, [0, 2, 1])),
        ((CUBE, OTHER), {"transBatchA": 1}, ([1, 0, 2], None)),
        ((unknown("a", 5, 2, 3), unknown("b", 3, 5, 4)), {"transBatchB": 1}, (None, [1, 0, 2])),
        ((unknown("a", 3, 5, 2), OTHER), {"transBatchA": 1, "transA": 1}, ([1, 2, 0], None)),
        ((X, unknown("b", 3, 4)), {"transBatchA": 1, "transBatchB": 1}, (None, None)),
        ((ROW, unknown("b", 3, 4)), {"transA": 1}, (None, None)),
    ],
)
def test_a_fused_product_has_transposed_operands(
    inputs: tuple[CheckedTensor, CheckedTensor],
    held: dict[str, int],
    perms: tuple[list[int] | None, ...],
) -> None:
    sides = [
        x if perm is None else ran("Transpose", x, perm=perm)
        for x, perm in zip(inputs, perms, strict=True)
    ]
    expected = ran("Mul", ran("MatMul", *sides), number(0.5))
    assert are_same(one("FusedMatMul", *inputs, alpha=0.5, **held), expected)


def test_a_fused_gemm_has_an_activation() -> None:
    w, b = number([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), number([7.0, 8.0])
    product = ran("Gemm", X, w, b, alpha=0.5)
    found = one("FusedGemm", X, w, b, alpha=0.5, activation="LeakyRelu", activation_alpha=0.25)
    assert are_same(found, ran("LeakyRelu", product, alpha=0.25))
    assert are_same(one("FusedGemm", X, w, b, alpha=0.5), product)
    with pytest.raises(NoRule):
        one("FusedGemm", X, w, b, activation="Elu")
    clipped = {"activation": "Clip", "activation_alpha": -1.0, "activation_beta": 6.0}
    assert are_same(
        one("FusedGemm", X, w, b, alpha=0.5, **clipped),
        ran("Clip", product, number(-1.0), number(6.0)),
    )


def test_a_fused_convolution_adds_its_last_operand() -> None:
    x, w = unknown("image", 1, 2, 4), number(np.ones((2, 2, 1)))
    z = unknown("added", 1, 2, 4)
    assert are_same(one("FusedConv", x, w, None, z), ran("Add", ran("Conv", x, w), z))


@pytest.mark.parametrize("epsilon", [None, 0.5])
def test_a_skip_normalization_is_one_of_a_sum(epsilon: float | None) -> None:
    held = {} if epsilon is None else {"epsilon": epsilon}
    total = ran("Add", ran("Add", X, Z), number([5.0, 6.0, 7.0]))
    scale, shift, bias = (number(each) for each in ([1.0, 2, 3], [4.0, 5, 6], [5.0, 6, 7]))
    plain = {"axis": -1, "epsilon": 1e-12 if epsilon is None else epsilon}
    found = made(f"{MICROSOFT}SkipLayerNormalization", X, Z, scale, shift, bias,
                 outputs=("y", "", "", "s"), **held)  # fmt: skip
    assert are_same(found[0], ran("LayerNormalization", total, scale, shift, **plain))
    assert found[1:3] == [None, None]
    assert are_same(found[3], total)
    simple = {"axis": -1, "epsilon": 1e-5 if epsilon is None else epsilon}
    assert are_same(
        one("SkipSimplifiedLayerNormalization", X, Z, scale, bias, **held),
        ran("RMSNormalization", total, scale, **simple),
    )
    assert are_same(
        one("SkipSimplifiedLayerNormalization", X, Z, scale, **held),
        ran("RMSNormalization", ran("Add", X, Z), scale, **simple),
    )


def test_a_simplified_normalization_has_one_result() -> None:
    op, scale = "SimplifiedLayerNormalization", number([1.0, 2.0, 3.0])
    for outputs in (("y",), ("y", "")):
        (found,) = made(op, X, scale, outputs=outputs)
        assert are_same(found, ran("RMSNormalization", X, scale, axis=-1, epsilon=1e-5))
    (found,) = made(op, X, number([[1.0] * 3] * 2), axis=0, epsilon=0.5)
    expected = ran("RMSNormalization", X, number([[1.0] * 3] * 2), axis=0, epsilon=0.5)
    assert are_same(found, expected)
    with pytest.raises(NoRule):
        made(op, X, scale, outputs=("y", "deviation"))


def test_a_swish_is_a_product_and_of_numbers_none() -> None:
    (found,) = made("Swish", X, alpha=0.5)
    half = ran("Mul", X, number(0.5))
    assert are_same(found, ran("Mul", X, ran("Sigmoid", half)))
    with pytest.raises(NoRule):
        made("Swish", number([1.0]))
