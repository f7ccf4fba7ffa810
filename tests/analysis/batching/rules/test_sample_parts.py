"""Samples through operators that take parts of a tensor, or join several."""

import pytest

from tests.analysis.batching.facts_of import (
    X,
    edits_of,
    fact_of,
    fact_or_why_not,
    facts_of,
    rebatched,
    why_not,
)
from tiered.analysis.batching.sample_facts import BatchRows, Columns


@pytest.mark.parametrize("axis", [1, -1])
def test_tensors_are_joined_along_another_axis(axis: int) -> None:
    text = f"(float[2,3] x, float[2,4] z) => (float[2,7] y) {{ y = Concat<axis={axis}>(x, z) }}"
    assert fact_of(text, {"x": 0, "z": 0}) == BatchRows(0)


@pytest.mark.parametrize("axis", [0, -2])
def test_tensors_that_are_joined_along_the_batch_mix_samples(axis: int) -> None:
    text = f"(float[2,3] x) => (float[4,3] y) {{ y = Concat<axis={axis}>(x, x) }}"
    reason = "it computes a result from several samples: axis 0 of 'x' is the batch"
    assert why_not(text) == reason


INDICES = """(int64[2,1] x) => (int64[2,N] y) <int64[2,1] c = {COUNT}> {
    y = Concat<axis=AXIS>(c, x) }"""


@pytest.mark.parametrize(("numbers", "step"), [("0,1", 1), ("5,8", 3), ("3,2", -1)])
def test_a_constant_that_counts_the_samples_is_a_column_of_their_numbers(
    numbers: str, step: int
) -> None:
    text = INDICES.replace("COUNT", numbers).replace("AXIS", "-1")
    facts, state = facts_of(text)
    assert facts["y"] == BatchRows(0, step=Columns((step, 0)))
    assert len(state.edits) == 1


def test_a_constant_beside_one_that_counts_is_not_followed() -> None:
    text = """(int64[2,1] x) => (int64[2,N] y) <int64[2,1] c = {0,1}, int64[2,1] k = {4,4}> {
        y = Concat<axis=1>(c, k, x) }"""
    assert why_not(text).startswith("its constant 'c' bakes the batch of 2")


def test_a_constant_that_is_equal_for_each_sample_is_repeated() -> None:
    facts, state = facts_of(INDICES.replace("COUNT", "4,4").replace("AXIS", "1"))
    assert facts["y"] == BatchRows(0)
    assert len(state.edits) == 1


def test_numbers_of_other_differences_bake_the_batch() -> None:
    text = """(int64[3,1] x) => (int64[3,2] y) <int64[3,1] c = {0,1,3}>
        { y = Concat<axis=1>(c, x) }"""
    assert why_not(text).startswith("its constant 'c' bakes the batch of 3")
    text = text.replace("int64[3,1] c", "float[3,1] c").replace("int64[3", "float[3")
    assert why_not(text.replace("0,1,3", "0,1,2")).startswith("its constant 'c' bakes the batch")


def test_a_count_of_a_batch_of_one_is_a_constant() -> None:
    text = "(int64[1,1] x) => (int64[1,2] y) <int64[1,1] c = {0}> { y = Concat<axis=1>(c, x) }"
    assert fact_of(text) == BatchRows(0)


def test_counts_along_another_axis_than_the_last_are_not_followed() -> None:
    text = """(int64[2,1,3] x) => (int64[2,2,3] y) <int64[2,1,3] c = {0,0,0,1,1,1}>
        { y = Concat<axis=1>(c, x) }"""
    assert why_not(text).startswith("its constant 'c' bakes the batch of 2")


# --- Slice ----------------------------------------------------------------------------------------

SLICE = """(float[2,3] x, int64[1] d) => (float[A,B] y) <int64[1] zero = {0}, int64[1] one = {1},
    int64[1] two = {2}, int64[1] many = {2147483647}, int64[1] almost = {2147483646},
    int64[2] zeros = {0,0}, int64[2] ends = {2,1}> { y = Slice(LIST) }"""


