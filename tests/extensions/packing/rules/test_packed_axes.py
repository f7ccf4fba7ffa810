"""Packing of operators that move, add, take or remove axes, and of those that make positions."""

import pytest

from tests.extensions.packing.relations import (
    PLACES,
    edits,
    interpreted,
    of_nodes,
    relation,
    relation_of,
)

SCORES = "k = Transpose<perm=[0,2,1]>(x) sc = MatMul(x, k) "
WEIGHTS = SCORES + "p = Softmax(sc) "
SIZES = "s = Shape(x) b = Slice(s, l0, l1) n = Slice(s, l1, l2) "
FLAT = "flat = Constant<value_ints=[-1,4]>() f = Reshape(x, flat) "
SPLIT = "split = Constant<value_ints=[0,0,2,2]>() h = Reshape(x, split) "
TURNED = SPLIT + "q = Transpose<perm=[0,2,1,3]>(h) "
BESIDE = SIZES + TURNED + "to = Concat<axis=0>(m1, n, l2) q3 = Reshape(q, to) "
SPLITS = "no: it splits or merges an axis of tokens"
REMOVES = "no: it removes an axis of tokens"

MOVES = {
    "y = Transpose<perm=[1,0,2]>(x)": "TB.",
    "y = Transpose(x)": ".TB",
    WEIGHTS + "y = Transpose<perm=[2,0,1]>(p)": "TBT zeros=0",
    "y = Unsqueeze(x, l1)": "B.T.",
    "y = Unsqueeze(x, l0)": ".BT.",
    WEIGHTS + "y = Unsqueeze(p, l1)": "B.TT zeros=3",
    "u = Unsqueeze(x, l1) y = Squeeze(u, l1)": "BT.",
    "y = Flatten<axis=2>(x)": "F.",
    "y = Flatten<axis=1>(x)": SPLITS,
    "y = Flatten<axis=0>(x)": SPLITS,
    "y = Flatten(w)": "..",
    PLACES + " y = Unsqueeze(at, l0)": ".T index=0,1",
    PLACES + " u = Unsqueeze(at, l0) y = Transpose<perm=[1,0]>(u)": "T. index=1,0",
}

RESHAPES = {
    FLAT + "y = Neg(f)": "F.",
    FLAT + "s = Shape(x) y = Reshape(f, s)": "BT.",
    FLAT + "y = Reshape(f, m1)": SPLITS,
    SIZES + FLAT + "to = Concat<axis=0>(n, b, m1) y = Reshape(f, to)": SPLITS,
    "t = Transpose<perm=[1,0,2]>(x) " + FLAT.replace("(x,", "(t,") + "y = Neg(f)": "Q.",
    SIZES
    + "t = Transpose<perm=[1,0,2]>(x) "
    + FLAT.replace("(x,", "(t,")
    + "to = Concat<axis=0>(n, b, m1) y = Reshape(f, to)": "TB.",
    SPLIT + "y = Neg(h)": "BT..",
    BESIDE + "y = Neg(q3)": "HT.",
    BESIDE + "back = Concat<axis=0>(b, l2, n, l2) y = Reshape(q3, back)": "B.T.",
    BESIDE + "back = Concat<axis=0>(b, m1, l2) y = Reshape(q3, back)": SPLITS,
    "to = Constant<value_ints=[0,2,-1,4]>() y = Reshape(x, to)": SPLITS,
    "to = Constant<value_ints=[0,-1]>() y = Reshape(x, to)": SPLITS,
    SIZES + "to = Concat<axis=0>(n, m1) y = Reshape(table, to)": "no: a dim of its result, S, has "
    "no known relation to the tokens",
    WEIGHTS + SIZES + "to = Concat<axis=0>(m1, n, n) y = Reshape(p, to)": "BTT zeros=2",
}


@pytest.mark.parametrize("nodes", [*MOVES, *RESHAPES])
def test_axes_with_a_role_stay_whole(nodes: str) -> None:
    assert relation_of(nodes) == {**MOVES, **RESHAPES}[nodes]


TARGETS = {
    "y = Reshape(x, z)": "no: its target depends on the sequence",
    "t = Gather<axis=1>(x, l0) s = Shape(x) y = Reshape(t, s)": "no: it reshapes a value of whole "
    "sequences by the sizes of rows",
    "t = Gather<axis=1>(x, l0) s = Shape(t) y = Reshape(x, s)": "no: it reshapes a value of whole "
    "sequences by the sizes of rows",
    "t = Gather<axis=1>(x, l0) s = Shape(t) y = Reshape(t, s)": "B.. pooled",
}


@pytest.mark.parametrize("nodes", TARGETS)
def test_the_sizes_of_a_target_are_those_of_the_same_batch(nodes: str) -> None:
    inputs = "float[B,S,4] x, int64[B,S] z"
    assert relation_of(nodes, inputs, packed=("x", "z")) == TARGETS[nodes]


