"""Numbers of samples: what computes with them, and the rows that they index."""

import pytest

from tests.analysis.batching.facts_of import X, fact_of, fact_or_why_not, facts_of, why_not
from tiered.analysis.batching.sample_facts import BatchRows, Columns, Step

HEAD = """(float[2,3] x, float[6] f, float[4,3] t) => (float[A,B] y) <int64 zero = {0}, int64 one = {1},
    int64 three = {3}, int64[1] two = {2}, int64[2] both = {3,3}, int64[2] differ = {1,2},
    int64[1] after = {1}, int64[3] places = {0,1,2}, int64[3] negative = {-1,0,1}, int64[1] flat = {-1},
    float[6] equal = {1,2,3,1,2,3}, float[2,3] pair = {1,2,3,1,2,3}> {
    s = Shape(x)  n = Gather(s, zero)  r = Range(zero, n, one)
    NODES
    z = Cast<to=1>(k)  w = ReduceSum<keepdims=0>(z)  y = Add(x, w) }"""
"""`r` numbers the samples: 0, 1."""


def step_of(line: str) -> Step:
    """Return what each further sample adds to `k`."""
    fact = fact_of(HEAD.replace("NODES", f"k = {line}"), of="k")
    assert isinstance(fact, BatchRows), fact
    return fact.step


@pytest.mark.parametrize(
    ("line", "step"),
    [
        ("Identity(r)", 1),
        ("Cast<to=6>(r)", 1),
        ("Cast<to=7>(r)", 1),
        ("Cast<to=1>(r)", None),
        ("Add(r, three)", 1),
        ("Add(three, r)", 1),
        ("Add(r, r)", 2),
        ("Mul(r, three)", 3),
        ("Mul(three, r)", 3),
        ("Mul(r, both)", 3),
        ("Mul(r, zero)", 0),
        ("Mul(r, r)", None),
        ("Neg(r)", None),
        ("Sub(three, r)", None),
        ("Div(r, three)", None),
        ("Max(r, one)", None),
    ],
)
def test_arithmetic_on_numbers_of_samples(line: str, step: Step) -> None:
    assert step_of(line) == step


def test_numbers_of_samples_keep_their_step_when_they_move() -> None:
    facts, _ = facts_of(HEAD.replace("NODES", "u = Unsqueeze(r, after)  k = Reshape(u, flat)"))
    assert facts["u"] == BatchRows(0, step=1)
    assert facts["k"] == BatchRows(0, step=1)


def test_other_operators_do_not_compute_with_numbers_of_samples() -> None:
    reason = why_not(HEAD.replace("NODES", "k = CumSum(r, zero)"), of="k")
    assert reason == "it computes with the numbers of samples"


def test_an_output_that_counts_the_samples_is_refused() -> None:
    text = HEAD.replace("NODES", "k = Identity(r)").replace("[A,B] y", "[A,B] y, int64[2] r")
    facts, state = facts_of(text)
    assert facts["r"] == BatchRows(0, step=1)
    assert not state.outputs


COLUMNS = """u = Unsqueeze(r, after)  a = Unsqueeze(places, zeros)
    zeros = Constant<value_ints=[0]>()  wide = Constant<value_ints=[2,3,1]>()
    last = Constant<value_ints=[-1]>()
    e = Expand(u, s)  b = Unsqueeze(e, last)
    o = Expand(a, s)  c = Unsqueeze(o, last)  """


def test_indices_of_several_axes_have_a_step_each() -> None:
    text = HEAD.replace("NODES", f"{COLUMNS} k = Concat<axis=-1>(b, c)")
    assert fact_of(text, of="k") == BatchRows(0, step=Columns((1, 0)))
    text = HEAD.replace("NODES", f"{COLUMNS} k = Concat<axis=2>(c, b, b)")
    assert fact_of(text, of="k") == BatchRows(0, step=Columns((0, 1, 1)))
    text = HEAD.replace("NODES", f"{COLUMNS} k = Concat<axis=1>(b, c)")
    assert fact_of(text, of="k") == BatchRows(0, step=None)


@pytest.mark.parametrize("line", ["Add(i, one)", "Mul(i, three)", "Add(one, i)"])
def test_arithmetic_on_columns_is_not_followed(line: str) -> None:
    text = HEAD.replace("NODES", f"{COLUMNS} i = Concat<axis=-1>(b, c)  k = {line}")
    assert fact_of(text, of="k") == BatchRows(0, step=None)