@pytest.mark.parametrize(
    ("operands", "edits"),
    [
        ("x, zero, one, one", 0),
        ("x, zero, many, zero", 0),
        ("x, zero, many, zero, one", 0),
        ("x, zero, two, zero", 1),
        ("x, zeros, ends", 1),
        ("x, zero, two", 1),
    ],
)
def test_all_of_the_batch_is_taken(operands: str, edits: int) -> None:
    text = SLICE.replace("LIST", operands)
    assert fact_of(text) == BatchRows(0)
    assert edits_of(text) == edits


@pytest.mark.parametrize(
    ("operands", "bounds"),
    [
        ("x, zero, one, zero", "0 to 1"),
        ("x, one, two, zero", "1 to 2"),
        ("x, zero, two, zero, two", "0 to 2"),
        ("x, zero, almost, zero", "0 to 2147483646"),
    ],
)
def test_some_of_the_batch_is_refused(operands: str, bounds: str) -> None:
    reason = f"it takes some of the samples: elements {bounds} of a batch of 2"
    assert why_not(SLICE.replace("LIST", operands)) == reason


def test_every_axis_of_a_slice_is_looked_at() -> None:
    text = """(float[2,3] x) => (float[A,B] y) <int64[2] starts = {0,1}, int64[2] ends = {1,2},
        int64[2] axes = {1,0}> { y = Slice(x, starts, ends, axes) }"""
    assert why_not(text) == "it takes some of the samples: elements 1 to 2 of a batch of 2"


def test_all_of_a_batch_of_one_is_no_end() -> None:
    text = (
        "(float[1,3] x) => (float[1,3] y) <int64[1] s = {0}, int64[1] e = {1}> { y = Slice(x,s,e) }"
    )
    assert why_not(text) == "it takes some of the samples: elements 0 to 1 of a batch of 1"


@pytest.mark.parametrize("operands", ["x, d, one, one", "x, zero, d, one", "x, zero, one, one, d"])
def test_bounds_that_are_not_known_are_refused(operands: str) -> None:
    assert why_not(SLICE.replace("LIST", operands)) == "its bounds are not known"


def test_bounds_of_other_axes_do_not_depend_on_the_batch() -> None:
    text = """(float[2,3] x) => (float[2,N] y) <int64[1] zero = {0}, int64[1] one = {1}> {
        s = Shape(x)  n = Gather(s, zero)  y = Slice(x, zero, n, one) }"""
    assert why_not(text) == "its bounds depend on the size of the batch"
    text = text.replace("zero, n, one", "zero, n, zero")
    assert fact_of(text) == BatchRows(0)


# --- Split and Pad --------------------------------------------------------------------------------


def test_parts_along_another_axis_have_all_samples() -> None:
    text = "(float[2,4] x) => (float[2,2] y, float[2,2] z) { y, z = Split<AXIS, num_outputs=2>(x) }"
    for axis in ("axis=1", "axis=-1"):
        facts, _ = facts_of(text.replace("AXIS", axis))
        assert facts["y"] == facts["z"] == BatchRows(0)
    assert why_not(text.replace("AXIS, ", "")) == "it splits the axis of a batch of 2"
    assert why_not(text.replace("AXIS", "axis=-2")) == "it splits the axis of a batch of 2"


def test_sizes_of_parts_are_the_same_for_every_sample() -> None:
    text = (
        "(float[2,4] x, int64[2] n) => (float[2,A] y, float[2,B] z) { y, z = Split<axis=1>(x,n) }"
    )
    assert why_not(text, {"x": 0, "n": 0}) == "its operand 'n' differs from sample to sample"


PAD = """(float[2,3] x, int64[4] d) => (float[A,B] y) <int64[4] p = {PADS}, int64[2] two = {1,1},
    int64[1] last = {-1}, int64[1] first = {0}> { y = Pad(LIST) }"""


@pytest.mark.parametrize(
    ("operands", "pads"),
    [("x, p", "0,1,0,2"), ("x, p", "0,0,0,0"), ("x, two, , last", "0,0,0,0")],
)
def test_other_axes_are_padded(operands: str, pads: str) -> None:
    assert fact_of(PAD.replace("LIST", operands).replace("PADS", pads)) == BatchRows(0)


@pytest.mark.parametrize(
    ("operands", "pads"),
    [("x, p", "1,0,0,0"), ("x, p", "0,0,1,0"), ("x, p", "-1,0,1,0"),
     ("x, two, , first", "0,0,0,0")],
)  # fmt: skip
def test_a_padded_batch_is_refused(operands: str, pads: str) -> None:
    text = PAD.replace("LIST", operands).replace("PADS", pads)
    assert why_not(text) == "it pads the axis of a batch of 2"


