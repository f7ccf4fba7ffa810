"""Operators of the standard over the reals are what the standard says."""

from typing import Any

import numpy as np
import pytest

from tests.certify.call import call
from tests.certify.reals.field import DOMAIN, are_same, number, ran, unknown
from tests.certify.test_checker import proof
from tiered.certify.definitions.standard_definitions import DEFINITIONS
from tiered.certify.evaluation.call import NoRule
from tiered.certify.evaluation.values import CheckedTensor

F = "(float[2,4] x) => (float[2,4] y)"
PAIR = "(float[2,3] x, float[4,3] z) => (float[4,2] y)"
IMAGE = "(float[1,2,3] x) => (float[1,2,?] y)"
HEADS = "(float[1,2,3,4] q, float[1,2,3,4] k, float[1,2,3,4] v) => (float[1,2,3,4] y)"
ROTATED = """(float[1,2,3,4] x, float[5,2] c, float[5,2] s, int64[1,3] p) => (float[1,2,3,4] y)"""
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
    "HardSigmoid": (
        f"""{F} <float a = {{0.25}}, float b = {{0.5}}, float z = {{0}}, float o = {{1}}> {{
            m = Mul(x, a)  s = Add(m, b)  y = Clip(s, z, o) }}""",
        f"{F} {{ y = HardSigmoid<alpha = 0.25>(x) }}",
    ),
    "Softsign": (
        f"{F} <float o = {{1}}> {{ a = Abs(x)  b = Add(a, o)  y = Div(x, b) }}",
        f"{F} {{ y = Softsign(x) }}",
    ),
    "LogSoftmax": (
        f"{F} {{ s = Softmax<axis = 0>(x)  y = Log(s) }}", f"{F} {{ y = LogSoftmax<axis = 0>(x) }}"
    ),
    "InstanceNormalization": (
        f"""{IMAGE} <int64[1] a = {{2}}, float e = {{1e-5}}, float[2,1] t = {{3,5}},
            float[2,1] c = {{7,9}}> {{
            m = ReduceMean(x, a)  d = Sub(x, m)  q = Mul(d, d)  v = ReduceMean(q, a)
            w = Add(v, e)  r = Sqrt(w)  n = Div(d, r)  k = Mul(n, t)  y = Add(k, c) }}""",
        f"""{IMAGE} <float[2] s = {{3,5}}, float[2] b = {{7,9}}> {{
            y = InstanceNormalization(x, s, b) }}""",
    ),
    "a ConvTranspose with steps and pads": (
        f"""{IMAGE} <float[2,1] s = {{2,4}},
            float[2,2,4] w = {{1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16}}>
            {{ a = Mul(x, s)  y = ConvTranspose<strides = [2], pads = [2,3]>(a, w) }}""",
        f"""{IMAGE} <float[2,2,4] w = {{2,4,6,8,10,12,14,16,36,40,44,48,52,56,60,64}}>
            {{ y = ConvTranspose<strides = [2], pads = [2,3]>(x, w) }}""",
    ),
    "the bias of a ConvTranspose": (
        f"""{IMAGE} <float[2,2,1] w = {{1,2,3,4}}, float[2] b = {{5,6}}>
            {{ y = ConvTranspose(x, w, b) }}""",
        f"""{IMAGE} <float[2,2,1] w = {{1,2,3,4}}, float[2,1] b = {{5,6}}>
            {{ c = ConvTranspose(x, w)  y = Add(c, b) }}""",
    ),
    "a batch of an Einsum": (
        """(float[5,2,3] x, float[5,4,3] z) => (float[5,2,4] y) {
            y = Einsum<equation = "bij, bkj -> bik">(x, z) }""",
        """(float[5,2,3] x, float[5,4,3] z) => (float[5,2,4] y) {
            t = Transpose<perm = [0,2,1]>(z)  y = MatMul(x, t) }""",
    ),
    "Attention": (
        f"""{HEADS} <float c = {{0.5}}, float[3,3] m = {{0,-1,-2,0,0,-1,0,0,0}}> {{
            t = Transpose<perm = [0,1,3,2]>(k)  q2 = Mul(q, c)  s = MatMul(q2, t)  a = Add(s, m)
            p = Softmax(a)  y = MatMul(p, v) }}""",
        f"""{HEADS} <float[3,3] m = {{0,-1,-2,0,0,-1,0,0,0}}> {{
            y = Attention<scale = 0.5>(q, k, v, m) }}""",
    ),
    "RotaryEmbedding": (
        f"""{ROTATED} <int64[2] h = {{2,2}}> {{
            c1 = Gather<axis = 0>(c, p)  s1 = Gather<axis = 0>(s, p)  a, b = Split<axis = 3>(x, h)
            one = Constant<value_ints = [1]>()  u = Unsqueeze(c1, one)  w = Unsqueeze(s1, one)
            m = Mul(a, u)  n = Mul(b, w)  k = Sub(m, n)  q = Mul(b, u)  r = Mul(a, w)
            l = Add(q, r)  y = Concat<axis = 3>(k, l) }}""",
        f"{ROTATED} {{ y = RotaryEmbedding(x, c, s, p) }}",
    ),
    "a bound through a scale": (
        f"{F} <float c = {{2}}, float z = {{0}}, float o = {{6}}, float p = {{3}}> {{"
        " m = Mul(x, c)  y = Clip(m, z, o) }",
        f"{F} <float c = {{2}}, float z = {{0}}, float p = {{3}}> {{"
        " m = Clip(x, z, p)  y = Mul(m, c) }",
    ),
}  # fmt: skip
NEWER = {"Attention", "RotaryEmbedding"}
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
    found = proof(*EQUAL[name], opset=24 if name in NEWER else 21)
    assert found.domain == "reals", found.reason


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_differs_is_not_proved(name: str) -> None:
    assert not proof(*DIFFERENT[name]).is_proved


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("HardSigmoid", "alpha = 0.25", "alpha = 0.2"),
        ("LogSoftmax", "LogSoftmax<axis = 0>", "LogSoftmax<axis = 1>"),
        ("InstanceNormalization", "(x, s, b)", "(x, b, s)"),
        ("a ConvTranspose with steps and pads", "pads = [2,3]", "pads = [3,2]"),
        ("the bias of a ConvTranspose", "{5,6}", "{6,5}"),
        ("Attention", "scale = 0.5", "scale = 0.25"),
        ("RotaryEmbedding", "(x, c, s, p)", "(x, s, c, p)"),
    ],
)
def test_another_attribute_or_operand_is_not_proved(name: str, right: str, wrong: str) -> None:
    before, after = EQUAL[name]
    assert right in after
    changed = after.replace(right, wrong)
    assert not proof(before, changed, opset=24 if name in NEWER else 21).is_proved


