"""Inputs that are sizes, axes or amounts get values that fit what they size."""

import pytest

from tests.runtime.inputs.facts_of import facts_of, only
from tiered.runtime.inputs.graph_facts import Fact

OUT = "=> (float[2,?] y)"


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("Reshape(x, i)", (-1, 1)),
        ("Expand(x, i)", (1,)),
        ("Pad(x, i)", (1, 1, 0, 1, 1, 0)),
        ("Slice(x, i, e)", (0,)),
        ("Slice(x, e, i)", (1,)),
        ("Slice(x, e, e, i)", (0, 1, 2)),
        ("Slice(x, e, e, e, i)", (1,)),
        ("Resize(x, , , i)", (4, 3, 2)),
        ("Squeeze(x, i)", (2,)),
        ("Unsqueeze(x, i)", (0, 1, 2)),
        ("Split(x, i)", (2, 2)),
        ("Split<axis = 1>(x, i)", (1, 2)),
        ("SplitToSequence(x, i)", (2, 2)),
        ("TopK(x, i)", (1,)),
        ("TopK<axis = 0>(x, i)", (3,)),
        ("Tile(x, i)", (2,)),
        ("ReduceSum(x, i)", (0, 1, 2, 3)),
    ],
)
def test_values_fit_the_operand(call: str, values: tuple[float, ...]) -> None:
    found = _of_call(call, "float[4,3,1] x", "int64[2] i" if "Split" in call else "int64[K] i")
    assert found.kind == "values"
    assert found.values == values


def _of_call(call: str, x: str, i: str, opset: int = 21) -> Fact:
    outputs = "y, z" if call.startswith(("Split(", "Split<", "TopK")) else "y"
    text = f"({x}, {i}) {OUT} <int64[1] e = {{1}}> {{ {outputs} = {call} }}"
    return only(text, opset=opset)


@pytest.mark.parametrize(
    ("call", "values"),
    [
        *(("Pad(x, i)", (0,)), ("Slice(x, e, i)", (1,)), ("Slice(x, e, e, i)", (0,))),
        *(("Squeeze(x, i)", (0,)), ("Unsqueeze(x, i)", (0,)), ("Resize(x, , , i)", (2,))),
        *(("TopK(x, i)", (1,)), ("AffineGrid(x, i)", (1, 2, 5, 4, 3)), ("Split(x, i)", (1,))),
    ],
)
def test_an_operand_of_unknown_rank_leaves_the_usual_values(
    call: str, values: tuple[float, ...]
) -> None:
    assert _of_call(call, "float[] x", "int64[K] i").values == values


@pytest.mark.parametrize(
    ("call", "x", "i", "values"),
    [
        ("Resize(x, , , i)", "float[N,3,5] x", "int64[K] i", (2, 3, 10)),
        ("Pad(x, i)", "float[N,2,1] x", "int64[K] i", (0, 1, 0) * 2),
        ("TopK(x, i)", "float[0] x", "int64[1] i", (1,)),
        ("Split(x, i)", "float[4] x", "int64[K] i", (2, 2)),
        ("SplitToSequence(x, i)", "float[4] x", "int64 i", (4,)),
    ],
)
def test_unknown_sizes_and_empty_axes_count_as_small(
    call: str, x: str, i: str, values: tuple[float, ...]
) -> None:
    assert _of_call(call, x, i).values == values


def test_upsample_has_its_scales_as_second_operand() -> None:
    assert _of_call("Upsample(x, i)", "float[1,1,2] x", "float[3] i", opset=9).values == (1, 1, 2)


@pytest.mark.parametrize("call", ["Squeeze(i, e)", "Resize(e, i, e)", "Upsample(i, e)"])
def test_operands_that_size_nothing_are_free(call: str) -> None:
    text = f"(float[1] i) {OUT} <float[1] e = {{1}}> {{ y = {call} }}"
    assert facts_of(text, opset=9 if "Up" in call else 21) == []


def test_a_target_of_unknown_rank_is_one_that_fits() -> None:
    for operator, values in (("Reshape", (-1, 1)), ("Expand", (1,))):
        text = f"(float[3,1] x, int64[K] i) => (float[] y) {{ y = {operator}(x, i) }}"
        assert only(text).values == values, operator


@pytest.mark.parametrize("operator", ["Reshape", "Expand"])
def test_a_declared_result_is_the_target(operator: str) -> None:
    text = f"(float[3,1] x, int64[K] i) => (float[3,4] y) {{ y = {operator}(x, i) }}"
    assert only(text).values == (3, 4)


def test_amounts_along_named_axes_are_none() -> None:
    text = f"(float[4,3] x, int64[K] i) {OUT} <int64[1] a = {{0}}> {{ y = Pad(x, i, , a) }}"
    assert only(text).values == (0,)
    text = f"(float[4,3] x, int64[K] i) {OUT} <int64[2] a = {{0,0}}> {{ y = Pad(x, a, , i) }}"
    assert only(text).values == (0, 1)


def test_scales_keep_batch_and_channels() -> None:
    text = f"(float[1,1,2] x, float[3] i) {OUT} {{ y = Resize(x, , i) }}"
    assert only(text).values == (1, 1, 2)


def test_parts_of_an_unknown_size_have_1_element() -> None:
    text = f"(float[N,3] x, int64[2] i) {OUT} {{ y, z = Split(x, i) }}"
    assert only(text).values == (1,)


def test_a_grid_has_the_batch_of_its_matrices() -> None:
    text = f"(float[5,2,3] x, int64[4] i) {OUT} {{ y = AffineGrid(x, i) }}"
    assert only(text).values == (5, 2, 5, 4, 3)


def test_a_size_through_other_operators_is_no_list_of_values() -> None:
    text = f"(float[4,3] x, int64[K] i) {OUT} {{ a = Abs(i)  y = Reshape(x, a) }}"
    (found,) = facts_of(text)
    assert (found.kind, found.values) == ("size", ())
    assert "through other operators" in found.why
