"""Attention and rotary embeddings of com.microsoft are their standard operators, and no others."""

from typing import Any

import numpy as np
import pytest

from tests.certify.call import call
from tests.certify.reals.field import DOMAIN, are_same, number, ran, unknown
from tests.certify.test_checker import proof
from tiered.certify.definitions.attention_definition import ATTENTION
from tiered.certify.evaluation.call import NoRule
from tiered.certify.evaluation.values import CheckedTensor

NUMBERS = ",".join(str((at * 7) % 11 - 5) for at in range(48))
X = "(float[1,3,4] x) => (float[1,3,4] y)"
QKV = "(float[1,3,4] q, float[1,3,4] k, float[1,3,4] v) => (float[1,3,4] y)"
HELD = f"""int64[4] h = {{0,0,2,2}}, int64[3] w = {{0,0,4}}, float c = {{0.5}},
    float[4,12] m = {{{NUMBERS}}}, float[12] b = {{1,2,3,4,5,6,7,8,9,10,11,12}},
    int64[3] thirds = {{4,4,4}}, float[3,3] s = {{0,-1,-2,1,0,-1,2,1,0}}"""
HEADS = """q1 = Reshape(q0, h)  k1 = Reshape(k0, h)  v1 = Reshape(v0, h)
    q2 = Transpose<perm = [0,2,1,3]>(q1)  k2 = Transpose<perm = [0,2,3,1]>(k1)
    v2 = Transpose<perm = [0,2,1,3]>(v1)  e = MatMul(q2, k2)  f = Mul(e, c)"""
END = """p = Softmax(g)  o = MatMul(p, v2)  t = Transpose<perm = [0,2,1,3]>(o)
    y = Reshape(t, w)"""
PACKED = f"n = MatMul(x, m)  a = Add(n, b)  q0, k0, v0 = Split<axis = 2>(a, thirds)  {HEADS}"
BIASED = (
    "qb, kb, vb = Split<axis = 0>(b, thirds)  q0 = Add(q, qb)  k0 = Add(k, kb)  v0 = Add(v, vb)"
)

ROTARY = """(float[1,3,8] x) => (float[1,3,8] y) <int64[1,3] p = {2,0,1},
    float[3,2] c = {1,2,3,4,5,6}, float[3,2] s = {6,5,4,3,2,1}> {
    y = com.microsoft.RotaryEmbedding<%s>(x, p, c, s) }"""
EQUAL = {
    "Attention": (
        f"{X} <{HELD}> {{ {PACKED}  g = Identity(f)  {END} }}",
        f"{X} <{HELD}> {{ y = com.microsoft.Attention<num_heads = 2, scale = 0.5>(x, m, b) }}",
    ),
    "Attention with a bias of the scores": (
        f"{X} <{HELD}, float[1,2,3,3] r = {{1,2,3,4,5,6,7,8,9,9,8,7,6,5,4,3,2,1}}> {{"
        f" {PACKED}  g = Add(f, r)  {END} }}",
        f"{X} <{HELD}, float[1,2,3,3] r = {{1,2,3,4,5,6,7,8,9,9,8,7,6,5,4,3,2,1}}> {{"
        " y = com.microsoft.Attention<num_heads = 2, scale = 0.5>(x, m, b, , , r) }",
    ),
    "MultiHeadAttention with biases of its operands": (
        f"{QKV} <{HELD}> {{ {BIASED}  {HEADS}  g = Identity(f)  {END} }}",
        f"""{QKV} <{HELD}> {{
            y = com.microsoft.MultiHeadAttention<num_heads = 2, scale = 0.5>(q, k, v, b) }}""",
    ),
    "RotaryEmbedding of pairs": (
        """(float[1,2,3,4] x) => (float[1,2,3,4] y) <int64[1,3] p = {2,0,1},
            float[3,2] c = {1,2,3,4,5,6}, float[3,2] s = {6,5,4,3,2,1}, int64[5] v = {1,2,3,2,2},
            int64[4] b = {1,2,3,4}, int64[1] l = {4}, int64 i = {0}, int64 j = {1}> {
            u = Gather<axis = 0>(c, p)  w = Gather<axis = 0>(s, p)  f = Reshape(x, v)
            a = Gather<axis = 4>(f, i)  d = Gather<axis = 4>(f, j)
            m = Mul(a, u)  n = Mul(d, w)  k = Sub(m, n)  q = Mul(d, u)  r = Mul(a, w)
            o = Add(q, r)  g = Unsqueeze(k, l)  h = Unsqueeze(o, l)  e = Concat<axis = 4>(g, h)
            y = Reshape(e, b) }""",
        """(float[1,2,3,4] x) => (float[1,2,3,4] y) <int64[1,3] p = {2,0,1},
            float[3,2] c = {1,2,3,4,5,6}, float[3,2] s = {6,5,4,3,2,1}> {
            y = com.microsoft.RotaryEmbedding<interleaved = 1>(x, p, c, s) }""",
    ),
    "RotaryEmbedding of heads of the size of its angles": (
        ROTARY % "num_heads = 2",
        ROTARY % "interleaved = 0",
    ),
}