# --- the rows that they index ---------------------------------------------------------------------

ROWS = """m = Mul(r, three)  u = Unsqueeze(m, after)  i = Add(u, PLACES)  d = Reshape(x, flat)
    g = Gather(DATA, i)  k = Identity(g)"""


def rows(data: str = "d", places: str = "places", factor: str = "three") -> str:
    nodes = ROWS.replace("DATA", data).replace("PLACES", places).replace("three)", f"{factor})")
    return HEAD.replace("NODES", nodes)


def test_a_gather_takes_the_rows_of_each_sample() -> None:
    assert fact_of(rows(), of="k") == BatchRows(0)


def test_rows_that_count_from_the_end_are_refused() -> None:
    reason = why_not(rows(places="negative"), of="g")
    assert reason == "the places in 'i' may count from the end of the batch"


def test_rows_of_another_step_are_refused() -> None:
    reason = why_not(rows(factor="one"), of="g")
    assert reason == "it takes some of the samples, at the places in 'i'"


def test_rows_of_a_constant_that_has_equal_ones_for_each_sample_are_repeated() -> None:
    facts, state = facts_of(rows(data="equal"))
    assert facts["g"] == facts["k"] == BatchRows(0)
    assert len(state.edits) == 1


def test_numbers_index_no_data_of_another_size() -> None:
    for data in ("t", "x"):
        reason = why_not(rows(data=data), of="g")
        assert reason in (
            "it computes with the numbers of samples",
            "it takes some of the samples, at the places in 'i'",
        )


OUTER = "v = Transpose(x)  d = Reshape(v, flat)  m = Mul(r, three)  u = Unsqueeze(m, after)  "
"""`d` has three groups of both samples."""


@pytest.mark.parametrize(
    "nodes",
    [
        # along another axis than the samples of the data
        "u = Unsqueeze(r, after)  i = Mul(u, three)  g = Gather<axis=1>(x, i)",
        f"{OUTER} i = Add(u, places)  g = Gather(d, i)",
        f"{OUTER} w = Add(u, places)  i = Unsqueeze(w, two)  g = GatherND(d, i)",
        # the only column of the index is not that of the samples
        "v = Transpose(x)  u = Unsqueeze(r, after)  w = Add(u, places)  i = Unsqueeze(w, two)"
        "  g = GatherND(v, i)",
    ],
)
def test_rows_of_other_data_are_not_followed(nodes: str) -> None:
    nodes = f"{nodes}  k = Identity(g)".replace("w = ", "o = ").replace("(w, ", "(o, ")
    reason = why_not(HEAD.replace("NODES", nodes), of="g")
    assert reason == "it computes with the numbers of samples"


def test_data_that_all_samples_share_has_rows_for_each() -> None:
    reason = why_not(rows(data="f"), of="g")
    assert reason.startswith("its value 'f' bakes the batch of 2: it may have other numbers")
    text = rows(data="e").replace("float[4,3] t", "float[3] t")
    text = text.replace("g = Gather", "h = Concat<axis=0>(t, t)  e = Identity(h)  g = Gather")
    assert why_not(text, of="g").startswith("its value 'e' bakes the batch")


PAIRS = f"{COLUMNS} i = Concat<axis=-1>(b, c)  g = GatherND<ATTRIBUTES>(x, i)  k = Identity(g)"


def pairs(nodes: str = PAIRS, attributes: str = "batch_dims=0") -> str:
    return HEAD.replace("NODES", nodes.replace("ATTRIBUTES", attributes))


def test_a_gather_nd_takes_the_places_of_each_sample() -> None:
    assert fact_of(pairs(), of="k") == BatchRows(0)


def test_numbers_of_samples_in_another_column_are_refused() -> None:
    reason = why_not(pairs(PAIRS.replace("(b, c)", "(b, b)")), of="g")
    assert reason == "it takes other places for each sample"
    reason = why_not(pairs(attributes="batch_dims=1"), of="g")
    assert reason == "it computes with the numbers of samples"


