"""Packing of operators that combine elements along axes: attention, sums, products."""

import pytest

from tests.extensions.packing.relations import (
    PLACES,
    edits,
    interpreted,
    of_nodes,
    relation,
    relation_of,
)
from tiered.extensions.packing.packed_values import MaskEdit, TermEdit

SCORES = "k = Transpose<perm=[0,2,1]>(x) s = MatMul(x, k) "
WEIGHTS = SCORES + "p = Softmax(s) "
FLAT = "flat = Constant<value_ints=[-1,4]>() f = Reshape(x, flat) "
INTS = "i = Cast<to=7>(x) "

SOFTMAXES = {
    "y = Softmax(x)": "BT.",
    "y = LogSoftmax(x)": "BT.",
    "y = Softmax<axis=1>(x)": "no: it normalizes over the tokens of a row",
    "y = Softmax<axis=0>(x)": "no: it normalizes over the tokens of a row",
    SCORES + "y = Softmax(s)": "BTT zeros=2",
    SCORES + "y = Softmax<axis=1>(s)": "BTT zeros=1",
    SCORES + "y = Softmax<axis=0>(s)": "no: it normalizes over the tokens of a row",
    SCORES + "y = LogSoftmax(s)": "no: it normalizes over keys, and its result for other sequences "
    "is not 0",
    SCORES + "y = Hardmax(s)": "no: it normalizes over keys, and its result for other sequences is "
    "not 0",
    SCORES + "t = Transpose<perm=[1,0,2]>(s) y = Softmax(t)": "no: the batch is not the first axis "
    "of its scores",
    SCORES + "t = Transpose<perm=[1,2,0]>(s) y = Softmax<axis=1>(t)": "no: the batch is not the "
    "first axis of its scores",
    PLACES + " u = Unsqueeze(at, l1) d = Sub(u, at) f = Cast<to=1>(d) y = Softmax(f)":
        "no: it normalizes over the tokens of a row",
}  # fmt: skip


@pytest.mark.parametrize("nodes", SOFTMAXES)
def test_softmax_over_features_or_over_the_keys_of_an_attention(nodes: str) -> None:
    state = interpreted(of_nodes(nodes))
    assert relation(state) == SOFTMAXES[nodes]
    assert edits(state) == (["Mask"] if "zeros" in SOFTMAXES[nodes] else [])


def test_softmax_before_opset_13_is_over_several_axes() -> None:
    text = """(float[B,S,4] x) => (float[B,S,4] y) { y = Softmax<axis=1>(x) }"""
    found = relation(interpreted(text, opset=11))
    assert found == "no: it normalizes over several axes at once"


def test_heads_beside_the_batch_are_masked_as_often() -> None:
    nodes = """split = Constant<value_ints=[0,0,2,2]>() h = Reshape(x, split) s = Shape(x)
        q = Transpose<perm=[0,2,1,3]>(h) n1 = Slice(s, l1, l2) to = Concat<axis=0>(m1, n1, l2)
        q3 = Reshape(q, to) k = Transpose<perm=[0,2,1]>(q3) a = MatMul(q3, k) y = Softmax(a)"""
    state = interpreted(of_nodes(nodes))
    assert relation(state) == "HTT zeros=2"
    (edit,) = state.edits
    assert isinstance(edit, MaskEdit)
    assert edit.parts == 2


SUMS = {
    "y = CumSum(x, one)": "no: it sums floats over the tokens of a row",
    INTS + "y = CumSum(i, one)": "BT.",
    INTS + "y = CumSum(i, minus)": "BT.",
    INTS + "y = CumSum<reverse=1>(i, one)": "no: it sums from the last token on",
    INTS + "y = CumSum(i, zero)": "no: it combines the tokens of a row",
    INTS + "y = CumSum(i, two)": "BT.",
    INTS + "y = CumSum(i, place)": "no: its axis is not constant",
    INTS + "k = Transpose<perm=[1,0,2]>(i) y = CumSum(k, zero)": "no: it combines the tokens of a "
    "row",
    PLACES + " y = CumSum(at, zero)": "T",
    PLACES + " u = Unsqueeze(at, l1) d = Sub(u, at) y = CumSum(d, one)": "no: it combines the "
    "tokens of a row",
    "r = Relu(w) y = CumSum(r, zero)": ".",
}


@pytest.mark.parametrize("nodes", SUMS)
def test_running_sums(nodes: str) -> None:
    constants = "two = Constant<value_int=2>() minus = Constant<value_int=-2>() "
    state = interpreted(of_nodes(constants + nodes, "float[B,S,4] x, int64 place"))
    assert relation(state) == SUMS[nodes]
    is_summed = SUMS[nodes] == "BT." and ", two" not in nodes
    assert edits(state) == (["Sum"] if is_summed else [])


REDUCTIONS = {
    "y = ReduceMean<keepdims=0>(x, l1)": "B. pooled",
    "y = ReduceMean(x, l1)": "B.. pooled",
    "y = ReduceSum<keepdims=0>(x, l1)": "B. pooled",
    INTS + "y = ReduceSum<keepdims=0>(i, l1)": "B. pooled",
    INTS + "y = ReduceMean<keepdims=0>(i, l1)": "no: it takes the mean of integers",
    "y = ReduceSum(x, l0)": "no: it combines the rows of the batch",
    "y = ReduceSum(x)": "no: it combines the tokens of a row",
    "y = ReduceSum(x, l2)": "BT.",
    "y = ReduceMean<keepdims=0>(x, l2)": "BT",
    "y = ReduceMax(x, l1)": "no: it combines the tokens of a row",
    SCORES + "y = ReduceSum(s, l2)": "no: it takes a part of pairs of tokens",
    PLACES + " y = ReduceSum(at, l0)": "no: it combines positions",
    "y = ReduceSum(x, computed)": "no: its axes are not constant",
}


