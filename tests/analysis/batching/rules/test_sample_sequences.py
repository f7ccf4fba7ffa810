"""Samples through sequences and optionals of tensors."""

import pytest

from tests.analysis.batching.facts_of import edits_of, fact_of, why_not
from tests.small import named, parsed
from tiered.analysis.batching.rules.sample_sequences import begins_empty
from tiered.analysis.batching.sample_facts import BatchRows

BOTH = {"x": 0, "z": 0}
HEAD = """(float[1,3] x, float[1,3] z, int64 i) => (OUTPUT y) """
SEQUENCE = HEAD.replace("OUTPUT", "seq(float[1,3])")
TENSOR = HEAD.replace("OUTPUT", "float[A,B]")


def test_all_tensors_of_a_sequence_have_the_samples_on_one_axis() -> None:
    text = f"{SEQUENCE}{{ y = SequenceConstruct(x, z) }}"
    assert fact_of(text, BOTH) == BatchRows(0)
    assert edits_of(text, BOTH) == 0
    assert fact_of(text) == BatchRows(0)
    assert edits_of(text) == 1  # z is repeated
    text = """(float[1,1] x, float[1,1] z) => (seq(float[1,1]) y) { y = SequenceConstruct(x, z) }"""
    reason = "its operands have the samples on different axes"
    assert why_not(text, {"x": 0, "z": 1}) == reason


INSERT = """(float[1,1] x, float[1,1] z, int64 i) => (seq(float[1,1]) y) {
    s = SEQUENCE  y = SequenceInsert(s, z, i) }"""


@pytest.mark.parametrize(
    ("sequence", "places", "edits"),
    [
        ("SequenceConstruct(x)", {"x": 0, "z": 0}, 0),
        ("SequenceConstruct(x)", {"x": 0}, 1),
        ("SequenceEmpty()", {"z": 0}, 0),
    ],
)
def test_what_is_inserted_has_the_samples_of_the_sequence(
    sequence: str, places: dict[str, int], edits: int
) -> None:
    text = INSERT.replace("SEQUENCE", sequence)
    assert fact_of(text, places) == BatchRows(0)
    assert edits_of(text, places) == edits


@pytest.mark.parametrize(
    ("places", "reason"),
    [
        ({"z": 0}, "its sequence has tensors that all samples share"),
        ({"x": 0, "z": 1}, "its operands have the samples on different axes"),
    ],
)
def test_a_sequence_of_other_samples_is_refused(places: dict[str, int], reason: str) -> None:
    assert why_not(INSERT.replace("SEQUENCE", "SequenceConstruct(x)"), places) == reason


def test_the_place_of_an_insertion_is_the_same_for_every_sample() -> None:
    text = """(float[1,1] x, int64[1] i) => (seq(float[1,1]) y) {
        s = SequenceConstruct(x)  y = SequenceInsert(s, x, i) }"""
    assert why_not(text, {"x": 0, "i": 0}) == "its operand 'i' differs from sample to sample"


@pytest.mark.parametrize(
    ("head", "line"),
    [
        (TENSOR, "y = SequenceAt(s, i)"),
        (SEQUENCE, "y = SequenceErase(s, i)"),
        (TENSOR, "o = Optional(x)  y = OptionalGetElement(o)"),
    ],
)
def test_a_tensor_that_is_taken_has_its_samples(head: str, line: str) -> None:
    assert fact_of(f"{head}{{ s = SequenceConstruct(x, z)  {line} }}", BOTH) == BatchRows(0)


def test_the_place_in_a_sequence_is_the_same_for_every_sample() -> None:
    text = """(float[1,1] x, int64[1] i) => (float[1,1] y) {
        s = SequenceConstruct(x)  y = SequenceAt(s, i) }"""
    assert why_not(text, {"x": 0, "i": 0}) == "its operand 'i' differs from sample to sample"