def test_places_in_a_constant_that_has_equal_rows_for_each_sample() -> None:
    facts, state = facts_of(pairs(PAIRS.replace("(x, i)", "(pair, i)")))
    assert facts["g"] == BatchRows(0)
    assert len(state.edits) == 1
    facts, state = facts_of(
        pairs(PAIRS.replace("(x, i)", "(q, i)").replace("g =", "q = Transpose(pair)  g =")
              .replace("(b, c)", "(c, b)"))
    )  # fmt: skip
    assert facts["g"] == BatchRows(0)
    assert len(state.edits) == 1


# --- indices that are constant, or computed for one sample ----------------------------------------

LIST = """(float[BATCH,3] x, int64[A] j) => (float[R] y) <int64[1] flat = {-1}, int64 zero = {0},
    int64[K] i = {NUMBERS}> { d = Reshape(x, flat)  NODES }"""


def listed(shape: str, numbers: str, *, batch: int = 2, nodes: str = "y = Gather(d, i)") -> str:
    rank = ",".join(f"R{at}" for at in range(shape.count(",") + 1))
    text = (
        LIST.replace("BATCH", str(batch)).replace("[K]", f"[{shape}]").replace("[R]", f"[{rank}]")
    )
    return text.replace("NUMBERS", numbers).replace("[A]", f"[{shape}]").replace("NODES", nodes)


@pytest.mark.parametrize(
    ("shape", "numbers", "axis"),
    [
        ("2,2", "0,2,3,5", 0),
        ("2,2", "0,3,2,5", 1),
        ("2,1", "1,4", 0),
        ("1,2", "1,4", 1),
        ("2", "1,4", 0),
        ("3,2", "0,3,1,4,2,5", 1),
        ("2,2", "0,2,3,-1", 0),
    ],
)
def test_a_constant_index_takes_the_same_rows_of_each_sample(
    shape: str, numbers: str, axis: int
) -> None:
    facts, state = facts_of(listed(shape, numbers))
    assert facts["y"] == BatchRows(axis)
    assert len(state.edits) == 1


@pytest.mark.parametrize(
    ("shape", "numbers"),
    [("2", "1,5"), ("2", "4,1"), ("3", "0,1,2"), ("2", "3,6"), ("2,2", "0,3,3,6")],
)
def test_a_constant_index_of_other_rows_is_refused(shape: str, numbers: str) -> None:
    reason = "it takes some of the samples, at the places in 'i'"
    assert why_not(listed(shape, numbers)) == reason


def test_an_index_of_a_batch_of_two_is_constant() -> None:
    text = listed("2", "1,4", nodes="c = Clip(j, zero)  y = Gather(d, c)")
    assert why_not(text) == "it takes some of the samples, at the places in 'c'"


def test_a_computed_index_of_one_sample_has_an_axis_of_size_1_for_the_batch() -> None:
    nodes = "c = Clip(j, zero)  y = Gather(d, c)"
    for shape, axis in (("1,2", 0), ("2,1", 1), ("1", 0)):
        facts, _ = facts_of(listed(shape, "0,1" if "2" in shape else "0", batch=1, nodes=nodes))
        assert facts["y"] == BatchRows(axis)
    reason = why_not(listed("2", "0,1", batch=1, nodes=nodes))
    assert reason == "it takes some of the samples, at the places in 'c'"
    nodes = "c = Neg(j)  y = Gather(d, c)"
    reason = why_not(listed("1", "0", batch=1, nodes=nodes))
    assert reason == "the places in 'c' may count from the end of the batch"


def test_a_computed_index_of_columns_has_a_known_number_of_them() -> None:
    nodes = "c = Clip(j, zero)  y = GatherND(d, c)"
    facts, _ = facts_of(listed("1,2,1", "0,1", batch=1, nodes=nodes).replace("[R0,R1,R2]", "[A,B]"))
    assert facts["y"] == BatchRows(0)


COUNTED = """(float[2,3] x, float[6] f, float[4,3] t, int64[2] a, int64[2,5] b, bool g) => (k)
    <int64 zero = {0}, int64 one = {1}, int64 three = {3}, int64[1] two = {2}, int64[2] both = {3,3},
     int64[2] differ = {1,2}, int64[1] after = {1}, int64[3] places = {0,1,2}, int64[1] none = {0},
     int64[3] negative = {-1,0,1}, int64[1] flat = {-1}, float[6] equal = {1,2,3,1,2,3},
     float[6] other = {1,2,3,1,2,4}, float[2,3] pair = {1,2,3,1,2,3}, int64[3] shape3 = {1,2,1},
     int64[2] twice = {2,1}> {
    s = Shape(x)  n = Gather(s, zero)  r = Range(zero, n, one)  c = Unsqueeze(r, after)
    d = Mul(c, three)  i = Add(d, places)  NODES }"""