EXPANDS = {
    SIZES + "y = Expand(w, s)": "BT.",
    SIZES + "to = Concat<axis=0>(b, n, l1) u = Unsqueeze(w, l0) y = Expand(u, to)": "BT.",
    SIZES + "y = Expand(x, s)": "BT.",
    "to = Constant<value_ints=[3,1,1,1]>() y = Expand(x, to)": ".BT.",
    PLACES + " n1 = Slice(s, l0, l2) y = Expand(at, n1)": "BT",
    "t = Gather<axis=1>(x, zero) to = Constant<value_ints=[3,1,1]>() y = Expand(t, to)":
        ".B. pooled",
    "s = Shape(x) y = Expand(s, l2)": "no: it repeats a size",
}  # fmt: skip


@pytest.mark.parametrize("nodes", EXPANDS)
def test_expand(nodes: str) -> None:
    assert relation_of(nodes) == EXPANDS[nodes]


TILES = {
    "to = Constant<value_ints=[1,1,3]>() y = Tile(x, to)": "BT.",
    "to = Constant<value_ints=[1,2,1]>() y = Tile(x, to)": "no: it repeats tokens or rows",
    "to = Constant<value_ints=[2,1,1]>() y = Tile(x, to)": "no: it repeats tokens or rows",
    "y = Tile(x, often)": "no: how often it repeats each axis is not known",
    SIZES + "u = Unsqueeze(w, l0) to = Concat<axis=0>(b, l1) y = Tile(u, to)": "B.",
    SIZES + "u = Unsqueeze(w, l0) to = Concat<axis=0>(n, l1) y = Tile(u, to)": "T.",
    SIZES + "to = Concat<axis=0>(b, l1) y = Tile(ww, to)": "H.",
    SIZES + "to = Concat<axis=0>(n, l1) y = Tile(ww, to)": "no: it makes a dim 4*S of the "
    "sizes of batch and sequences",
    SIZES + "n0 = Squeeze(n, l0) at = Range(zero, n0, one) u = Unsqueeze(at, l0) "
    "to = Concat<axis=0>(b, l1) y = Tile(u, to)": "no: it repeats positions for each row",
    "t = Gather<axis=1>(x, zero) to = Constant<value_ints=[1,3]>() y = Tile(t, to)": "B. pooled",
}


@pytest.mark.parametrize("nodes", TILES)
def test_tile(nodes: str) -> None:
    assert relation_of(nodes, "float[B,S,4] x, int64[3] often") == TILES[nodes]


FILLS = {
    SIZES + "y = ConstantOfShape(s)": "BT.",
    SIZES + "to = Concat<axis=0>(n, n) y = ConstantOfShape(to)": "TT",
    SIZES + "m = Mul(b, n) y = ConstantOfShape(m)": "F",
    SIZES + "m = Mul(b, l2) y = ConstantOfShape(m)": "H",
    SIZES + "m = Add(n, l1) y = ConstantOfShape(m)": "no: it makes a dim 1+S of the sizes of "
    "batch and sequences",
    "t = Gather<axis=1>(x, zero) s = Shape(t) y = ConstantOfShape(s)": "no: the shape of its "
    "result is unknown",
    "y = ConstantOfShape(l2)": ".",
}


@pytest.mark.parametrize("nodes", FILLS)
def test_elements_that_are_all_equal_have_the_roles_of_their_dims(nodes: str) -> None:
    assert relation_of(nodes) == FILLS[nodes]


GATHERS = {
    "y = Gather<axis=2>(x, zero)": "BT",
    "y = Gather<axis=2>(x, l2)": "BT.",
    "y = Gather(table, ids)": "BT.",
    "y = Gather<axis=1>(table, ids)": ".BT",
    "y = Gather<axis=2>(x, ids)": "no: it takes other places for each token",
    "y = Gather<axis=1>(x, zero)": "B.",
    "y = Gather<axis=1>(x, l0)": "B..",
    "y = Gather<axis=1>(x, one)": "no: it takes another token than the first of a sequence",
    "y = Gather<axis=1>(x, m1)": "no: it takes another token than the first of a sequence",
    "d = Constant<value_ints=[0,0]>() y = Gather<axis=1>(x, d)": "no: it takes another token than "
    "the first of a sequence",
    "y = Gather<axis=0>(x, zero)": "no: it takes some of the tokens or rows",
    "y = Gather<axis=1>(x, other)": "no: it takes another token than the first of a sequence",
    SCORES + "y = Gather<axis=1>(sc, zero)": "no: it takes a part of pairs of tokens",
    "s = Shape(x) n = Gather(s, one) y = Gather<axis=2>(x, n)": "no: it takes places that depend "
    "on sizes",
    PLACES + " y = Gather(table, at)": "T.",
    PLACES + " y = Gather(at, zero)": "",
    PLACES + " u = Unsqueeze(at, l1) d = Sub(u, at) y = Gather(d, zero)": "no: it combines "
    "positions",
    PLACES + " y = Gather(table, rows)": "no: it takes some of the tokens or rows",
}


@pytest.mark.parametrize("nodes", GATHERS)
def test_gather(nodes: str) -> None:
    inputs = "float[B,S,4] x, int64[B,S] ids, int64 other"
    state = interpreted(of_nodes(nodes, inputs), packed=("x", "ids"))
    is_pool = "Gather<axis=1>(x, " in nodes and not GATHERS[nodes].startswith("no")
    assert relation(state) == GATHERS[nodes] + (" pooled" if is_pool else "")
    assert edits(state) == (["Pool"] if is_pool else [])


