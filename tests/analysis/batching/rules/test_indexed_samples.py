"""Samples through operators that take or put elements at indices."""

import pytest

from tests.analysis.batching.facts_of import (
    X,
    edits_of,
    fact_of,
    fact_or_why_not,
    rebatched,
    why_not,
)
from tiered.analysis.batching.sample_facts import BatchRows

BOTH = {"x": 0, "i": 0}
OTHERS = "it takes other places for each sample"


@pytest.mark.parametrize(
    ("text", "places", "axis"),
    [
        ("(float[2,3] x, int64[4] i) => (float[2,4] y) { y = Gather<axis=1>(x, i) }", {"x": 0}, 0),
        ("(float[2,3,4] x, int64[5,6] i) => (float[2,3,5,6] y) { y = Gather<axis=-1>(x, i) }",
         {"x": 0}, 0),
        ("(float[3,2] x, int64[4,5] i) => (float[4,5,2] y) { y = Gather(x, i) }", {"x": 1}, 2),
        ("(int64[2,3] x, float[5,4] t) => (float[2,3,4] y) { y = Gather(t, x) }", {"x": 0}, 0),
        ("(int64[3,2] x, float[5,4] t) => (float[5,3,2] y) { y = Gather<axis=1>(t, x) }",
         {"x": 1}, 2),
        ("(float[2,3] x, int64[2,1] i) => (float[2,1] y) { y = GatherElements<axis=1>(x, i) }",
         {"x": 0, "i": 0}, 0),
    ],
)  # fmt: skip
def test_samples_keep_their_place_beside_the_gathered_axis(
    text: str, places: dict[str, int], axis: int
) -> None:
    assert fact_of(text, places) == BatchRows(axis)


def test_rows_of_the_batch_are_taken_by_an_index_that_counts_it() -> None:
    text = "(float[2,3] x) => (float[2,3] y) <int64[2] i = {INDEX}> { y = Gather(x, i) }"
    assert why_not(text.replace("INDEX", "0,1")).startswith("it takes some of the samples")
    text = """(float[2,3] x) => (float[2,1,3] y) <int64[2,1] i = {INDEX}> { y = Gather(x, i) }"""
    assert fact_of(text.replace("INDEX", "0,1")) == BatchRows(0)
    assert fact_of(text.replace("INDEX", "0,-1")) == BatchRows(0)
    for wrong in ("1,0", "0,0", "1,2"):
        reason = why_not(text.replace("INDEX", wrong))
        assert reason == "it takes some of the samples, at the places in 'i'"


def test_one_row_of_one_sample_is_not_followed() -> None:
    text = "(float[1,3] x) => (float[1,3] y) <int64[1] i = {0}> { y = Gather(x, i) }"
    assert why_not(text) == "it takes some of the samples, at the places in 'i'"


def test_a_place_for_each_sample_of_a_batch_of_one() -> None:
    text = "(float[1,3] x, int64[1] i) => (float[1,1] y) { y = Gather<axis=1>(x, i) }"
    assert fact_of(text, BOTH) == BatchRows(0)
    assert edits_of(text, BOTH) == 1
    assert why_not(text, BOTH, opset=11) == OTHERS
    of_two = "(float[2,3] x, int64[2] i) => (float[2,2] y) { y = Gather<axis=1>(x, i) }"
    assert why_not(of_two, BOTH) == OTHERS


def test_a_row_for_each_sample_of_a_batch_of_one() -> None:
    text = "(float[1,3] x, int64[1] i) => (float[1,3] y) { y = Gather(x, i) }"
    assert fact_of(text, BOTH) == BatchRows(0)
    text = "(float[1,3] x, int64[5,1] i) => (float[5,1,3] y) { y = Gather(x, i) }"
    assert fact_of(text, {"x": 0, "i": 1}) == BatchRows(1)
    text = "(float[3,1] x, int64[5,1] i) => (float[5,1,1] y) { y = Gather(x, i) }"
    assert why_not(text, {"x": 1, "i": 1}) == OTHERS