@pytest.mark.parametrize("name", EQUAL)
def test_an_operator_is_its_definition(name: str) -> None:
    found = proof(*EQUAL[name])
    assert found.domain == "reals", found.reason


@pytest.mark.parametrize(
    ("name", "right", "wrong"),
    [
        ("Attention", "scale = 0.5", "scale = 0.5, unidirectional = 1"),
        ("Attention", "scale = 0.5", "scale = 0.5, do_rotary = 1"),
        ("Attention", "scale = 0.5", "scale = 0.25"),
        ("Attention", "num_heads = 2", "num_heads = 1"),
        ("Attention", "(x, m, b)", "(x, m)"),
        ("Attention with a bias of the scores", "(x, m, b, , , r)", "(x, m, b)"),
        ("MultiHeadAttention with biases of its operands", "(q, k, v, b)", "(q, k, v)"),
        ("MultiHeadAttention with biases of its operands", "scale = 0.5",
         "scale = 0.5, unidirectional = 1"),
        ("RotaryEmbedding of pairs", "interleaved = 1", "interleaved = 0"),
        ("RotaryEmbedding of pairs", "(x, p, c, s)", "(x, p, s, c)"),
    ],
)  # fmt: skip
def test_what_it_does_otherwise_is_not_proved(name: str, right: str, wrong: str) -> None:
    before, after = EQUAL[name]
    assert right in after
    assert not proof(before, after.replace(right, wrong)).is_proved


def test_a_mask_of_the_keys_has_no_definition() -> None:
    before, after = EQUAL["Attention"]
    masked = after.replace("(x, m, b)", "(x, m, b, z)").replace("x) =>", "x, int32[1,3] z) =>")
    plain = before.replace("x) =>", "x, int32[1,3] z) =>")
    assert not proof(plain, masked).is_proved


@pytest.mark.parametrize(("shape", "is_proved"), [("1,2,4", True), ("1,2,2,2", False)])
def test_keys_of_heads_have_no_biases(shape: str, is_proved: bool) -> None:
    head = f"(float[1,2,4] q, float[{shape}] k, float[{shape}] v) => (float[1,2,4] y)"
    zeros = "float[12] o = {0,0,0,0,0,0,0,0,0,0,0,0}"
    made = "y = com.microsoft.MultiHeadAttention<num_heads = 2>(q, k, v, o)"
    whole = f"{head} <{zeros}> {{ {made} }}"
    assert proof(whole, whole.replace(", o)", ")")).is_proved is is_proved


WIDE = unknown("wide", 1, 3, 4)
FOUR = unknown("four", 1, 2, 3, 4)
PLACES = number([[2, 0, 1]], np.int64)
COS, SIN = unknown("cos", 3, 2), unknown("sin", 3, 2)
MICROSOFT = "com.microsoft::"


def made(op: str, *inputs: CheckedTensor | None, **held: Any) -> CheckedTensor:
    found = ATTENTION[MICROSOFT + op](call(MICROSOFT + op, *inputs, domain=DOMAIN, **held))
    assert isinstance(found[0], CheckedTensor)
    return found[0]


