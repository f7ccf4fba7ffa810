"""Packing of indices of rows and columns, and of what reads at them."""

import pytest

from tests.extensions.packing.relations import (
    PLACES,
    edits,
    interpreted,
    of_nodes,
    relation,
    relation_of,
)
from tiered.extensions.packing.packed_values import ChoiceEdit

SOME = "no: it takes some of the tokens or rows"
NUMBERS = "no: it computes with row numbers"
BOTH = f"""{PLACES} row = Unsqueeze(rows, l1) column = Unsqueeze(at, l0) both = Max(row, z)
    size = Slice(s, l0, l2) r = Expand(row, size) c = Expand(column, size)
    r1 = Unsqueeze(r, l2) c1 = Unsqueeze(c, l2) """
CHOSEN = f"""{PLACES} e = ArgMax<axis=1, keepdims=0>(ids) row = Unsqueeze(rows, m1)
    c = Unsqueeze(e, m1) """

INDICES = {
    "place = Concat<axis=-1>(r1, c1) y = GatherND(x, place)": "BT.",
    "place = Concat<axis=2>(r1, c1) y = GatherND(x, place)": "BT.",
    "place = Concat<axis=-1>(r1, c1) y = GatherND(ids, place)": "BT",
    "place = Concat<axis=-1>(c1, r1) y = GatherND(x, place)": SOME,
    "place = Concat<axis=-1>(r1, r1) y = GatherND(x, place)": SOME,
    "place = Concat<axis=-1>(r1, c1) y = GatherND<batch_dims=1>(x, place)": SOME,
    "place = Concat<axis=-1>(r1, c1) k = Transpose<perm=[1,0,2]>(x) y = GatherND(k, place)": SOME,
    "place = Concat<axis=-1>(r1, c1) y = GatherND(table, place)": SOME,
    "y = GatherND(x, d)": SOME,
    "y = Concat<axis=0>(r1, r1)": NUMBERS,
    "y = Concat<axis=-1>(r, r)": NUMBERS,
    "y = Concat<axis=-1>(r1, ids1)": "no: it joins indices of different axes",
    "y = Concat<axis=-1>(r1, s1)": NUMBERS,
    "y = Identity(r)": NUMBERS,
    "y = Expand(row, size)": "BT index=1,0 number",
    "q = Constant<value_ints=[3,1,1]>() y = Expand(row, q)": ".B. index=0,1,0 number",
}


@pytest.mark.parametrize("nodes", INDICES)
def test_a_value_at_each_row_and_column(nodes: str) -> None:
    inputs = "float[B,S,4] x, int64[B,S] ids, int64[1,1] z"
    prefix = "ids1 = Unsqueeze(ids, l2) d = Unsqueeze(ids1, l2) s1 = Unsqueeze(s, l0) "
    found = relation_of(BOTH + prefix + nodes, inputs, packed=("x", "ids"))
    assert found == INDICES[nodes]


def test_columns_that_something_else_reads_too_are_positions() -> None:
    nodes = "place = Concat<axis=-1>(r1, c1) y = GatherND(x, place) "
    inputs, joins = "float[B,S,4] x, int64[1,1] z", "no: it joins indices of different axes"
    for more, output, expected in (
        ("other = Neg(c)", "", ("BT", joins)),
        ("", ", int64[B,S] c", ("BT", joins)),
        ("", ", int64[B,S,1] c1", ("BT", joins)),
        ("", ", float[B,S,4] y", ("BT index=0,1 number", "BT.")),
    ):
        text = of_nodes(BOTH + nodes + more, inputs).replace("(float out)", f"(float out{output})")
        state = interpreted(text)
        assert (relation(state, "c"), relation(state)) == expected, (more, output)


CHOICES = {
    "at2 = Concat<axis=-1>(row, c) y = GatherND(x, at2)": "B. pooled",
    "at2 = Concat<axis=-1>(c, row) y = GatherND(x, at2)": "no: it joins indices of different axes",
    "at2 = Concat<axis=-1>(row, c) y = GatherND(ids, at2)": SOME,
    "at2 = Concat<axis=-1>(row, c) u = Unsqueeze(x, m1) y = GatherND(u, at2)": SOME,
    "at2 = Concat<axis=-1>(row, c) y = GatherND<batch_dims=1>(x, at2)": SOME,
    "double = Add(rows, rows) r2 = Unsqueeze(double, m1) at2 = Concat<axis=-1>(r2, c) "
    "y = GatherND(x, at2)": SOME,
    "f = Reshape(x, flat) o = Mul(rows, n0) p = Add(o, e) y = Gather(f, p)": "B. pooled",
    "f = Reshape(x, flat) o = Mul(rows, n0) p = Add(e, o) y = Gather(f, p)": "B. pooled",
    "f = Reshape(x, flat) p = Add(rows, e) y = Gather(f, p)": NUMBERS,
    "f = Reshape(x, flat) o = Mul(rows, b0) p = Add(o, e) y = Gather(f, p)": NUMBERS,
    "f = Reshape(x, flat) y = Gather(f, e)": "B. pooled",
    "f = Reshape(x, flat) o = Mul(rows, n0) p = Add(o, at) y = Gather(f, p)": "no: it joins an "
    "axis of tokens with another one",
}


@pytest.mark.parametrize("nodes", CHOICES)
def test_the_token_that_an_arg_max_chooses(nodes: str) -> None:
    inputs = "float[B,S,4] x, int64[B,S] ids"
    prefix = "flat = Constant<value_ints=[-1,4]>() "
    state = interpreted(of_nodes(CHOSEN + prefix + nodes, inputs), packed=("x", "ids"))
    assert relation(state) == CHOICES[nodes]
    if "pooled" in CHOICES[nodes]:
        (edit,) = state.edits
        assert isinstance(edit, ChoiceEdit)
        assert (edit.node.output.name, edit.chooser.op_type) == ("y", "ArgMax")
    else:
        assert not edits(state)


ELEMENTS = {
    "y = GatherElements<axis=2>(x, j)": "BT.",
    "y = GatherElements<axis=-1>(x, j)": "BT.",
    "y = GatherElements<axis=1>(x, j)": SOME,
    "y = GatherElements(x, j)": SOME,
    "y = GatherElements<axis=2>(x, fixed)": "no: it takes other places for each token",
    "t = Gather<axis=1>(x, l0) y = GatherElements<axis=2>(t, fixed)": "no: it takes other places "
    "for each token",
    "t = Gather<axis=1>(x, l0) u = Gather<axis=1>(j, l0) y = GatherElements<axis=2>(t, u)":
        "B.. pooled",
    "y = GatherElements(w, k)": ".",
}  # fmt: skip


@pytest.mark.parametrize("nodes", ELEMENTS)
def test_elements_of_each_token(nodes: str) -> None:
    inputs = "float[B,S,4] x, int64[B,S,2] j, int64[1,1,2] fixed, int64[2] k"
    assert relation_of(nodes, inputs, packed=("x", "j")) == ELEMENTS[nodes]
