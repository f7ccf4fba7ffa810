"""Packed encoders as exporters write them: heads beside the batch, relative positions, pooling."""

import numpy as np
import pytest

from tests.module_passes.packing.test_packed_transformer import _compare, _packed
from tiered import Model, ModelError, get_pass
from tiered.runtime import Session
from tiered.testing import parse

EMBED = "words = {WORDS}, float[4,4] wq = {1,-2,3,0.5, 2,1,-1,3, 0.1,0.2,2,1, -3,1,1,2}"
HEAD = f"""(int64[B,S] ids) => (float[B,S,4] y)
    <float[9,4] {EMBED}, int64[1] h = {{2}}, int64[1] d = {{2}}, int64[1] two = {{4}}, int64[1] m
        = {{-1}},
     int64[4] split = {{0,0,2,2}}, int64 zero = {{0}}, int64 one = {{1}}, int64[1] l0 = {{0}},
        int64[1] l1 = {{1}},
     float[7,2] near = {{1,0.3, -1,2, 0.5,1, 2,-2, 0,1, 1,1, -1,0.2}}, int64 least = {{0}}, int64
        most = {{6}},
     int64 half = {{3}}, int64[2] axes12 = {{1,2}},
     float[2,2,7] by_head = {{1,0.3,-1,2,0.5,1,2, -2,0,1,1,1,-1,0.2, 0.4,1,-1,3,0.5,2,2,
        1,0,1,2,0,-1,0.7}}, float[2,7] feature = {{1,0.3,-1,2,0.5,1,2, -2,0,1,1,1,-1,0.2}}> {{
    x = Gather(words, ids) q4 = MatMul(x, wq)
    qs = Reshape(q4, split) q = Transpose<perm=[0,2,1,3]>(qs)
    ks = Reshape(x, split) k = Transpose<perm=[0,2,1,3]>(ks)
    shape = Shape(ids) b = Slice(shape, l0, l1) s = Slice(shape, l1, d)
    n = Gather(shape, one) at = Range(zero, n, one) rows = Unsqueeze(at, l1) columns =
        Unsqueeze(at, l0)
    away = Sub(rows, columns) shifted = Add(away, half) r = Clip(shifted, least, most)
    NODES }}"""
END = """p = Softmax<axis=-1>(a) o = MatMul(p, k) ot = Transpose<perm=[0,2,1,3]>(o) flat =
        Concat<axis=0>(b, s, two) y = Reshape(ot, flat)"""
BESIDE = """to3 = Concat<axis=0>(m, s, d) q3 = Reshape(q, to3) k3 = Reshape(k, to3) kt =
        Transpose<perm=[0,2,1]>(k3)"""
BACK = """o = MatMul(p, k3) to4 = Concat<axis=0>(b, h, s, d) o4 = Reshape(o, to4)
    ot = Transpose<perm=[0,2,1,3]>(o4) flat = Concat<axis=0>(b, s, two) y = Reshape(ot, flat)"""
SCORES = "kt = Transpose<perm=[0,1,3,2]>(k) a0 = MatMul(q, kt)"