# --- what a definition declines -------------------------------------------------------------------


SIGNAL, ONE = unknown("signal", 1, 2, 3), number([[[1.0], [2.0]], [[3.0], [4.0]]])
LONG = number(np.ones((2, 2, 3)))
Q, K = unknown("q", 1, 2, 3, 4), unknown("k", 1, 2, 3, 4)
A, B = unknown("a", 2, 3), unknown("b", 3, 4)
FOUR, ANGLES = unknown("four", 1, 2, 3, 4), unknown("angles", 1, 3, 2)
MASK = np.zeros((3, 3))
HIDDEN = np.where(np.eye(3), -1e4, -1e5)


def made(op: str, *inputs: CheckedTensor | None, **held: Any) -> CheckedTensor:
    (result,) = DEFINITIONS[op](call(op, *inputs, domain=DOMAIN, **held))
    assert result is not None
    return result


@pytest.mark.parametrize(
    "op", ["HardSigmoid", "HardSwish", "Mish", "Softsign", "Softmax", "LogSoftmax"]
)
def test_numbers_are_computed_and_need_no_definition(op: str) -> None:
    with pytest.raises(NoRule):
        made(op, number([[1.0, 2.0]]))
    assert made(op, A).shape == A.shape


@pytest.mark.parametrize(
    ("op", "inputs", "held"),
    [
        ("InstanceNormalization", (LONG, *[number([1.0, 2.0])] * 2), {}),
        ("ConvTranspose", (LONG, ONE), {}),
        ("ConvTranspose", (LONG, ONE, number([1.0, 2.0])), {}),
        ("ConvTranspose", (SIGNAL, unknown("w", 2, 2, 1)), {}),
        ("ConvTranspose", (SIGNAL, unknown("w", 2, 2, 1), number([1.0, 2.0])), {}),
        ("ConvTranspose", (SIGNAL, ONE), {"output_shape": [3]}),
        ("ConvTranspose", (SIGNAL, ONE), {"auto_pad": "SAME_UPPER"}),
        ("ConvTranspose", (SIGNAL, ONE), {"pads": [1, 0]}),
        ("ConvTranspose", (SIGNAL, ONE), {"pads": [0, 1]}),
        ("ConvTranspose", (unknown("none", 0, 2, 3), ONE), {}),
        ("ConvTranspose", (unknown("none", 1, 2, 0), ONE), {}),
        ("Einsum", (A, B), {"equation": "...j,jk->...k"}),
        ("Einsum", (A, B), {"equation": "ij,jk"}),
        ("Einsum", (A,), {"equation": "ij->ji"}),
        ("Einsum", (A, B, B), {"equation": "ij,jk,jk->ik"}),
        ("Einsum", (unknown("square", 3, 3), B), {"equation": "jj,jk->k"}),
        ("Einsum", (A, B), {"equation": "ij,jk->i"}),
        ("Einsum", (A, A), {"equation": "ij,ij->ij"}),
        ("Attention", (A, A, A), {}),
        ("Attention", (Q, K, K, None, K), {}),
        ("Attention", (Q, K, K), {"outputs": ("y", "z")}),
        ("Attention", (Q, K, K), {"is_causal": 1}),
        ("Attention", (Q, K, K), {"softcap": 1.0}),
        ("Attention", (Q, unknown("one", 1, 1, 3, 4), unknown("one", 1, 1, 3, 4)), {}),
        ("Attention", (Q, K, K, number(np.ones((3, 3)), np.bool_)), {}),
        ("Attention", (Q, K, K, unknown("mask", 3, 3)), {}),
        ("Attention", (Q, K, K, number(0.0)), {}),
        ("Attention", (Q, K, K, number(np.zeros((0, 3)))), {}),
        ("Attention", (Q, K, K, number(HIDDEN)), {}),
        ("RotaryEmbedding", (A, ANGLES, ANGLES), {}),
        ("RotaryEmbedding", (A, ANGLES, ANGLES), {"num_heads": 1}),
        ("RotaryEmbedding", (unknown("three", 1, 3, 4), ANGLES, ANGLES), {}),
        ("RotaryEmbedding", (unknown("three", 1, 3, 5), ANGLES, ANGLES), {"num_heads": 2}),
        ("RotaryEmbedding", (FOUR, unknown("c", 3, 2), unknown("s", 3, 2)), {}),
        ("RotaryEmbedding", (unknown("wide", 1, 2, 3, 6), ANGLES, ANGLES), {}),
        ("RotaryEmbedding", (FOUR, ANGLES, ANGLES), {"rotary_embedding_dim": 2}),
    ],
)
def test_what_a_definition_does_not_say_has_no_rule(
    op: str, inputs: tuple[CheckedTensor | None, ...], held: dict[str, Any]
) -> None:
    with pytest.raises(NoRule):
        made(op, *inputs, **held)


