"""Reshape, Gather, Shape and Size in another order of their axes."""

import pytest

from tests.analysis.layout.rules.writing import allows, known, node_of, orders_of_operand, written
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


def test_the_orders_of_the_operand_and_what_is_written_in_each() -> None:
    for text, opset, expected in (
        ("(float[2,3,4] x) => (y) <int64[2] s = {6,4}> { y = Reshape(x, s) }", 21,
         {"201": "1:[4,6]"}),
        ("(float[2,3,4] x) => (y) <int64[2] s = {2,12}> { y = Reshape(x, s) }", 21,
         {"120": "1:[12,2]"}),
        ("(float[2,3,4] x) => (y) <int64[1] s = {-1}> { y = Reshape(x, s) }", 21, {}),
        ("(float[2,12] x) => (y) <int64[3] s = {2,3,4}> { y = Reshape(x, s) }", 21,
         {"10": "1:[3,4,2]"}),
        ("(float[N,3,4] x) => (y) <int64[2] s = {-1,12}> { y = Reshape(x, s) }", 21,
         {"120": "1:[12,-1]"}),
        ("(float[N,M,4] x) => (y) <int64[3] s = {0,-1,4}> { y = Reshape(x, s) }", 21,
         {"021": "1:[0,4,0]", "102": "1:[0,0,4]", "120": "1:[0,4,0]", "201": "1:[4,0,0]",
          "210": "1:[4,0,0]"}),
        ("(float[N,M,4] x) => (y) <int64[2] s = {0,-1}> { y = Reshape(x, s) }", 21, {}),
        ("(float[N,3,M] x) => (y) <int64[3] s = {0,3,-1}> { y = Reshape(x, s) }", 21,
         {"021": "1:[0,0,3]", "102": "1:[3,0,0]", "120": "1:[3,0,0]", "201": "1:[0,0,3]",
          "210": "1:[0,3,0]"}),
        ("(float[N,12] x) => (y) <int64[3] s = {-1,3,4}> { y = Reshape(x, s) }", 21,
         {"10": "1:[3,4,-1]"}),
        ("(float[2,3,4] x) => (y) { y = Shape(x) }", 21,
         {"021": "", "102": "", "120": "", "201": "", "210": ""}),
        ("(float[2,3,4] x) => (y) { y = Shape<start=-2,end=-1>(x) }", 21,
         {"021": "", "102": "", "120": "", "201": "", "210": ""}),
        ("(float[2,3,4] x) => (y) { y = Size(x) }", 21,
         {"021": "", "102": "", "120": "", "201": "", "210": ""}),
        ("(float[2,3,4] x, int64[5] i) => (y) { y = Gather<axis=-1>(x, i) }", 21,
         {"021": "axis=1", "102": "axis=2", "120": "axis=1", "201": "", "210": ""}),
        ("(float[2,3,4] x, int64 i) => (y) { y = Gather<axis=1>(x, i) }", 21,
         {"021": "axis=2", "102": "", "120": "", "201": "axis=2", "210": "axis=1"}),
        ("(float[2,3] x, int64[5,6] i) => (y) { y = Gather<axis=1>(x, i) }", 21, {"10": ""}),
    ):  # fmt: skip
        assert orders_of_operand(text, opset) == expected, text
