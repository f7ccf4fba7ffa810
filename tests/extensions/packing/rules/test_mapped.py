"""Packing by axis maps: the role of an axis goes along its iterator."""

import pytest

from tests.extensions.packing.relations import PLACES, relation_of

RELATIONS = {
    # The axes of tokens are parallel, others may be combined.
    "y = LayerNormalization(x, w)": "BT.",
    "y = LayerNormalization<axis=1>(x, f1)": "no: it combines the tokens of a row",
    "y = ReduceMax<keepdims=0>(x, l2)": "BT",
    "y = ReduceMax(x, l2)": "BT.",
    "y = ReduceMax(x, l1)": "no: it combines the tokens of a row",
    "y = ReduceMax(x, l0)": "no: it combines the tokens of a row",
    "y = Concat<axis=2>(x, x)": "BT.",
    "y = Concat<axis=1>(x, x)": "no: it appends to an axis of tokens",
    "y, z = Split<axis=2, num_outputs=2>(x)": "BT.",
    "y, z = Split<axis=1, num_outputs=2>(x)": "no: it splits an axis of tokens",
    "y, i = TopK(x, l1)": "BT.",
    "y, i = TopK<axis=1>(x, l1)": "no: it combines the tokens of a row",
    "y = Hardmax(x)": "BT.",
    "y = CumSum(x, two)": "BT.",
    "r = Relu(w) y = CumSum(r, zero)": ".",
    # Operands of different roles.
    "k = Transpose<perm=[1,0,2]>(x) y = Concat<axis=2>(x, k)": "no: it joins an axis of tokens "
    "with another one",
    "y = Concat<axis=2>(x, fixed)": "no: it joins an axis of tokens with another one",
    "y = BatchNormalization(x, v, v, v, v)": "no: it joins an axis of tokens with another one",
    # Positions, and values of whole sequences.
    PLACES + " u = Unsqueeze(at, l0) v2 = Unsqueeze(u, l2) f = Cast<to=1>(v2)"
    " y = Concat<axis=2>(x, f)": "no: it joins positions with tokens",
    PLACES + " u = Unsqueeze(at, l1) y = Concat<axis=1>(u, u)": "T.",
    "t = Gather<axis=1>(x, zero) y = LayerNormalization(t, w)": "B. pooled",
    "t = Gather<axis=1>(x, zero) y = Concat<axis=1>(t, t)": "B. pooled",
    "t = Gather<axis=1>(x, zero) y = Concat<axis=0>(t, t)": "no: it appends to an axis of tokens",
    "y, m, v2 = BatchNormalization<training_mode=1>(x, v, v, v, v)": "no: it is in training mode",
}
"""The relation of y."""


@pytest.mark.parametrize("nodes", RELATIONS)
def test_the_relation_of_a_result(nodes: str) -> None:
    inputs = "float[B,S,4] x, float[1,5,4] fixed, float[3] v"
    found = relation_of("two = Constant<value_int=2>() " + nodes, inputs)
    assert found == RELATIONS[nodes]


def test_an_operator_without_a_map_may_mix_tokens() -> None:
    assert relation_of("y = com.acme.F(x)") == "no: the operator may mix tokens: it has no rule"


@pytest.mark.parametrize(
    ("size", "expected"),
    [("1", "BT."), ("7", "no: it joins an axis of tokens with one of 7")],
)
def test_a_product_broadcasts_axes_of_one_only(size: str, expected: str) -> None:
    inputs = f"float[B,S,4] x, float[{size},4,4] z"
    assert relation_of("y = MatMul(x, z)", inputs) == expected


def test_an_operand_without_iterators_is_the_same_in_both_runs() -> None:
    nodes = f"{PLACES} k = Cast<to=7>(n0) kk = Unsqueeze(k, l0) y, i = TopK<axis=2>(x, kk)"
    assert relation_of(nodes) == "no: its second operand depends on the sequence"