def test_a_row_of_several_for_each_sample_counts_from_the_front() -> None:
    text = """(float[1,3] x, int64[1,2] i) => (float[1,2] y)
        <int64[1] flat = {-1}, int64 zero = {0}> {
        d = Reshape(x, flat)  NODE  y = Gather(d, j) }"""
    assert fact_of(text.replace("NODE", "j = Clip(i, zero)"), BOTH) == BatchRows(0)
    assert why_not(text.replace("NODE", "j = Neg(i)"), BOTH) == (
        "the places in 'j' may count from the end of the batch"
    )


@pytest.mark.parametrize(
    ("text", "places", "axis"),
    [
        ("(float[2,3,4] x, int64[2,5,1] i) => (float[2,5,4] y) { y = GatherND<batch_dims=1>(x, i) }",
         BOTH, 0),
        ("(float[3,4,2] x, int64[5,1] i) => (float[5,4,2] y) { y = GatherND(x, i) }", {"x": 2}, 2),
        ("(float[3,2] x, int64[5,6,1] i) => (float[5,6,2] y) { y = GatherND(x, i) }", {"x": 1}, 2),
        ("(float[3,4] x, int64[2,5,1] i) => (float[2,5,4] y) { y = GatherND(x, i) }", {"i": 0}, 0),
        ("(float[3,4] x, int64[5,2,1] i) => (float[5,2,4] y) { y = GatherND(x, i) }", {"i": 1}, 1),
    ],
)  # fmt: skip
def test_samples_beside_the_indices_of_a_gather_nd(
    text: str, places: dict[str, int], axis: int
) -> None:
    assert fact_of(text, places) == BatchRows(axis)


def test_what_all_samples_share_is_repeated_along_the_dims_of_a_batch() -> None:
    text = "(float[1,3] x, int64[1,5,1] i) => (float[1,5] y) { y = GatherND<batch_dims=1>(x, i) }"
    for places in ({"i": 0}, {"x": 0}):
        assert fact_of(text, places) == BatchRows(0)
        assert edits_of(text, places) == 1


@pytest.mark.parametrize(
    ("text", "places", "reason"),
    [
        ("(float[3,4] x, int64[5,2] i) => (float[5] y) { y = GatherND(x, i) }", {"i": 1},
         "it computes a result from several samples: axis 1 of 'i' is the batch"),
        ("(float[2,4] x, int64[5,N] i) => (float[5] y) { y = GatherND(x, i) }", {"x": 0},
         "how many places its index has is not known"),
        ("(float[2,4] x, int64[2,1] i) => (float[2,4] y) { y = GatherND(x, i) }", BOTH, OTHERS),
        ("(float[1,4] x, int64[5,1] i) => (float[5,4] y) { y = GatherND(x, i) }",
         {"x": 0, "i": 1}, OTHERS),
    ],
)  # fmt: skip
def test_a_gather_nd_that_mixes_samples_is_refused(
    text: str, places: dict[str, int], reason: str
) -> None:
    assert why_not(text, places) == reason


def test_a_gather_nd_takes_a_place_for_each_sample_of_a_batch_of_one() -> None:
    text = "(float[1,4] x, int64[1,5,2] i) => (float[1,5] y) { y = GatherND(x, i) }"
    assert fact_of(text, BOTH) == BatchRows(0)
    assert edits_of(text, BOTH) == 1


def test_a_constant_index_of_rows_is_for_one_column_of_the_indices() -> None:
    text = """(float[2,3] x) => (float[2,1] y) <int64[2,1,2] i = {INDEX}>
        { y = GatherND(x, i) }"""
    assert fact_of(text.replace("INDEX", "0,2,1,2")) == BatchRows(0)
    assert why_not(text.replace("INDEX", "0,2,1,1")).startswith("it takes some of the samples")


@pytest.mark.parametrize(
    ("text", "places", "axis"),
    [
        ("(float[4,2] x, int64[3,1] i, float[3,2] u) => (float[4,2] y) { y = ScatterND(x, i, u) }",
         {"x": 1, "u": 1}, 1),
        ("(float[4,5,2] x, int64[3,2] i, float[3,2] u) => (float[4,5,2] y)"
         " { y = ScatterND(x, i, u) }", {"x": 2, "u": 1}, 2),
    ],
)  # fmt: skip
def test_places_of_other_axes_are_written_to(text: str, places: dict[str, int], axis: int) -> None:
    assert fact_of(text, places) == BatchRows(axis)


