"""Samples through operators by their axis maps, and through those with the batch first."""

import pytest

from tests.analysis.batching.facts_of import edits_of, fact_of, facts_of, why_not
from tiered.analysis.batching.sample_facts import BatchRows

MIXES = "it computes a result from several samples: axis {} of '{}' is the batch"


@pytest.mark.parametrize(
    ("text", "places", "expected"),
    [
        ("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }", {"x": 0}, BatchRows(0)),
        ("(float[2,3] x) => (float[3,2] y) { y = Transpose(x) }", {"x": 0}, BatchRows(1)),
        ("(float[2,3] x) => (float[2] y) <int64[1] a = {1}> "
         "{ y = ReduceSum<keepdims=0>(x, a) }", {"x": 0}, BatchRows(0)),
        ("(float[3,2] x) => (float[2] y) <int64[1] a = {0}> "
         "{ y = ReduceSum<keepdims=0>(x, a) }", {"x": 1}, BatchRows(0)),
        ("(float[2,3] x, float[3] z) => (float[2,3] y) { y = Add(x, z) }", {"x": 0}, BatchRows(0)),
        ("(float[3] z, float[2,3] x) => (float[2,3] y) { y = Add(z, x) }", {"x": 0}, BatchRows(0)),
        ("(float[2,3] x, float[1,3] z) => (float[2,3] y) { y = Add(x, z) }", {"x": 0}, BatchRows(0)),
        ("(float[2,3] x, float[2,3] z) => (float[2,3] y) { y = Add(x, z) }",
         {"x": 0, "z": 0}, BatchRows(0)),
        ("(float[2,3] x, float[3,4] w) => (float[2,4] y) { y = MatMul(x, w) }", {"x": 0}, BatchRows(0)),
    ],
)  # fmt: skip
def test_samples_keep_a_parallel_axis(
    text: str, places: dict[str, int], expected: BatchRows
) -> None:
    facts, state = facts_of(text, places)
    assert facts["y"] == expected
    assert not state.edits


@pytest.mark.parametrize(
    ("text", "places", "reason"),
    [
        ("(float[2,3] x) => (float[2,3] y) { y = Softmax<axis=0>(x) }", {"x": 0},
         MIXES.format(0, "x")),
        ("(float[2,2] x, float[2,2] z) => (float[2,2] y) { y = Add(x, z) }", {"x": 0, "z": 1},
         MIXES.format(0, "x")),
        ("(float[1,3] x, float[4,3] z) => (float[4,3] y) { y = Add(x, z) }", {"x": 0},
         MIXES.format(0, "x")),
        ("(float[3,2] x, float[2,4] w) => (float[3,4] y) { y = MatMul(x, w) }", {"x": 1},
         MIXES.format(1, "x")),
        ("(float[2,3] x) => (float[2,3] y) { y = acme.Any(x) }", {"x": 0},
         "the operator may mix samples: it has no rule"),
        ("(float[2,3] x, float a) => (uint8[2,3] y, float s, uint8 z)"
         " { y, s, z = DynamicQuantizeLinear(x) }", {"x": 0},
         "its scale follows from the elements of all samples"),
        ("(float[2,3] x, int64 a) => (float[2,3] y) { y = CumSum(x, a) }", {"x": 0},
         "its axis is not constant"),
        ("(float[2,3,4] x, float[3] a) => (float[2,3,4] y, float[3] m, float[3] v) "
         "{ y, m, v = BatchNormalization<training_mode=1>(x, a, a, a, a) }", {"x": 0},
         "its output 'm' has no rule"),
    ],
)  # fmt: skip
def test_what_mixes_samples_is_refused(text: str, places: dict[str, int], reason: str) -> None:
    assert why_not(text, places) == reason


def test_an_output_without_axes_that_is_not_used_is_none() -> None:
    text = """(float[2,3,4] x, int64 a) => (float[2,3,2] y) {
        y, i = MaxPool<kernel_shape=[2], strides=[2]>(x) }"""
    assert fact_of(text) == BatchRows(0)