ROW_MAJOR = f"""{PLACES} flat = Constant<value_ints=[-1]>() f2 = ReduceMax<keepdims=0>(x, l2)
    f = Reshape(f2, flat) """


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        ("c = Mul(rows, n0) u = Unsqueeze(c, l1) i = Add(u, at)", "BT"),
        ("c = Mul(rows, n0) u = Unsqueeze(c, l1) b = Cast<to=9>(at) t = Cast<to=7>(b) "
         "i = Add(u, t)", "no"),
        ("c = Mul(rows, b0) u = Unsqueeze(c, l1) i = Add(u, at)", "no"),
        ("u = Unsqueeze(rows, l1) i = Add(u, at)", "no"),
        ("c = Mul(rows, n0) i = Identity(ids)", "no"),
    ],
)  # fmt: skip
def test_a_row_major_index_takes_each_token(index: str, expected: str) -> None:
    found = relation_of(
        f"{ROW_MAJOR} {index} y = Gather(f, i)", "float[B,S,4] x, int64[B,S] ids",
        packed=("x", "ids"),
    )  # fmt: skip
    assert found.split(":")[0] == expected


SLICES = {
    "y = Slice(x, l1, end)": "no: it takes some of the tokens or rows",
    "y = Slice(x, l0, end, l1)": "BT.",
    "y = Slice(x, l0, l2, l2)": "BT.",
    "y = Slice(x, l1, end, l2)": "BT.",
    "y = Slice(x, l0, l1, l1)": "B.. pooled",
    "y = Slice(x, l0, l2, l1)": "no: it takes some of the tokens or rows",
    "y = Slice(x, l1, end, l1)": "no: it takes some of the tokens or rows",
    "y = Slice(x, l0, l1, l0)": "no: it takes some of the tokens or rows",
    "y = Slice(x, l0, end, l1, l2)": "no: it takes some of the tokens or rows",
    "y = Slice(x, l0, other, l1)": "no: its bounds are not known",
    "y = Slice(x, l0, l1, other)": "no: its axes are not known",
    "a = Constant<value_ints=[0,0]>() e = Constant<value_ints=[1,2]>() "
    "ax = Constant<value_ints=[1,2]>() y = Slice(x, a, e, ax)": "no: it takes the first token and "
    "other parts at once",
    SIZES + "y = Slice(x, l0, n, l1)": "BT.",
    SIZES + "y = Slice(x, l0, n, l2)": "no: it takes some of the tokens or rows",
    SIZES + "y = Slice(s, l0, l2)": "sizes",
    SIZES + "y = Slice(table, l0, n)": "T.",
    SIZES + "y = Slice(table, l1, n)": "no: it takes some of the tokens or rows",
    SIZES + "y = Slice(table, l0, n, l0, l2)": "no: it takes some of the tokens or rows",
    SIZES + "m = Add(n, l1) y = Slice(table, l0, m)": "no: it takes positions up to an unknown one",
    SIZES + "y = Slice(table, n, end)": "no: it takes some of the tokens or rows",
    SIZES + "y = Slice(table, l0, end, l0, n)": "no: it takes some of the tokens or rows",
}


@pytest.mark.parametrize("nodes", SLICES)
def test_slice(nodes: str) -> None:
    state = interpreted(of_nodes(nodes, "float[B,S,4] x, int64[1] other"))
    found = relation(state)
    assert found == SLICES[nodes]
    assert edits(state) == (["Pool"] if "pooled" in found else [])


RANGES = {
    PLACES + " y = Neg(at)": "T",
    "s = Shape(x) n = Gather(s, one) y = Range(zero, n, one)": "T index=1",
    "s = Shape(x) n = Gather(s, one) m = Add(n, one) y = Range(one, m, one)": "T",
    "s = Shape(x) n = Gather(s, one) m = Add(n, one) y = Range(zero, m, one)": "no: it makes a dim "
    "1+S of the sizes of batch and sequences",
    "s = Shape(x) b = Gather(s, zero) y = Range(zero, b, one)": "B index=1 number",
    "s = Shape(x) b = Gather(s, zero) m = Add(b, one) y = Range(one, m, one)": "no: it counts "
    "something else than tokens or rows",
    "five = Constant<value_int=5>() y = Range(zero, five, one)": ".",
    "y = Range(zero, other, one)": ".",
    "t = Gather<axis=1>(x, zero) s = Shape(t) b = Gather(s, zero) y = Range(zero, b, one)": "no: "
    "it counts something else than tokens or rows",
    "s = Shape(x) n = Gather(s, one) y = Range(n, n, one)": "no: its start depends on the sequence",
    "s = Shape(x) n = Gather(s, one) y = Range(zero, n, n)": "no: its step depends on the sequence",
}


@pytest.mark.parametrize("nodes", RANGES)
def test_range(nodes: str) -> None:
    assert relation_of(nodes, "float[B,S,4] x, int64 other") == RANGES[nodes]