def test_data_or_updates_that_all_share_are_repeated() -> None:
    text = """(float[4,1] x, float[3,1] u) => (float[4,1] y) <int64[3,1] i = {0,1,2}>
        { y = ScatterND(x, i, u) }"""
    assert fact_of(text, {"x": 1}) == BatchRows(1)
    assert fact_of(text, {"u": 1}) == BatchRows(1)
    assert edits_of(text, {"x": 1}) == edits_of(text, {"u": 1}) == 1


SCATTER = "(float[2,2] x, int64[2,1] i, float[2,2] u) => (float[2,2] y) { y = ScatterND(x, i, u) }"


@pytest.mark.parametrize(
    ("places", "reason"),
    [
        ({"i": 0}, "it writes to other places for each sample"),
        ({"x": 0}, "it writes to some of the samples, at the places in 'i'"),
        ({"u": 0}, "it writes to some of the samples, at the places in 'i'"),
        ({"x": 1, "u": 0}, "its operands have the samples on different axes"),
    ],
)
def test_a_scatter_that_mixes_samples_is_refused(places: dict[str, int], reason: str) -> None:
    assert why_not(SCATTER, places) == reason


def test_places_of_unknown_depth_are_refused() -> None:
    reason = why_not(SCATTER.replace("[2,1] i", "[2,N] i"), {"x": 1})
    assert reason == "it writes to other places for each sample"


SOME = "it takes some of the samples, at the places in {!r}"
END = "the places in {!r} may count from the end of the batch"


def model(nodes: str, x: str = "2,3,4", more: str = "", consts: str = "") -> str:
    held = f", {consts}" if consts else ""
    return f"(float[{x}] x{more}) => (y) <int64[1] none = {{0}}, int64[1] less = {{-1}}{held}> {{ {nodes} }}"