def test_samples_in_different_orders_are_refused() -> None:
    text = """(float[2,3] x, float[6] z) => (float[6] y) <int64[1] flat = {-1}> {
        a = Reshape(x, flat)  y = Add(a, z) }"""
    assert fact_of(text, {"x": 0}, of="a") == BatchRows(0, 1, 3)
    text = """(float[2,3] x, float[3,2] z) => (float[6] y) <int64[1] flat = {-1}> {
        a = Reshape(x, flat)  b = Reshape(z, flat)  y = Add(a, b) }"""
    assert why_not(text, {"x": 0, "z": 1}) == "its operands have the samples in different orders"


def test_an_operand_with_equal_parts_is_broadcast() -> None:
    text = """(float[2,3] x) => (float[2,3] y) <float[2,3] z = {NUMBERS}> { y = Add(x, z) }"""
    equal, different = (
        text.replace("NUMBERS", "1,2,3,1,2,3"),
        text.replace("NUMBERS", "1,2,3,4,5,6"),
    )
    assert fact_of(equal) == BatchRows(0)
    assert edits_of(equal) == 1
    assert why_not(different) == (
        "its constant 'z' bakes the batch of 2: it has other numbers for each sample"
    )


def test_an_operand_that_does_not_broadcast_is_repeated() -> None:
    text = """(float[2,3] x) => (float[2,2] y) <int64[2,2] i = {0,1,0,1}>
        { y = GatherElements<axis=1>(x, i) }"""
    assert fact_of(text) == BatchRows(0)
    assert edits_of(text) == 1
    assert why_not(text.replace("0,1,0,1", "0,1,1,1")).startswith("its constant 'i' bakes")


def test_an_operand_of_several_neighbours_is_lifted() -> None:
    """The mask of windows: four rows a sample, which are the first axis."""
    text = """(float[2,4,3] x) => (float[8,3] y) <int64[2] s = {-1,3}, float[8,1] m = {MASK}> {
        a = Reshape(x, s)  y = LINE }"""
    equal = text.replace("MASK", "1,2,3,4,1,2,3,4")
    assert fact_of(equal.replace("LINE", "Mul(a, m)")) == BatchRows(0, 1, 4)
    assert edits_of(equal.replace("LINE", "Mul(a, m)")) == 1
    different = text.replace("MASK", "1,2,3,4,1,2,3,5").replace("LINE", "Mul(a, m)")
    assert why_not(different).startswith("its constant 'm' bakes the batch of 2")


def test_a_batch_of_matrices_is_lifted() -> None:
    text = """(float[2,4,3,5] x) => (float[8,3,2] y) <int64[3] s = {-1,3,5}, float[8,5,2] m = {MASK}> {
        a = Reshape(x, s)  y = MatMul(LIST) }"""
    numbers = ",".join(map(str, range(40)))
    text = text.replace("MASK", f"{numbers},{numbers}")
    assert fact_of(text.replace("LIST", "a, m")) == BatchRows(0, 1, 4)
    assert edits_of(text.replace("LIST", "a, m")) == 1


def test_dims_behind_those_that_are_lifted_are_static() -> None:
    text = """(float[2,4,S] x) => (float[8,S] y) <int64[2] s = {8,-1}, float[8,1] m = {1,2,3,4,1,2,3,4}> {
        a = Reshape(x, s)  y = Mul(a, m) }"""
    assert fact_of(text, of="a") == BatchRows(0, 1, 4)
    assert why_not(text) == "'a' has dynamic dims behind those of the batch"


def test_a_bias_that_does_not_broadcast_is_repeated() -> None:
    text = """(float[2,4] x) => (float[8] y) <int64[1] s = {-1}, float[8] m = {1,2,3,4,1,2,3,4}> {
        a = Reshape(x, s)  y = com.microsoft.BiasGelu(a, m) }"""
    assert fact_of(text) == BatchRows(0, 1, 4)
    assert edits_of(text) == 1