"""`c` are the numbers of the samples as rows, `i` their places in the flat `x`."""
G = "g0 = Reshape(x, flat)  "


def counted(nodes: str) -> str:
    return COUNTED.replace("NODES", nodes)


def test_what_a_sample_adds_to_its_numbers_and_the_rows_that_they_take() -> None:
    for text, places, expected, edits in (
        (counted('k = Add(r, both)'), X, BatchRows(0, step=1), 1),
        (counted('k = Add(r, differ)'), X, "its constant 'differ' bakes the batch of 2: it has other numbers for each sample", 0),
        (counted('k = Add(r, a)'), {'x': 0, 'a': 0}, BatchRows(0, step=1), 0),
        (counted('k = Add(a, r)'), {'x': 0, 'a': 0}, BatchRows(0, step=1), 0),
        (counted('k = Mul(r, a)'), {'x': 0, 'a': 0}, BatchRows(0, step=None), 0),
        (counted('k = Mul(a, r)'), {'x': 0, 'a': 0}, BatchRows(0, step=None), 0),
        (counted('k = Mul(r, n)'), X, "it computes with the size of the batch", 0),
        (counted('k = Add(r, n)'), X, "it computes with the size of the batch", 0),
        (counted('k = Mul(r, differ)'), X, "its constant 'differ' bakes the batch of 2: it has other numbers for each sample", 0),
        (counted('k = Mul(both, r)'), X, BatchRows(0, step=3), 1),
        (counted('k = Concat<axis=1>(c, c)'), X, BatchRows(0, step=Columns((1, 1))), 0),
        (counted('k = Concat<axis=1>(c, d)'), X, BatchRows(0, step=Columns((1, 3))), 0),
        (counted('j = Concat<axis=1>(c, d) k = Concat<axis=1>(j, c)'), X, BatchRows(0, step=Columns((1, 3, 1))), 0),
        (counted('j = Concat<axis=1>(c, d) k = Add(j, j)'), X, BatchRows(0, step=None), 0),
        (counted('j = Concat<axis=1>(c, d) k = Mul(j, three)'), X, BatchRows(0, step=None), 0),
        (counted('j = Concat<axis=1>(c, d) k = Identity(j)'), X, BatchRows(0, step=Columns((1, 3))), 0),
        (counted('j = Concat<axis=1>(c, d) k = Cast<to=6>(j)'), X, BatchRows(0, step=Columns((1, 3))), 0),
        (counted('j = Concat<axis=1>(c, d) k = Unsqueeze(j, none)'), X, BatchRows(1, step=None), 0),
        (counted('q = Neg(c) k = Concat<axis=1>(c, q)'), X, BatchRows(0, step=None), 0),
        (counted('e = Unsqueeze(c, two) k = Concat<axis=1>(e, e)'), X, BatchRows(0, step=None), 0),
        (counted('e = Unsqueeze(c, two) k = Concat<axis=-1>(e, e)'), X, BatchRows(0, step=Columns((1, 1))), 0),
        (counted('k = Concat<axis=1>(c, b)'), {'x': 0, 'b': 0}, BatchRows(0, step=Columns((1, 0, 0, 0, 0, 0))), 0),
        (counted('k = Sub(r, one)'), X, BatchRows(0, step=None), 0),
        (counted('k = Transpose(c)'), X, BatchRows(1, step=1), 0),
        (counted('k = Expand(c, shape3)'), X, BatchRows(1, step=1), 1),
        (counted('k = Cast<to=1>(c)'), X, BatchRows(0, step=None), 0),
        (counted('k = Cast<to=7>(c)'), X, BatchRows(0, step=1), 0),
        (counted(G + 'k = Gather(g0, i)'), X, BatchRows(0), 0),
        (counted(G + 'k = Gather(g0, d)'), X, BatchRows(0), 0),
        (counted(G + 'k = Gather(g0, c)'), X, "it takes some of the samples, at the places in 'c'", 0),
        (counted(G + 'j = Add(d, negative) k = Gather(g0, j)'), X, "the places in 'j' may count from the end of the batch", 0),
        (counted('k = Gather(x, c)'), X, BatchRows(0), 0),
        (counted('k = Gather(x, r)'), X, BatchRows(0), 0),
        (counted('k = Gather(x, d)'), X, "it takes some of the samples, at the places in 'd'", 0),
        (counted('k = Gather<axis=1>(x, c)'), X, "it computes with the numbers of samples", 0),
        (counted('k = Gather<axis=-2>(x, c)'), X, BatchRows(0), 0),
        (counted('q = Transpose(x) k = Gather<axis=1>(q, c)'), X, BatchRows(1), 0),
        (counted('k = Gather(equal, i)'), X, BatchRows(0), 1),
        (counted('k = Gather(other, i)'), X, "its constant 'other' bakes the batch of 2: it has other numbers for each sample", 0),
        (counted('k = Gather(f, i)'), X, "its value 'f' bakes the batch of 2: it may have other numbers for each sample", 0),
        (counted('k = Gather(pair, c)'), X, BatchRows(0), 1),
        (counted('k = Gather(t, c)'), X, "it computes with the numbers of samples", 0),
        (counted('k = Gather<axis=1>(pair, c)'), X, "it computes with the numbers of samples", 0),
        (counted('q = Neg(c) k = Gather(x, q)'), X, "it takes some of the samples, at the places in 'q'", 0),
        (counted('q = Tile(x, twice) k = Gather(q, c)'), X, "it computes with the numbers of samples", 0),
        (counted('j = Concat<axis=1>(c, c) k = GatherND(x, j)'), X, "it takes other places for each sample", 0),
        (counted('z = Sub(c, c) j = Concat<axis=1>(c, z) k = GatherND(x, j)'), X, "it computes with the numbers of samples", 0),
        (counted('k = GatherND(x, c)'), X, "it computes with the numbers of samples", 0),
        (counted('z = Mul(c, zero) j = Concat<axis=1>(c, z) k = GatherND(x, j)'), X, BatchRows(0), 0),
        (counted('z = Mul(c, zero) j = Concat<axis=1>(z, c) k = GatherND(x, j)'), X, "it takes other places for each sample", 0),
        (counted('z = Mul(c, zero) j = Concat<axis=1>(d, z) k = GatherND(x, j)'), X, "it takes some of the samples, at the places in 'j'", 0),
        (counted('z = Mul(c, zero) j = Concat<axis=1>(c, z) k = GatherND(pair, j)'), X, BatchRows(0), 1),
        (counted('z = Mul(c, zero) j = Concat<axis=1>(c, z) k = GatherND(t, j)'), X, "it computes with the numbers of samples", 0),
        (counted('j = Concat<axis=1>(c, d) k = GatherND(pair, j)'), X, "it takes other places for each sample", 0),
        (counted('j = Concat<axis=1>(c) k = GatherND(x, j)'), X, BatchRows(0), 0),
        (counted('j = Concat<axis=1>(c) k = GatherND<batch_dims=1>(x, j)'), X, "it computes with the numbers of samples", 0),
        (counted('j = Concat<axis=1>(c) q = Transpose(x) k = GatherND(q, j)'), X, "it computes with the numbers of samples", 0),
        (counted('z = Mul(c, zero) j = Concat<axis=1>(z, c) q = Transpose(x) k = GatherND(q, j)'), X, BatchRows(0), 0),
        (counted('z = Neg(c) p = Add(c, z) m = Mul(c, zero) o = Sub(m, one) h = Concat<axis=1>(c, o) k = GatherND(x, h)'), X, "the places in 'h' may count from the end of the batch", 0),
        (counted('k = GatherElements<axis=1>(x, c)'), X, "it computes with the numbers of samples", 0),
        (counted('k = GatherElements(x, i)'), X, "it computes with the numbers of samples", 0),
        (counted('k = ReduceSum<keepdims=0>(c)'), X, "it computes with the numbers of samples", 0),
        (counted('k = Where(g, c, c)'), X, BatchRows(0, step=None), 0),
    ):  # fmt: skip
        assert fact_or_why_not(text, places, of="k") == (expected, edits), text