def test_where_the_samples_are_and_how_many_edits_it_takes() -> None:
    for text, places, expected, edits in (
        (model('y = Gather(x, i)', consts='int64[2,1] i = {0,1}'), X, BatchRows(0), 1),
        (model('y = Gather(x, i)', consts='int64[2,1] i = {0,-1}'), X, BatchRows(0), 1),
        (model('y = Gather(x, i)', consts='int64[1,2] i = {0,1}'), X, BatchRows(1), 1),
        (model('y = Gather(x, i)', consts='int64[2,2] i = {0,0,1,1}'), X, BatchRows(0), 1),
        (model('y = Gather(x, i)', consts='int64[2,2] i = {0,1,0,1}'), X, BatchRows(1), 1),
        (model('y = Gather(x, i)', consts='int64[2,2] i = {0,1,1,0}'), X, SOME.format('i'), 0),
        (model('y = Gather(x, i)', consts='int64[3,1] i = {0,1,1}'), X, SOME.format('i'), 0),
        (model('y = Gather(x, i)', consts='int64[2] i = {0,1}'), X, SOME.format('i'), 0),
        (model('y = Gather(x, i)', consts='int64 i = {0}'), X, SOME.format('i'), 0),
        (model('f = Reshape(x, less)  y = Gather(f, i)', x='2,3', consts='int64[2] i = {0,3}'), X, BatchRows(0), 1),
        (model('f = Reshape(x, less)  y = Gather(f, i)', x='2,3', consts='int64[2] i = {2,5}'), X, BatchRows(0), 1),
        (model('f = Reshape(x, less)  y = Gather(f, i)', x='2,3', consts='int64[2] i = {3,6}'), X, SOME.format('i'), 0),
        (model('f = Reshape(x, less)  y = Gather(f, i)', x='2,3', consts='int64[2] i = {-6,-3}'), X, BatchRows(0), 1),
        (model('f = Reshape(x, less)  y = Gather(f, i)', x='2,3', consts='int64[2,2] i = {0,2,3,5}'), X, BatchRows(0), 1),
        (model('f = Reshape(x, less)  y = Gather(f, i)', x='2,3', consts='int64[2] i = {0,2}'), X, SOME.format('i'), 0),
        (model('t = Tile(x, r)  y = Gather(t, i)', x='2,3', consts='int64[2] r = {2,1}, int64[2,1] i = {0,1}'), X, SOME.format('i'), 0),
        (model('f = Reshape(x, less)  y = Gather(f, i)', x='2,S', consts='int64[2] i = {0,2}'), X, SOME.format('i'), 0),
        (model('y = Gather(x, i)', more=', int64[2,1] i'), X, SOME.format('i'), 0),
        (model('y = Gather(x, i)', x='1,3', more=', int64[1,1] i'), X, END.format('i'), 0),
        (model('j = Abs(i)  y = Gather(x, j)', x='1,3', more=', int64[1,1] i'), X, END.format('j'), 0),
        (model('j = Abs(i)  f = Reshape(x, less)  y = Gather(f, j)', x='1,3', more=', int64[1] i'), X, END.format('j'), 0),
        (model('j = Abs(i)  f = Reshape(x, less)  y = Gather(f, j)', x='1,3', more=', int64[2] i'), X, SOME.format('j'), 0),
        (model('y = Gather<axis=1>(x, i)', more=', int64[5] i'), X, BatchRows(0), 0),
        (model('y = Gather<axis=-2>(x, i)', more=', int64[5] i'), X, BatchRows(0), 0),
        (model('y = Gather<axis=-3>(x, i)', consts='int64[2,1] i = {0,1}'), X, BatchRows(0), 1),
        (model('y = Gather<axis=1>(x, i)', x='1,3,4', more=', int64[1,5] i'), BOTH, BatchRows(0), 1),
        (model('y = Gather<axis=1>(x, i)', x='2,3,4', more=', int64[2,5] i'), BOTH, OTHERS, 0),
        (model('y = Gather<axis=2>(x, i)', x='1,3,4', more=', int64[1,5] i'), BOTH, OTHERS, 0),
        (model('y = Gather(x, i)', x='1,3,4', more=', int64[1,5] i'), BOTH, BatchRows(0), 1),
        (model('y = Gather(x, i)', x='1,3,4', more=', int64[5,1] i'), {'x': 0, 'i': 1}, BatchRows(1), 1),
        (model('y = Gather<axis=1>(x, i)', x='1,3,4', more=', int64[5,1] i'), {'x': 0, 'i': 1}, OTHERS, 0),
        (model('y = Gather<axis=1>(x, i)', x='3,1,4', more=', int64[1,5] i'), {'x': 1, 'i': 0}, BatchRows(1), 1),
        (model('f = Reshape(x, less)  y = Gather(f, i)', x='1,3', more=', int64[1,5] i'), BOTH, END.format('i'), 0),
        (model('j = Abs(i)  f = Reshape(x, less)  y = Gather(f, j)', x='1,3', more=', int64[1,5] i'), BOTH, END.format('j'), 0),
        (model('y = Gather(w, i)', x='1,3', more=', int64[1,5] i, float[7,2] w'), BOTH, BatchRows(0), 0),
        (model('y = GatherND(x, i)', more=', int64[5,1] i'), X, SOME.format('i'), 0),
        (model('y = GatherND(x, i)', consts='int64[2,1] i = {0,1}'), X, BatchRows(0), 1),
        (model('y = GatherND(x, i)', consts='int64[2,1,2] i = {0,2,1,2}'), X, BatchRows(0), 1),
        (model('y = GatherND(x, i)', consts='int64[2,1,2] i = {0,2,1,1}'), X, SOME.format('i'), 0),
        (model('y = GatherND(x, i)', x='3,2,4', consts='int64[2,1,2] i = {2,0,2,1}'), {'x': 1}, BatchRows(0), 1),
        (model('y = GatherND(x, i)', x='3,2,4', more=', int64[5,1] i'), {'x': 1}, BatchRows(1), 0),
        (model('y = GatherND(x, i)', x='3,4,2', more=', int64[5,6,2] i'), {'x': 2}, BatchRows(2), 0),
        (model('y = GatherND<batch_dims=1>(x, i)', more=', int64[2,5,1] i'), BOTH, BatchRows(0), 0),
        (model('y = GatherND<batch_dims=1>(x, i)', more=', int64[2,5,1] i'), X, "its value 'i' bakes the batch of 2: it may have other numbers for each sample", 0),
        (model('y = GatherND<batch_dims=1>(x, i)', consts='int64[2,1,1] i = {1,1}'), X, BatchRows(0), 1),
        (model('y = GatherND<batch_dims=1>(x, i)', more=', int64[5,2,1] i'), {'x': 0, 'i': 1}, OTHERS, 0),
        (model('y = GatherND<batch_dims=1>(x, i)', x='3,2,4', more=', int64[3,2,1] i'), {'x': 1, 'i': 1}, OTHERS, 0),
        (model('y = GatherND<batch_dims=1>(x, i)', x='3,1,4', more=', int64[3,1,1] i'), {'x': 1, 'i': 1}, BatchRows(1), 1),
        (model('y = GatherND<batch_dims=1>(x, i)', x='3,4,1', more=', int64[3,1,1] i'), {'x': 2, 'i': 1}, OTHERS, 0),
        (model('y = GatherND(x, i)', x='1,3,4', more=', int64[1,5,2] i'), BOTH, BatchRows(0), 1),
        (model('y = GatherND(x, i)', x='2,3,4', more=', int64[2,5,2] i'), BOTH, OTHERS, 0),
        (model('y = GatherND(x, i)', x='1,3,4', more=', int64[5,1,2] i'), {'x': 0, 'i': 1}, BatchRows(1), 1),
        (model('y = GatherND(x, i)', x='1,3,4', more=', int64[5,1] i'), {'x': 0, 'i': 1}, OTHERS, 0),
        (model('y = GatherND(x, i)', x='3,1,4', more=', int64[1,5,1] i'), {'x': 1, 'i': 0}, OTHERS, 0),
        (model('y = GatherND(w, i)', more=', int64[2,5,1] i, float[7] w'), {'i': 0}, BatchRows(0), 0),
        (model('y = GatherND(w, i)', more=', int64[5,2] i, float[7,7] w'), {'i': 1}, "it computes a result from several samples: axis 1 of 'i' is the batch", 0),
        (model('y = GatherND(x, i)', more=', int64[5,D] i'), X, "how many places its index has is not known", 0),
        (model('f = Reshape(x, l)  y = GatherND(f, i)', x='1,3,4', more=', int64[1,5,2] i', consts='int64[2] l = {-1,4}'), BOTH, "its operands have the samples in different orders", 0),
        (model('j = Abs(i)  f = Reshape(x, l)  y = GatherND(f, j)', x='1,3,4', more=', int64[1,5,2] i', consts='int64[2] l = {-1,4}'), BOTH, "its operands have the samples in different orders", 0),
        (model('y = GatherND(x, i)', x='1,3', more=', int64[1,1,2] i'), X, END.format('i'), 0),
        (model('j = Abs(i)  y = GatherND(x, j)', x='1,3', more=', int64[1,1,2] i'), X, END.format('j'), 0),
        (model('j = Abs(i)  y = GatherND(x, j)', x='1,3', more=', int64[1,2] i'), X, END.format('j'), 0),
        (model('j = Abs(i)  y = GatherND(x, j)', x='1,3', more=', int64[2,2] i'), X, SOME.format('j'), 0),
        (model('y = ScatterND(x, i, u)', x='3,2', more=', int64[5,1] i, float[5,2] u'), {'x': 1, 'u': 1}, BatchRows(1), 0),
        (model('y = ScatterND(x, i, u)', x='3,2', more=', int64[5,1] i, float[5,2] u'), {'x': 1}, "its value 'u' bakes the batch of 2: it may have other numbers for each sample", 0),
        (model('y = ScatterND(x, i, u)', x='3,2', more=', int64[5,1] i, float[5,2] u'), {'u': 1}, "its value 'x' bakes the batch of 2: it may have other numbers for each sample", 0),
        (model('y = ScatterND(x, i, u)', x='3,2', more=', int64[5,1] i', consts='float[5,2] u = {1,1,1,1,1,1,1,1,1,1}'), {'x': 1}, BatchRows(1), 1),
        (model('y = ScatterND(w, i, x)', x='5,2', more=', int64[5,1] i', consts='float[3,2] w = {1,1,2,2,1,1}'), {'x': 1}, BatchRows(1), 1),
        (model('y = ScatterND(x, i, u)', x='2,3', more=', int64[5,1] i, float[5,3] u'), {'x': 0}, "it writes to some of the samples, at the places in 'i'", 0),
        (model('y = ScatterND(x, i, u)', x='3,2', more=', int64[2,1] i, float[2,2] u'), {'x': 1, 'u': 0}, "its operands have the samples on different axes", 0),
        (model('y = ScatterND(w, i, x)', x='2,3', more=', int64[2,1] i, float[9,3] w'), {'x': 0}, "it writes to some of the samples, at the places in 'i'", 0),
        (model('y = ScatterND(x, i, u)', x='3,2', more=', int64[2,1] i, float[2,2] u'), {'i': 0}, "it writes to other places for each sample", 0),
        (model('y = ScatterND(x, i, u)', x='3,2', more=', int64[2,D] i, float[2,2] u'), {'x': 1}, "it writes to other places for each sample", 0),
        (model('y = ScatterND(x, i, u)', x='3,4,2', more=', int64[6,5,2] i, float[6,5,2] u'), {'x': 2, 'u': 2}, BatchRows(2), 0),
        (model('y = ScatterND(x, i, u)', x='3,4,2', more=', int64[6,5,1] i, float[6,5,4,2] u'), {'x': 2, 'u': 3}, BatchRows(2), 0),
    ):  # fmt: skip
        assert fact_or_why_not(text, places) == (expected, edits), text