def test_the_length_of_a_sequence_is_the_same_for_every_batch() -> None:
    text = (
        f"{HEAD.replace('OUTPUT', 'int64')}{{ s = SequenceConstruct(x, z)  y = SequenceLength(s) }}"
    )
    assert fact_of(text, BOTH) is None


SPLIT = """(float[2,3,4] x, int64[2] n) => (seq(float[A,B]) y) {
    y = SplitToSequence<ATTRIBUTES>(LIST) }"""


@pytest.mark.parametrize(
    ("attributes", "operands", "places", "axis"),
    [
        ("axis=1", "x", {"x": 0}, 0),
        ("axis=-1", "x", {"x": 1}, 1),
        ("axis=0, keepdims=0", "x", {"x": 1}, 0),
        ("axis=0", "x", {"x": 1}, 1),
        ("axis=2, keepdims=0", "x", {"x": 1}, 1),
        ("axis=0, keepdims=0", "x, n", {"x": 1}, 1),
        ("keepdims=0", "x", {"x": 2}, 1),
    ],
)
def test_a_split_along_another_axis_may_take_the_axis_away(
    attributes: str, operands: str, places: dict[str, int], axis: int
) -> None:
    text = SPLIT.replace("ATTRIBUTES", attributes).replace("LIST", operands)
    assert fact_of(text, places) == BatchRows(axis)


def test_a_split_of_the_batch_is_refused() -> None:
    text = SPLIT.replace("LIST", "x")
    assert why_not(text.replace("<ATTRIBUTES>", "")) == "it splits the axis of a batch of 2"
    assert why_not(text.replace("ATTRIBUTES", "axis=-3")) == "it splits the axis of a batch of 2"
    text = SPLIT.replace("LIST", "x, n").replace("ATTRIBUTES", "axis=1")
    assert why_not(text, {"x": 0, "n": 0}) == "its operand 'n' differs from sample to sample"


@pytest.mark.parametrize(
    ("attributes", "axis"),
    [("axis=1", 0), ("axis=-1", 0), ("axis=0, new_axis=1", 1), ("axis=1, new_axis=1", 0),
     ("axis=-1, new_axis=1", 0), ("axis=-3, new_axis=1", 1)],
)  # fmt: skip
def test_tensors_of_a_sequence_are_joined_beside_the_batch(attributes: str, axis: int) -> None:
    rank = "A,B,C" if "new_axis" in attributes else "A,B"
    text = f"""(float[1,3] x, float[1,3] z) => (float[{rank}] y) {{
        s = SequenceConstruct(x, z)  y = ConcatFromSequence<{attributes}>(s) }}"""
    assert fact_of(text, BOTH) == BatchRows(axis)


def test_tensors_that_are_joined_along_the_batch_mix_samples() -> None:
    text = f"""{TENSOR}{{ s = SequenceConstruct(x, z)  y = ConcatFromSequence<axis=0>(s) }}"""
    reason = "it computes a result from several samples: axis 0 of 's' is the batch"
    assert why_not(text, BOTH) == reason


LOOP = """(float[1,3] x) => (seq(float[1,3]) y) <int64 n = {2}, bool c = {1}> {
    s = START
    y = Loop(n, c, s) <body = b (int64 i, bool g, seq(float[1,3]) t) => (bool h, seq(float[1,3]) u)
        { h = Identity(g)  u = SequenceInsert(t, x) }> }"""


def test_a_sequence_begins_empty_where_a_loop_begins_with_an_empty_one() -> None:
    for start, is_empty in (("SequenceEmpty()", True), ("SequenceConstruct(x)", False)):
        model = parsed(LOOP.replace("START", start))
        assert begins_empty(named(model, "s")) == is_empty
        (body,) = (graph for graph in model.graphs() if not graph.is_main)
        assert begins_empty(body.inputs[2]) == is_empty
        assert not begins_empty(named(model, "x"))
        assert not begins_empty(named(model, "n"))
    assert not begins_empty(None)
    text = LOOP.replace("START", "SequenceEmpty()")
    assert fact_of(text) == BatchRows(0)
    assert edits_of(text) == 0