@pytest.mark.parametrize("nodes", REDUCTIONS)
def test_reductions_over_tokens_are_of_each_sequence(nodes: str) -> None:
    state = interpreted(of_nodes(nodes, "float[B,S,4] x, int64[1] computed"))
    assert relation(state) == REDUCTIONS[nodes]
    assert edits(state) == (["Pool"] if "pooled" in REDUCTIONS[nodes] else [])


CHOICES = {
    "y = ArgMax<axis=1, keepdims=0>(ids)": "B number chosen",
    "y = ArgMax<axis=-1, keepdims=0>(ids)": "B number chosen",
    "y = ArgMax<axis=1>(ids)": "no: it combines the tokens of a row",
    "y = ArgMax<axis=0, keepdims=0>(ids)": "no: it combines the rows of the batch",
    "y = ArgMax<axis=1, keepdims=0>(floats)": "no: it takes the largest of floats, which may be "
    "NaN",
    "y = ArgMax<axis=1, keepdims=0>(x)": "no: it combines the tokens of a row",
    "y = ArgMax<axis=2, keepdims=0>(x)": "BT",
    "t = ReduceSum<keepdims=0>(ids, l1) y = ArgMax<axis=0, keepdims=0>(t)": "no: it combines the "
    "tokens of a row",
}


@pytest.mark.parametrize("nodes", CHOICES)
def test_the_place_of_the_largest_number_of_each_row(nodes: str) -> None:
    floats = "floats = Cast<to=1>(ids) "
    inputs = "float[B,S,4] x, int64[B,S] ids"
    assert relation_of(floats + nodes, inputs, packed=("x", "ids")) == CHOICES[nodes]


PRODUCTS = {
    "y = MatMul(x, ww)": "BT.",
    "y = MatMul(x, w)": "BT",
    "y = MatMul(w, k)": "BT",
    SCORES + "y = Neg(s)": "BTT",
    WEIGHTS + "y = MatMul(p, x)": "BT.",
    WEIGHTS + "n = Neg(p) y = MatMul(n, x)": "no: it sums over the tokens of a row",
    WEIGHTS + "q = Transpose<perm=[0,2,1]>(p) y = MatMul(q, x)": "no: it sums over the tokens of a "
    "row",
    WEIGHTS + "q = Transpose<perm=[0,2,1]>(p) y = MatMul(k, q)": "B.T",
    SCORES + "y = MatMul(s, x)": "no: it sums over the tokens of a row",
    SCORES + "y = MatMul(k, x)": "no: it sums over the tokens of a row",
    FLAT + "y = Gemm(f, ww)": "F.",
    FLAT + "y = MatMul(f, ww)": "F.",
    FLAT + "t = Transpose<perm=[1,0]>(f) y = Gemm(f, t)": "no: it multiplies tokens with tokens",
    "y = Gemm(ww, ww)": "..",
    PLACES + " f = Cast<to=1>(at) y = MatMul(f, x)": "no: it sums over the tokens of a row",
    PLACES + " u = Unsqueeze(at, l1) f = Cast<to=1>(u) e = Unsqueeze(w, l0) y = Gemm(f, e)":
        "no: it multiplies positions as vectors, or without a batch",
}  # fmt: skip


@pytest.mark.parametrize("nodes", PRODUCTS)
def test_products_over_features_or_over_masked_keys(nodes: str) -> None:
    prefix = "" if "k = " in nodes else "k = Transpose<perm=[0,2,1]>(x) "
    assert relation_of(prefix + nodes) == PRODUCTS[nodes]


EINSUMS = {
    'y = Einsum<equation="bik,bjk->bij">(x, x)': "BTT",
    'y = Einsum<equation="bik,bjk">(x, x)': "no: it sums over the tokens of a row",
    'y = Einsum<equation="bik,kl->bil">(x, ww)': "BT.",
    'y = Einsum<equation="bik,bil->bkl">(x, x)': "no: it sums over the tokens of a row",
    'y = Einsum<equation="bik->ik">(x)': "no: it sums over the tokens of a row",
    'y = Einsum<equation="...k,kl->...l">(x, ww)': "no: its equation has an ellipsis, or a letter "
    "twice in its result",
    WEIGHTS + 'y = Einsum<equation="bij,bjk->bik">(p, x)': "BT.",
    WEIGHTS + 'y = Einsum<equation="bij,bik->bjk">(p, x)': "no: it sums over the tokens of a row",
}


@pytest.mark.parametrize("nodes", EINSUMS)
def test_einsum(nodes: str) -> None:
    assert relation_of(nodes) == EINSUMS[nodes]


def test_a_term_of_positions_gets_the_letter_of_the_rows() -> None:
    nodes = """u = Unsqueeze(at, l1) f = Cast<to=1>(u) e = Unsqueeze(w, l0) t = MatMul(f, e)
        y = Einsum<equation="bik,ik->bik">(x, t)"""
    state = interpreted(of_nodes(f"{PLACES} {nodes}"))
    assert relation(state) == "BT."
    (edit,) = state.edits
    assert isinstance(edit, TermEdit)
    assert (edit.slot, edit.label, edit.terms, edit.parts) == (1, "b", ("bik", "ik", "bik"), 1)


def test_a_term_of_positions_needs_no_letter_without_rows() -> None:
    nodes = """u = Unsqueeze(at, l1) f = Cast<to=1>(u) e = Unsqueeze(w, l0) t = MatMul(f, e)
        y = Einsum<equation="ik,jk->ij">(t, t)"""
    state = interpreted(of_nodes(f"{PLACES} {nodes}"))
    assert (relation(state), edits(state)) == ("TT", [])