@pytest.mark.parametrize(
    ("op", "inputs", "held", "shape"),
    [
        ("ConvTranspose", (SIGNAL, ONE), {}, (1, 2, 3)),
        ("ConvTranspose", (SIGNAL, ONE), {"pads": [0, 0], "auto_pad": "NOTSET"}, (1, 2, 3)),
        ("ConvTranspose", (SIGNAL, LONG), {"dilations": [2]}, (1, 2, 7)),
        ("ConvTranspose", (SIGNAL, ONE), {"strides": [2], "output_padding": [1]}, (1, 2, 6)),
        ("Einsum", (A, B), {"equation": "ij,jk->ki"}, (4, 2)),
        ("Attention", (Q, K, K, number(MASK)), {}, (1, 2, 3, 4)),
        ("Attention", (Q, K, K, number(np.where(np.eye(3), -9e3, -1e5))), {}, (1, 2, 3, 4)),
        ("Attention", (Q, K, K), {"is_causal": 0, "softcap": 0.0}, (1, 2, 3, 4)),
        ("RotaryEmbedding", (FOUR, ANGLES, ANGLES), {}, (1, 2, 3, 4)),
        ("RotaryEmbedding", (unknown("t", 1, 3, 8), ANGLES, ANGLES), {"num_heads": 2}, (1, 3, 8)),
        (
            "RotaryEmbedding",
            (unknown("wide", 1, 2, 3, 6), ANGLES, ANGLES),
            {"rotary_embedding_dim": 4},
            (1, 2, 3, 6),
        ),
    ],
)
def test_the_result_of_a_definition_has_the_shape_of_the_standard(
    op: str, inputs: tuple[CheckedTensor | None, ...], held: dict[str, Any], shape: tuple[int, ...]
) -> None:
    found = made(op, *inputs, **held)
    assert (found.shape, found.terms.shape) == (shape, shape)


@pytest.mark.parametrize(("opset", "axes"), [(12, (1, 2)), (13, (2,)), (21, (2,))])
def test_a_softmax_is_over_the_last_axis_since_opset_13(opset: int, axes: tuple[int, ...]) -> None:
    x, over = unknown("x", 2, 3, 4), number(axes, np.int64)
    e = ran("Exp", ran("Sub", x, ran("ReduceMax", x, over)))
    expected = ran("Div", e, ran("ReduceSum", e, over))
    assert are_same(made("Softmax", x, opset=opset), expected)


def test_what_is_wider_than_the_angles_stays() -> None:
    x = unknown("wide", 1, 2, 3, 6)
    found = made("RotaryEmbedding", x, ANGLES, ANGLES, rotary_embedding_dim=4)
    last = (number([4], np.int64), number([6], np.int64), number([3], np.int64))
    assert are_same(ran("Slice", found, *last), ran("Slice", x, *last))
