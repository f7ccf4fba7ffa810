"""Packing of operators that compute each element from the elements at the same index."""

import pytest

from tests.extensions.packing.relations import (
    PLACES,
    edits,
    interpreted,
    of_nodes,
    relation,
    relation_of,
)
from tiered.extensions.packing.packed_values import PositionEdit

SCORES = "k = Transpose<perm=[0,2,1]>(x) s = MatMul(x, k) "
WEIGHTS = SCORES + "p = Softmax(s) "
FIRST = "t = Gather<axis=1>(x, l0) "

RELATIONS = {
    # One tensor.
    "y = Relu(x)": "BT.",
    "y = Clip(x, f0, f1)": "BT.",
    "y = CastLike(x, w)": "BT.",
    "r = Relu(w) y = Neg(r)": ".",
    "y = Clip(x, f0, m)": "BT.",
    # Attention weights: what keeps zeros.
    WEIGHTS + "y = Cast<to=10>(p)": "BTT zeros=2",
    WEIGHTS + "y = Identity(p)": "BTT zeros=2",
    WEIGHTS + "y = Dropout(p)": "BTT zeros=2",
    WEIGHTS + "y = Exp(p)": "BTT",
    WEIGHTS + "n = IsNaN(p) y = Where(n, f0, p)": "BTT zeros=2",
    WEIGHTS + "n = IsNaN(p) y = Where(n, p, f0)": "BTT zeros=2",
    WEIGHTS + "n = IsNaN(p) y = Where(n, f1, p)": "BTT",
    WEIGHTS + "n = IsNaN(p) u = Unsqueeze(p, l1) y = Where(n, f0, u)": "BBTT zeros=3",
    WEIGHTS + "y = Mul(p, f0)": "BTT",
    # Numbers of rows and columns.
    PLACES + " y = Identity(at)": "T index=1",
    PLACES + " y = Cast<to=6>(at)": "T index=1",
    PLACES + " y = Cast<to=7>(at)": "T index=1",
    PLACES + " y = Cast<to=9>(at)": "T",
    PLACES + " y = Cast<to=3>(at)": "T",
    PLACES + " y = Neg(at)": "T",
    PLACES + " y = Cast<to=6>(rows)": "B index=1 number",
    PLACES + " y = Cast<to=9>(rows)": "no: it computes with row numbers",
    PLACES + " y = Identity(rows)": "no: it computes with row numbers",
    PLACES + " y = Mul(rows, n0)": "B index=S number",
    PLACES + " y = Mul(n0, rows)": "B index=S number",
    PLACES + " y = Mul(rows, three)": "B index=3 number",
    PLACES + " c = Mul(rows, n0) u = Unsqueeze(c, l1) y = Add(u, at)": "BT index=S,1 number",
    PLACES + " c = Mul(rows, n0) u = Unsqueeze(c, l1) y = Add(at, u)": "BT index=S,1 number",
    PLACES + " c = Mul(rows, n0) y = Add(c, c)": "B index=2*S number",
    PLACES + " y = Sub(rows, at)": "no: it computes with row numbers",
    PLACES + " y = Mul(rows, rows)": "no: it computes with row numbers",
    PLACES + " y = Mul(rows, factor)": "no: it computes with row numbers",
    PLACES + " y = Add(rows, n0)": "no: it computes with row numbers",
    PLACES + " y = Add(rows, at)": "no: it joins an axis of tokens with another one",
    PLACES + " u = Unsqueeze(at, l1) y = Add(u, at)": "TT",
    # Sizes.
    PLACES + " y = Add(at, n0)": "no: it computes with a size of the batch or of sequences",
    PLACES + " y = Mul(n0, n0)": "sizes",
    # Whole sequences.
    FIRST + "y = Add(t, t)": "B.. pooled",
    FIRST + "y = Add(x, t)": "no: it joins tokens with a value of whole sequences",
    FIRST + "y = Add(t, w)": "B.. pooled",
}
"""The relation of y."""


@pytest.mark.parametrize("nodes", RELATIONS)
def test_the_relation_of_a_result(nodes: str) -> None:
    inputs = "float[B,S,4] x, float m, int64[1] factor"
    found = relation_of("three = Constant<value_int=3>() " + nodes, inputs)
    assert found == RELATIONS[nodes]


BROADCASTS = {
    "float[1,1,4] z": "BT.",
    "float[4] z": "BT.",
    "float[1] z": "BT.",
    "float[1,7,4] z": "no: it joins an axis of tokens with one of 7",
    "float[3,1,4] z": "no: it joins an axis of tokens with one of 3",
    "float[2,1,1,4] z": ".BT.",
}


@pytest.mark.parametrize("operand", BROADCASTS)
@pytest.mark.parametrize("operands", ["x, z", "z, x"])
def test_an_operand_without_tokens_is_the_same_for_each(operand: str, operands: str) -> None:
    inputs = f"float[B,S,4] x, {operand}"
    assert relation_of(f"y = Add({operands})", inputs) == BROADCASTS[operand]


def test_tokens_of_one_axis_do_not_meet_those_of_another() -> None:
    found = relation_of("k = Transpose<perm=[1,0,2]>(x) y = Add(x, k)")
    assert found == "no: it joins an axis of tokens with another one"


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ("u = Unsqueeze(at, l1) f = Cast<to=1>(u) y = Add(x, f)", (1, 3, 0, 1)),
        ("u = Unsqueeze(at, l1) f = Cast<to=1>(u) y = Add(f, x)", (0, 3, 0, 1)),
    ],
)
def test_positions_that_meet_rows_are_gathered(
    nodes: str, expected: tuple[int, int, int, int]
) -> None:
    state = interpreted(of_nodes(f"{PLACES} {nodes}"))
    assert relation(state) == "BT."
    (edit,) = state.edits
    assert isinstance(edit, PositionEdit)
    assert (edit.slot, edit.rank, edit.batch, edit.parts) == expected


def test_positions_that_meet_heads_are_gathered_for_each() -> None:
    nodes = """split = Constant<value_ints=[0,0,2,2]>() h = Reshape(x, split)
        q = Transpose<perm=[0,2,1,3]>(h) d2 = Constant<value_ints=[2]>() m = Identity(m1)
        n1 = Slice(s, l1, l2) to = Concat<axis=0>(m, n1, d2) q3 = Reshape(q, to)
        u = Unsqueeze(at, l1) f = Cast<to=1>(u) y = Add(q3, f)"""
    state = interpreted(of_nodes(f"{PLACES} {nodes}"))
    assert relation(state) == "HT."
    (edit,) = state.edits
    assert isinstance(edit, PositionEdit)
    assert (edit.batch, edit.parts) == (0, 2)


def test_positions_alone_need_no_edit() -> None:
    state = interpreted(of_nodes(f"{PLACES} u = Unsqueeze(at, l1) y = Sub(u, at)"))
    assert relation(state) == "TT"
    assert not edits(state)


def test_positions_do_not_meet_a_flattened_batch() -> None:
    nodes = """flat = Constant<value_ints=[-1,4]>() f = Reshape(x, flat)
        u = Unsqueeze(at, l1) g = Cast<to=1>(u) y = Add(f, g)"""
    assert relation_of(f"{PLACES} {nodes}") == "no: it joins an axis of tokens with another one"


def test_a_dropout_that_may_train_is_random() -> None:
    inputs = "float[B,S,4] x, bool t"
    assert relation_of("y = Dropout(x, f0, t)", inputs) == "no: a Dropout in training is random"
    assert relation_of("y = Dropout(x, f0)") == "BT."