def test_places_of_each_sample_need_a_gather_nd_of_batches() -> None:
    text = model("y = Gather<axis=1>(x, i)", "1,3,4", ", int64[1,5] i")
    assert why_not(text, BOTH, opset=11) == OTHERS
    assert fact_of(text, BOTH, opset=12) == BatchRows(0)


def test_what_the_edits_write() -> None:
    for text, places, expected in (
        (model('y = Gather(x, i)', consts='int64[2,1] i = {0,1}'), X,
         "Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[-1,1]; Mul 1:[1]; Add 1:[0]; Gather"),
        (model('y = Gather(x, i)', consts='int64[2,1] i = {0,-1}'), X,
         "Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[-1,1]; Mul 1:[1]; Add 1:[0]; Gather"),
        (model('y = Gather(x, i)', consts='int64[1,2] i = {0,1}'), X,
         "Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[1,-1]; Mul 1:[1]; Add 1:[0]; Gather"),
        (model('y = Gather(x, i)', consts='int64[2,2] i = {0,0,1,1}'), X,
         "Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[-1,1]; Mul 1:[1]; Add 1:[0,0]; Gather"),
        (model('y = Gather(x, i)', consts='int64[2,2] i = {0,1,0,1}'), X,
         "Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[1,-1]; Mul 1:[1]; Add 1:[0,0]; Gather"),
        (model('f = Reshape(x, less)  y = Gather(f, i)', x='2,3', consts='int64[2] i = {0,3}'), X,
         "Reshape 1:[-1]; Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[-1]; Mul 1:[3]; Add 1:[0]; Gather"),
        (model('f = Reshape(x, less)  y = Gather(f, i)', x='2,3', consts='int64[2] i = {2,5}'), X,
         "Reshape 1:[-1]; Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[-1]; Mul 1:[3]; Add 1:[2]; Gather"),
        (model('f = Reshape(x, less)  y = Gather(f, i)', x='2,3', consts='int64[2] i = {-6,-3}'), X,
         "Reshape 1:[-1]; Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[-1]; Mul 1:[3]; Add 1:[0]; Gather"),
        (model('f = Reshape(x, less)  y = Gather(f, i)', x='2,3', consts='int64[2,2] i = {0,2,3,5}'), X,
         "Reshape 1:[-1]; Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[-1,1]; Mul 1:[3]; Add 1:[0,2]; Gather"),
        (model('y = Gather<axis=-3>(x, i)', consts='int64[2,1] i = {0,1}'), X,
         "Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[-1,1]; Mul 1:[1]; Add 1:[0]; Gather axis=-3"),
        (model('y = Gather<axis=1>(x, i)', x='1,3,4', more=', int64[1,5] i'), BOTH,
         "Unsqueeze 1:[-1]; GatherND batch_dims=1; Unsqueeze 1:[1]"),
        (model('y = Gather(x, i)', x='1,3,4', more=', int64[1,5] i'), BOTH,
         "Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[-1,1]; Mul 1:[0]; Add; Gather"),
        (model('y = Gather(x, i)', x='1,3,4', more=', int64[5,1] i'), {'x': 0, 'i': 1},
         "Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[1,-1]; Mul 1:[0]; Add; Gather"),
        (model('y = Gather<axis=1>(x, i)', x='3,1,4', more=', int64[1,5] i'), {'x': 1, 'i': 0},
         "Shape; Gather 1:[1]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[-1,1]; Mul 1:[0]; Add; Gather axis=1"),
        (model('y = GatherND(x, i)', consts='int64[2,1] i = {0,1}'), X,
         "Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[-1,1]; Mul 1:[1]; Add 1:[0]; GatherND"),
        (model('y = GatherND(x, i)', consts='int64[2,1,2] i = {0,2,1,2}'), X,
         "Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[-1,1,1]; Mul 1:[1,0]; Add 1:[0,2]; GatherND"),
        (model('y = GatherND(x, i)', x='3,2,4', consts='int64[2,1,2] i = {2,0,2,1}'), {'x': 1},
         "Shape; Gather 1:[1]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[-1,1,1]; Mul 1:[0,1]; Add 1:[2,0]; GatherND"),
        (model('y = GatherND<batch_dims=1>(x, i)', consts='int64[2,1,1] i = {1,1}'), X,
         "Shape; Gather 1:[0]; Concat axis=0 1:[1,1]; Expand 0:[1]; GatherND batch_dims=1"),
        (model('y = GatherND<batch_dims=1>(x, i)', x='3,1,4', more=', int64[3,1,1] i'), {'x': 1, 'i': 1},
         "Shape; Gather 1:[1]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[1,-1,1]; Mul 1:[1]; Mul 1:[0]; Add; GatherND batch_dims=1"),
        (model('y = GatherND(x, i)', x='1,3,4', more=', int64[1,5,2] i'), BOTH,
         "Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[-1,1,1]; Mul 1:[1,0]; Mul 1:[0,1]; Add; GatherND"),
        (model('y = GatherND(x, i)', x='1,3,4', more=', int64[5,1,2] i'), {'x': 0, 'i': 1},
         "Shape; Gather 1:[0]; Squeeze 1:[0]; Range 0:[0] 2:[1]; Reshape 1:[1,-1,1]; Mul 1:[1,0]; Mul 1:[0,1]; Add; GatherND"),
        (model('y = ScatterND(x, i, u)', x='3,2', more=', int64[5,1] i', consts='float[5,2] u = {1,1,1,1,1,1,1,1,1,1}'), {'x': 1},
         "Shape; Gather 1:[1]; Concat axis=0 0:[1]; Expand 0:[1.0,1.0,1.0,1.0,1.0]; ScatterND"),
        (model('y = ScatterND(w, i, x)', x='5,2', more=', int64[5,1] i', consts='float[3,2] w = {1,1,2,2,1,1}'), {'x': 1},
         "Shape; Gather 1:[1]; Concat axis=0 0:[1]; Expand 0:[1.0,2.0,1.0]; ScatterND"),
    ):  # fmt: skip
        assert rebatched(text, places) == expected, text
