"""Inputs that are sizes, axes or amounts get values that fit what they size."""

import pytest

from tests.runtime.inputs.facts_of import facts_of, only

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
    outputs = "y, z" if call.startswith(("Split", "TopK")) and "Seq" not in call else "y"
    dims = "2" if call.startswith("Split") else "K"
    found = only(
        f"(float[4,3,1] x, int64[{dims}] i) {OUT} <int64[1] e = {{1}}> {{ {outputs} = {call} }}"
    )
    assert found.kind == "values"
    assert found.values == values


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