EXPORTS = {
    "heads beside the batch": f"{BESIDE} a = MatMul(q3, kt) p = Softmax<axis=-1>(a) {BACK}",
    "heads beside the batch for the keys only": f"""{BESIDE}
        kt4s = Concat<axis=0>(b, h, d, s) kt4 = Reshape(kt, kt4s) a = MatMul(q, kt4) {END}""",
    "a bias of positions, heads beside the batch": f"""{BESIDE} a0 = MatMul(q3, kt)
        bias = Cast<to=1>(away) a = Add(a0, bias) p = Softmax<axis=-1>(a) {BACK}""",
    "scores in four dims, weights in three": f"""{BESIDE} a3 = MatMul(q3, kt)
        to5 = Concat<axis=0>(b, h, s, s) a = Reshape(a3, to5) p4 = Softmax<axis=-1>(a)
        to6 = Concat<axis=0>(m, s, s) p = Reshape(p4, to6) {BACK}""",
    "a bias of relative positions (T5)": f"""{SCORES} e = Gather(near, r)
        et = Transpose<perm=[2,0,1]>(e) bias = Unsqueeze(et, l0) a = Add(a0, bias) {END}""",
    "features by relative position (DeBERTa)": f"""{SCORES} c = MatMul(q, feature)
        to7 = Concat<axis=0>(b, h, s, s) index = Expand(r, to7)
        g = GatherElements<axis=-1>(c, index) a = Add(a0, g) {END}""",
    "features by relative position, heads beside the batch": f"""{BESIDE} a0 = MatMul(q3, kt)
        c = MatMul(q3, feature) bh = Shape<end=1>(q3) to7 = Concat<axis=0>(bh, s, s)
        index = Expand(r, to7) g = GatherElements<axis=-1>(c, index) gt = Transpose<perm=[0,2,1]>(g)
        a1 = Add(a0, g) a = Add(a1, gt) p = Softmax<axis=-1>(a) {BACK}""",
    "features of each head, repeated for each row (DeBERTa)": f"""{BESIDE} a0 = MatMul(q3, kt)
        often = Concat<axis=0>(b, l1, l1) features = Tile(by_head, often) c = MatMul(q3, features)
        bh = Shape<end=1>(q3) to7 = Concat<axis=0>(bh, s, s) index = Expand(r, to7)
        g = GatherElements<axis=-1>(c, index) a = Add(a0, g) p = Softmax<axis=-1>(a) {BACK}""",
    "a mask that is repeated for each query": f"""{SCORES} f = Cast<to=1>(ids) fm = Unsqueeze(f,
        axes12)
        often = Concat<axis=0>(l1, l1, s, l1) mask = Tile(fm, often) a = Add(a0, mask) {END}""",
    "vectors by relative position (Shaw)": f"""{SCORES} e = Gather(near, r)
        g = Einsum<equation="bhld,lrd->bhlr">(q, e) a = Add(a0, g) {END}""",
    "an Einsum without an arrow, of three operands": f"""{SCORES} e = Gather(near, r)
        g = Einsum<equation="bhld , lrd, bhrd -> bhlr">(q, e, k) a = Add(a0, g) {END}""",
    "products as Einsum": """a = Einsum<equation="bind,bjnd->bnij">(qs, ks) p = Softmax<axis=-1>(a)
        o = Einsum<equation="bnij,bjnd->bind">(p, ks) flat = Concat<axis=0>(b, s, two) y =
        Reshape(o, flat)""",
    "tokens before the batch (MultiheadAttention)": f"""{SCORES} p = Softmax<axis=-1>(a0)
        o = MatMul(p, k) ot = Transpose<perm=[2,0,1,3]>(o) to2 = Concat<axis=0>(m, two)
        o2 = Reshape(ot, to2) o3 = MatMul(o2, wq) to8 = Concat<axis=0>(s, b, two)
        yt = Reshape(o3, to8) y = Transpose<perm=[1,0,2]>(yt)""",
    "an Einsum of heads beside the batch": f"""{BESIDE} e = Gather(near, r) a0 = MatMul(q3, kt)
        g = Einsum<equation="nld,lrd->nlr">(q3, e) a = Add(a0, g) p = Softmax<axis=-1>(a) {BACK}""",
}  # fmt: skip


def _text(nodes: str) -> str:
    rng = np.random.default_rng(0)
    text = HEAD.replace("NODES", nodes)
    return text.replace("WORDS", ",".join(f"{each:.3f}" for each in rng.normal(size=36)))


@pytest.mark.parametrize("what", EXPORTS)
def test_exports_give_each_sequence_what_it_gets_alone(what: str) -> None:
    text, rng = _text(EXPORTS[what]), np.random.default_rng(1)
    model = _packed(text)
    model.check_view()
    for row in (6, 9):
        sequences = [{"ids": rng.integers(0, 9, length)} for length in (3, 1, 5, 2, 6, 2)]
        _compare(Session(parse(text)), Session(model.to_proto()), sequences, row)


