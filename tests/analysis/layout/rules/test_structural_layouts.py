"""Reshape, Gather, Shape and Size in another order of their axes."""

import pytest

from tests.analysis.layout.rules.writing import allows, known, node_of, written
from tiered.graph import Value


def numbers(value: Value | None) -> list[int]:
    assert value is not None
    assert value.const is not None
    found: list[int] = value.const.tolist()
    return found


def test_groups_of_a_reshape_move_as_a_whole() -> None:
    text = "(float[2,3,4] x) => (y) <int64[2] s = {6,4}> { y = Reshape(x, s) }"
    assert numbers(written(text, (2, 0, 1)).inputs[1]) == [4, 6]
    assert not allows(text, (1, 0, 2))
    assert not allows(text, (0, 2, 1))


def test_dims_of_one_element_may_be_anywhere() -> None:
    text = "(float[2,1,3] x) => (y) <int64[3] s = {1,2,3}> { y = Reshape(x, s) }"
    assert all(allows(text, perm) for perm in ((1, 0, 2), (2, 1, 0), (2, 0, 1)))


@pytest.mark.parametrize(("perm", "is_there"), [((1, 2, 0), True), ((1, 0, 2), False)])
def test_a_dynamic_dim_is_copied_or_computed(perm: tuple[int, ...], is_there: bool) -> None:
    text = "(float[N,3,4] x) => (y) <int64[2] s = {0,12}> { y = Reshape(x, s) }"
    assert allows(text, perm) is is_there


def test_sizes_are_gathered_into_the_order_before() -> None:
    made = written("(float[2,3,4] x) => (y) { y = Shape<start=1>(x) }", (2, 0, 1))
    (gather,) = (each for each in made.owner.nodes if each.op_type == "Gather")
    assert numbers(gather.inputs[1]) == [2, 0]
    assert written("(float[2,3,4] x) => (y) { y = Size(x) }", (2, 0, 1)).output.shape == ()


def test_indices_of_one_axis_take_the_place_of_the_gathered_axis() -> None:
    found = known(node_of("(float[2,3,4] x, int64[5] i) => (y) { y = Gather<axis=1>(x, i) }"))
    assert (found.inputs, found.outputs) == (((0, 1, 2), (1,)), ((0, 1, 2),))


def test_axes_of_indices_stay_adjacent() -> None:
    text = "(float[2,3,4] x, int64[5,6] i) => (y) { y = Gather<axis=1>(x, i) }"
    assert written(text, (1, 0, 2)).attr("axis") == 0
    found = known(node_of(text))
    assert found.ties == (((1,), (3, 4)),)
    assert found.allows((0, 1, 3, 4, 2))
    assert not found.allows((3, 0, 1, 4, 2))