def test_a_product_of_rows_is_no_operator_to_lift() -> None:
    text = """(float[2,4,3] x) => (float[8,5] y) <int64[2] s = {-1,3}, float[8,5] c = {CS}> {
        a = Reshape(x, s)  y = Gemm(a, w, c)  w = ConstantOfShape<value=float[1] {1}>(ws)
        ws = Constant<value_ints=[3,5]>() }""".replace("CS", ",".join("1" * 40))
    assert why_not(text) == (
        "its operands have a number for each of several neighbours of a sample"
    )


# --- the batch first ------------------------------------------------------------------------------

ATTENTION = """(float[B,2,3,4] x, float[B,2,3,4] k, float[M] m) => (float[B,2,3,4] y)
    { y = Attention(LIST) }"""


def attention(operands: str, mask: str = "3,3", batch: int = 1) -> str:
    text = ATTENTION.replace("LIST", operands).replace("[M]", f"[{mask}]")
    return text.replace("[B", f"[{batch}")


@pytest.mark.parametrize(
    ("operands", "places", "mask", "edits"),
    [
        ("x, x, x", {"x": 0}, "3,3", 0),
        ("x, k, k", {"x": 0, "k": 0}, "3,3", 0),
        ("x, k, k", {"x": 0}, "3,3", 2),
        ("x, x, x, m", {"x": 0}, "3,3", 0),
        ("x, x, x, m", {"x": 0}, "1,2,3,3", 0),
        ("x, x, x, m", {"x": 0, "m": 0}, "1,2,3,3", 0),
    ],
)
def test_attention_has_the_batch_first(
    operands: str, places: dict[str, int], mask: str, edits: int
) -> None:
    facts, state = facts_of(attention(operands, mask), places, opset=23)
    assert facts["y"] == BatchRows(0)
    assert len(state.edits) == edits


def test_a_mask_of_each_sample_has_four_axes() -> None:
    reason = why_not(attention("x, x, x, m", "1,3,3"), {"x": 0, "m": 0}, opset=23)
    assert reason == "the first axis of its mask 'm' is not that of the batch"
    # One of 4 axes that all samples share is repeated, if it is equal for each.
    reason = why_not(attention("x, x, x, m", "2,2,3,3", 2), {"x": 0}, opset=23)
    assert reason.startswith("its value 'm' bakes the batch of 2: it may have other numbers")


def test_operands_of_attention_with_the_batch_elsewhere_mix_samples() -> None:
    text = """(float[2,1,3,4] x) => (float[2,1,3,4] y) { y = Attention(x, x, x) }"""
    assert why_not(text, {"x": 1}, opset=23) == MIXES.format(1, "x")


ROTARY = """(float[1,2,3,4] x, float[A] c, int64[1,3] p) => (float[1,2,3,4] y)
    { y = RotaryEmbedding(LIST) }"""


def test_the_caches_of_a_rotary_embedding_have_samples_unless_positions_have() -> None:
    caches = ROTARY.replace("[A]", "[1,3,2]").replace("LIST", "x, c, c")
    for places, edits in (({"x": 0, "c": 0}, 0), ({"x": 0}, 2)):
        facts, state = facts_of(caches, places, opset=23)
        assert facts["y"] == BatchRows(0)
        assert len(state.edits) == edits
    table = ROTARY.replace("[A]", "[9,2]").replace("LIST", "x, c, c, p")
    for places, edits in (({"x": 0, "p": 0}, 0), ({"x": 0}, 1)):
        facts, state = facts_of(table, places, opset=23)
        assert facts["y"] == BatchRows(0)
        assert len(state.edits) == edits
    reason = why_not(table, {"x": 0, "c": 0}, opset=23)
    assert reason == "its operand 1 differs from sample to sample"


def test_a_dtype_that_is_copied_has_no_samples() -> None:
    text = "(float[2] x, double[2] z) => (double[2] y) { y = CastLike(x, z) }"
    assert fact_of(text, {"x": 0, "z": 0}) == BatchRows(0)
    assert fact_of(text, {"z": 0}) is None