@pytest.mark.parametrize(
    ("op", "inputs", "held"),
    [
        *(
            ("MultiHeadAttention", (WIDE, WIDE, WIDE, *[None] * (at - 3), WIDE), {"num_heads": 2})
            for at in (4, 6, 7, 8, 9)
        ),
        ("MultiHeadAttention", (WIDE, WIDE, WIDE), {"num_heads": 2, "unidirectional": 1}),
        ("MultiHeadAttention", (WIDE, WIDE, WIDE), {"num_heads": 3}),
        ("MultiHeadAttention", (WIDE, None, WIDE), {"num_heads": 2}),
        ("MultiHeadAttention", (WIDE, WIDE), {"num_heads": 2}),
        ("MultiHeadAttention", (WIDE, WIDE, WIDE), {"num_heads": 2, "outputs": ("y", "k")}),
        *(
            ("Attention", (WIDE, unknown("w", 4, 12), *[None] * (at - 2), WIDE), {"num_heads": 2})
            for at in (3, 4, 6)
        ),
        ("Attention", (WIDE, unknown("w", 4, 12)), {"num_heads": 2, "unidirectional": 1}),
        ("Attention", (WIDE, unknown("w", 4, 12)), {"num_heads": 2, "do_rotary": 1}),
        ("Attention", (WIDE, unknown("w", 4, 12)), {"num_heads": 2, "outputs": ("y", "k")}),
        ("RotaryEmbedding", (FOUR, PLACES, COS, SIN), {"is_packed_batching": 1}),
        ("RotaryEmbedding", (unknown("two", 3, 4), PLACES, COS, SIN), {}),
        ("RotaryEmbedding", (FOUR, PLACES, COS, SIN), {"rotary_embedding_dim": 2}),
        ("RotaryEmbedding", (unknown("h", 1, 2, 3, 2), PLACES, COS, SIN), {}),
        ("RotaryEmbedding", (unknown("h", 1, 2, 3, 6), PLACES, COS, SIN), {}),
    ],
)
def test_what_a_definition_does_not_say_has_no_rule(
    op: str, inputs: tuple[CheckedTensor | None, ...], held: dict[str, Any]
) -> None:
    with pytest.raises(NoRule):
        made(op, *inputs, **held)


def test_a_projection_may_be_of_parts_of_other_sizes() -> None:
    w = unknown("w", 4, 10)
    parts = made("Attention", WIDE, w, num_heads=2, qkv_hidden_sizes=[4, 4, 2])
    assert parts.shape == (1, 3, 2)
    assert made("Attention", WIDE, unknown("w", 4, 12), num_heads=2).shape == (1, 3, 4)


def test_heads_without_elements_have_a_scale() -> None:
    none = unknown("none", 1, 3, 0)
    assert made("MultiHeadAttention", none, none, none, num_heads=2).shape == (1, 3, 0)


def test_heads_may_be_wider_than_what_turns() -> None:
    """By the sizes alone a row of 8 would be two heads of 4."""
    x = unknown("x", 1, 3, 8)
    held: dict[str, Any] = {"num_heads": 1, "rotary_embedding_dim": 4}
    one = made("RotaryEmbedding", x, PLACES, COS, SIN, **held)
    head = CheckedTensor(x.dtype, (1, 1, 3, 8), lambda: x.terms[:, None])
    alone = made("RotaryEmbedding", head, PLACES, COS, SIN, rotary_embedding_dim=4)
    assert (one.terms == alone.terms[:, 0]).all()


def test_a_single_position_is_that_of_the_first_token() -> None:
    by_places = made("RotaryEmbedding", FOUR, number([[1, 2, 3]], np.int64), *(
        unknown(name, 4, 2) for name in ("cos", "sin")
    ))  # fmt: skip
    by_first = made("RotaryEmbedding", FOUR, number([1], np.int64), *(
        unknown(name, 4, 2) for name in ("cos", "sin")
    ))  # fmt: skip
    assert are_same(by_first, by_places)


@pytest.mark.parametrize("held", [{"rotary_embedding_dim": 4}, {"num_heads": 2}])
def test_heads_are_as_many_as_the_angles_or_the_attribute_say(held: dict[str, int]) -> None:
    flat = unknown("flat", 1, 3, 8)
    assert are_same(
        made("RotaryEmbedding", flat, PLACES, COS, SIN, **held),
        made("RotaryEmbedding", flat, PLACES, COS, SIN),
    )


def test_what_is_wider_than_the_angles_stays() -> None:
    x = unknown("wider", 1, 2, 3, 6)
    found = made("RotaryEmbedding", x, PLACES, COS, SIN, rotary_embedding_dim=4)
    last = (number([4], np.int64), number([6], np.int64), number([3], np.int64))
    assert found.shape == x.shape
    assert are_same(ran("Slice", found, *last), ran("Slice", x, *last))
    flat = unknown("flat", 1, 3, 6)
    held = {"rotary_embedding_dim": 4, "num_heads": 1}
    assert made("RotaryEmbedding", flat, PLACES, COS, SIN, **held).shape == (1, 3, 6)
