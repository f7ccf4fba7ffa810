"""Samples through operators that take parts of a tensor, or join several."""

import pytest

from tests.analysis.batching.facts_of import X, edits_of, fact_of, facts_of, why_not
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