def test_pads_are_known_and_equal_for_each_sample() -> None:
    assert (
        why_not(PAD.replace("LIST", "x, d").replace("PADS", "0,0,0,0")) == "its pads are not known"
    )
    text = "(float[2,3] x, float v) => (float[2,4] y) <int64[4] p = {0,0,0,1}> { y = Pad(x, p, v) }"
    assert fact_of(text, X) == BatchRows(0)


def model(nodes: str, x: str = "2,3", more: str = "", consts: str = "") -> str:
    held = f", {consts}" if consts else ""
    return f"""(float[{x}] x{more}) => (y) <int64[1] none = {{0}}, int64[1] one = {{1}},
        int64[1] two = {{2}}, int64[1] less = {{-1}}{held}> {{ {nodes} }}"""


def joined(line: str, x: str = "2,1", more: str = "", consts: str = "") -> str:
    return f"(int64[{x}] x{more}) => (y) <{consts}> {{ y = {line} }}"


def test_where_the_samples_are_and_how_many_edits_it_takes() -> None:
    for text, places, expected, edits in (
        (model('y = Concat<axis=1>(x, x)'), X, BatchRows(0), 0),
        (model('y = Concat<axis=0>(x, x)'), X, "it computes a result from several samples: axis 0 of 'x' is the batch", 0),
        (model('y = Concat<axis=-2>(x, x)'), X, "it computes a result from several samples: axis 0 of 'x' is the batch", 0),
        (model('y = Concat<axis=-1>(x, x)'), X, BatchRows(0), 0),
        (joined('Concat<axis=1>(k, x)', consts='int64[2,1] k = {0,1}'), X, BatchRows(0, step=Columns((1, 0))), 1),
        (joined('Concat<axis=1>(x, k)', consts='int64[2,1] k = {0,2}'), X, BatchRows(0, step=Columns((0, 2))), 1),
        (joined('Concat<axis=1>(k, x)', consts='int64[2,1] k = {5,7}'), X, BatchRows(0, step=Columns((2, 0))), 1),
        (joined('Concat<axis=1>(k, x)', consts='int64[2,2] k = {0,1,1,2}'), X, BatchRows(0, step=Columns((1, 1, 0))), 1),
        (joined('Concat<axis=1>(k, x)', consts='int64[2,2] k = {0,1,1,3}'), X, "its constant 'k' bakes the batch of 2: it has other numbers for each sample", 0),
        (joined('Concat<axis=1>(k, x)', consts='int64[2,1] k = {1,1}'), X, BatchRows(0), 1),
        (joined('Concat<axis=1>(k, x)', x='1,1', consts='int64[1,1] k = {0}'), X, BatchRows(0), 1),
        (joined('Concat<axis=1>(k, x)', x='3,1', consts='int64[3,1] k = {0,1,2}'), X, BatchRows(0, step=Columns((1, 0))), 1),
        (joined('Concat<axis=1>(k, x)', x='3,1', consts='int64[3,1] k = {0,1,3}'), X, "its constant 'k' bakes the batch of 3: it has other numbers for each sample", 0),
        (joined('Concat<axis=0>(k, x)', x='1,2', consts='int64[1,2] k = {0,1}'), {'x': 1}, "its constant 'k' bakes the batch of 2: it has other numbers for each sample", 0),
        (joined('Concat<axis=2>(k, x)', x='3,2,1', consts='int64[3,2,1] k = {0,1,0,1,0,1}'), {'x': 1}, BatchRows(1, step=Columns((1, 0))), 1),
        (joined('Concat<axis=1>(k, x, x)', consts='int64[2,1] k = {0,1}'), X, BatchRows(0, step=Columns((1, 0, 0))), 1),
        (joined('Concat<axis=1>(k, x, a)', consts='int64[2,1] k = {0,1}', more=', int64[2,1] a'), {'x': 0, 'a': 0}, BatchRows(0, step=Columns((1, 0, 0))), 1),
        (joined('Concat<axis=1>(k, x, a)', consts='int64[2,1] k = {0,1}', more=', int64[2,1] a'), X, "its constant 'k' bakes the batch of 2: it has other numbers for each sample", 0),
        (joined('Concat<axis=1>(k, x, a)', consts='int64[2,1] k = {0,1}, int64[2,1] a = {1,1}'), X, "its constant 'k' bakes the batch of 2: it has other numbers for each sample", 0),
        (joined('Concat<axis=1>(k, x)', x='2,D', consts='int64[2,1] k = {0,1}'), X, "its constant 'k' bakes the batch of 2: it has other numbers for each sample", 0),
        (joined('Concat<axis=1>(k, x)', consts='float[2,1] k = {0,1}').replace('int64[2,1] x', 'float[2,1] x'), X, "its constant 'k' bakes the batch of 2: it has other numbers for each sample", 0),
        (joined('Concat<axis=1>(k, x)', consts='int32[2,1] k = {0,1}').replace('int64[2,1] x', 'int32[2,1] x'), X, BatchRows(0, step=Columns((1, 0))), 1),
        (model('y = Slice(x, none, two, none)'), X, BatchRows(0), 1),
        (model('y = Slice(x, none, one, none)'), X, "it takes some of the samples: elements 0 to 1 of a batch of 2", 0),
        (model('y = Slice(x, one, two, none)'), X, "it takes some of the samples: elements 1 to 2 of a batch of 2", 0),
        (model('y = Slice(x, none, two)'), X, BatchRows(0), 1),
        (model('y = Slice(x, none, two, one)'), X, BatchRows(0), 0),
        (model('y = Slice(x, none, two, less)'), X, BatchRows(0), 0),
        (model('y = Slice(x, none, e, none)', consts='int64[1] e = {9223372036854775807}'), X, BatchRows(0), 0),
        (model('y = Slice(x, none, e, none)', consts='int64[1] e = {2147483647}'), X, BatchRows(0), 0),
        (model('y = Slice(x, none, e, none)', consts='int64[1] e = {2147483646}'), X, "it takes some of the samples: elements 0 to 2147483646 of a batch of 2", 0),
        (model('y = Slice(x, none, two, none, two)'), X, "it takes some of the samples: elements 0 to 2 of a batch of 2", 0),
        (model('y = Slice(x, none, two, none, one)'), X, BatchRows(0), 1),
        (model('y = Slice(x, none, one, none)', x='1,3'), X, "it takes some of the samples: elements 0 to 1 of a batch of 1", 0),
        (model('y = Slice(x, less, e, none)', x='1,3', consts='int64[1] e = {9223372036854775807}'), X, "it takes some of the samples: elements -1 to 9223372036854775807 of a batch of 1", 0),
        (model('s = Shape(x) n = Gather(s, none) y = Slice(x, none, n, none)'), X, BatchRows(0), 0),
        (model('s = Shape(x) n = Gather(s, none) y = Slice(x, none, n, one)'), X, "its bounds depend on the size of the batch", 0),
        (model('s = Shape(x) n = Gather(s, none) y = Slice(x, n, two, one)'), X, "its bounds depend on the size of the batch", 0),
        (model('s = Shape(x) n = Gather(s, none) y = Slice(x, none, two, one, n)'), X, "its bounds depend on the size of the batch", 0),
        (model('y = Slice(x, a, two, one)', more=', int64[1] a'), X, "its bounds are not known", 0),
        (model('y = Slice(x, none, a, one)', more=', int64[1] a'), X, "its bounds are not known", 0),
        (model('y = Slice(x, none, two, one, a)', more=', int64[1] a'), X, "its bounds are not known", 0),
        (model('y = Slice(x, b, e)', consts='int64[2] b = {0,1}, int64[2] e = {2,3}'), X, BatchRows(0), 1),
        (model('y = Slice(x, b, e, a)', consts='int64[2] b = {1,0}, int64[2] e = {3,2}, int64[2] a = {1,0}'), X, BatchRows(0), 1),
        (model('f = Reshape(x, less) y = Slice(f, none, e)', consts='int64[1] e = {6}'), X, BatchRows(0, 1, 3), 1),
        (model('f = Reshape(x, less) y = Slice(f, none, e)', consts='int64[1] e = {2}'), X, "it takes some of the samples: elements 0 to 2 of a batch of 6", 0),
        (model('y, z = Split<axis=1>(x, k)', consts='int64[2] k={1,2}'), X, BatchRows(0), 0),
        (model('y, z = Split<axis=0>(x, k)', consts='int64[2] k={1,1}'), X, "it splits the axis of a batch of 2", 0),
        (model('y, z = Split<axis=-2>(x, k)', consts='int64[2] k={1,1}'), X, "it splits the axis of a batch of 2", 0),
        (model('y, z = Split<axis=-1>(x, k)', consts='int64[2] k={1,2}'), X, BatchRows(0), 0),
        (model('y, z = Split(x, k)', consts='int64[2] k={1,1}'), X, "it splits the axis of a batch of 2", 0),
        (model('y, z = Split(x, k)', x='3,2', consts='int64[2] k={1,2}'), {'x': 1}, BatchRows(1), 0),
        (model('y, z = Split<axis=1>(x, k)', more=', int64[2] k'), {'x': 0, 'k': 0}, "its operand 'k' differs from sample to sample", 0),
        (model('y = Pad(x, p)', consts='int64[4] p={0,1,0,1}'), X, BatchRows(0), 0),
        (model('y = Pad(x, p)', consts='int64[4] p={1,0,0,0}'), X, "it pads the axis of a batch of 2", 0),
        (model('y = Pad(x, p)', consts='int64[4] p={0,0,1,0}'), X, "it pads the axis of a batch of 2", 0),
        (model('y = Pad(x, p, , one)', consts='int64[2] p={1,2}'), X, BatchRows(0), 0),
        (model('y = Pad(x, p, , none)', consts='int64[2] p={1,2}'), X, "it pads the axis of a batch of 2", 0),
        (model('y = Pad(x, p, , none)', consts='int64[2] p={0,0}'), X, BatchRows(0), 0),
        (model('y = Pad(x, p)', more=', int64[4] p'), X, "its pads are not known", 0),
        (model('y = Pad(x, p, v)', consts='int64[4] p={0,1,0,1}', more=', float v'), X, BatchRows(0), 0),
        (model('y = Pad(x, p, , two)', x='2,3,4', consts='int64[2] p={1,2}'), X, BatchRows(0), 0),
        (model('y = Pad(x, p, , a)', x='2,3,4', consts='int64[4] p={1,0,2,0}, int64[2] a = {2,0}'), X, BatchRows(0), 0),
        (model('y = Pad(x, p, , a)', x='2,3,4', consts='int64[4] p={1,0,2,1}, int64[2] a = {2,0}'), X, "it pads the axis of a batch of 2", 0),
    ):  # fmt: skip
        assert fact_or_why_not(text, places) == (expected, edits), text