def test_the_chosen_token_may_be_taken_from_all_tokens() -> None:
    """As TorchScript writes `hidden[rows, ids.argmax(-1)]`."""
    text = _text(f"""{SCORES} a = Identity(a0)
        {END.replace("y = Reshape", "hidden = Reshape")} z = Identity(hidden)
        tokens = Flatten<axis=2>(z) end = ArgMax<axis=-1, keepdims=0>(ids) count = Gather(shape,
        zero)
        number = Range(zero, count, one) first = Mul(number, s) place = Add(end, first)
        y = Gather(tokens, place)""").replace("float[B,S,4] y", "float[B,4] y")
    rng = np.random.default_rng(2)
    sequences = [{"ids": rng.permutation(9)[:length]} for length in (3, 1, 5, 2, 2)]
    model = _packed(text)
    _compare(Session(parse(text)), Session(model.to_proto()), sequences, 6)


def test_an_output_with_heads_beside_the_batch_is_refused() -> None:
    text = """(float[B,S,4] x) => (float[C,2] y) <int64 z = {0}, int64[2] to = {-1,2}> {
        p = Gather<axis=1>(x, z) y = Reshape(p, to) }"""
    with pytest.raises(ModelError, match="output 'y' is neither"):
        _packed(text)


REFUSED = {
    "t = Transpose<perm=[1,0,2,3]>(q) n2 = Reshape(t, wrong) y = Reshape(n2, back)":
        "it splits or merges an axis of tokens",
    'e = Einsum<equation="bsd,bsd->bd">(x, x) u = Unsqueeze(e, l1) y = Add(x, u)':
        "it sums over the tokens of a row",
    'e = Einsum<equation="b...,b...->b...">(x, x) y = Add(x, e)': "has an ellipsis",
    'e = Einsum<equation="bsd,std->bst">(x, fixed) m0 = MatMul(e, fixed2) y = Add(x, m0)':
        "it joins an axis of tokens with another one",
    "i = Unsqueeze(ids, m) g = GatherElements<axis=1>(x, i) y = Add(x, g)":
        "it takes some of the tokens",
    "i = Expand(half, pair) g = GatherElements<axis=2>(x, i) y = Add(x, g)":
        "it takes other places for each token",
    "o = Concat<axis=0>(b, l1, l1) r3 = Unsqueeze(r, l0) t = Tile(r3, o) f = Cast<to=1>(t)"
    " m0 = MatMul(f, x) y = Add(x, m0)": "it repeats positions for each row",
    "y0 = Tile(x, l3) f = Slice(y0, l0, s, l1) y = Add(x, f)": "it repeats tokens or rows",
    "o = Concat<axis=0>(l1, s, l1) f = Tile(by_head, o) z = ReduceSum(f) y = Add(x, z)":
        "makes a dim 2[*]S of the sizes|it repeats an axis for each token",
    "y = Add(x, table)": "it joins an axis of tokens with one of 6",
    "s6 = MatMul(tables, fixed) y = Add(x, s6)": "it joins an axis of tokens with one of",
}  # fmt: skip


@pytest.mark.parametrize("nodes", REFUSED)
def test_what_may_mix_tokens_is_named(nodes: str) -> None:
    own = """float[6,4] table = {TABLE}, float[2,6,4] fixed = {TWICE}, float[6,4] fixed2 = {TABLE},
        float[2,6,6] tables = {LARGE}, int64[3] pair = {1,1,4}, int64[3] l3 = {1,2,1}, int64[3]
        wrong = {0,-1,2}, int64[3] back = {0,-1,4},"""
    for name, size in (("TABLE", 24), ("TWICE", 48), ("LARGE", 72)):
        own = own.replace(name, ",".join(["1"] * size))
    text = _text(nodes).replace("<float[9,4]", f"<{own} float[9,4]")
    model = Model.from_proto(parse(text))
    before = model.to_proto()
    with pytest.raises(ModelError, match=REFUSED[nodes]):
        get_pass("packed_transformer")(model)
    assert model.to_proto() == before
    assert not model.dims.positive