def test_what_the_edits_write() -> None:
    for text, places, expected in (
        (joined('Concat<axis=1>(k, x)', consts='int64[2,1] k = {1,1}'), X,
         "Shape; Gather 1:[0]; Concat axis=0 1:[1]; Expand 0:[1]; Concat axis=1"),
        (joined('Concat<axis=1>(k, x)', x='1,1', consts='int64[1,1] k = {0}'), X,
         "Shape; Gather 1:[0]; Concat axis=0 1:[1]; Expand 0:[0]; Concat axis=1"),
        (model('y = Slice(x, none, two, none)'), X,
         "Slice 1:[0] 2:[9223372036854775807] 3:[0]"),
        (model('y = Slice(x, none, two)'), X,
         "Slice 1:[0] 2:[9223372036854775807]"),
        (model('y = Slice(x, none, two, none, one)'), X,
         "Slice 1:[0] 2:[9223372036854775807] 3:[0] 4:[1]"),
        (model('y = Slice(x, b, e)', consts='int64[2] b = {0,1}, int64[2] e = {2,3}'), X,
         "Slice 1:[0,1] 2:[9223372036854775807,3]"),
        (model('y = Slice(x, b, e, a)', consts='int64[2] b = {1,0}, int64[2] e = {3,2}, int64[2] a = {1,0}'), X,
         "Slice 1:[1,0] 2:[3,9223372036854775807] 3:[1,0]"),
        (model('f = Reshape(x, less) y = Slice(f, none, e)', consts='int64[1] e = {6}'), X,
         "Reshape 1:[-1]; Slice 1:[0] 2:[9223372036854775807]"),
    ):  # fmt: skip
        assert rebatched(text, places) == expected, text
