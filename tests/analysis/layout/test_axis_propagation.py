"""Labels of axes that are permuted together, and operators that are written in another order."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.small import made_by, named, ops, parsed
from tiered import Model, Value
from tiered.analysis.layout.axis_propagation import (
    AxisPropagation,
    Labels,
    Permuted,
    any_order,
    constant_operand,
    insert_missing,
    rank_of,
)


def no_write(op: Permuted) -> Sequence[Value]:
    raise AssertionError


def propagation(
    inputs: tuple[Labels | None, ...],
    outputs: tuple[Labels | None, ...],
    allows: Callable[[Labels], bool] = any_order,
    ties: tuple[tuple[Labels, Labels], ...] = (),
) -> AxisPropagation:
    return AxisPropagation(inputs, outputs, no_write, allows, ties)


def test_labels_are_in_the_order_in_which_they_occur() -> None:
    assert propagation(((2, 0), None, (0, 3)), ((1, 2),)).labels == (2, 0, 3, 1)
    assert propagation((None,), (None,)).labels == ()


@pytest.mark.parametrize(
    ("order", "items", "expected"),
    [
        ([0, 1], [0, 1], [0, 1]),
        ([0, 2], [0, 1, 2], [0, 1, 2]),
        ([2, 0], [0, 1, 2], [2, 0, 1]),
        ([1, 2], [0, 1, 2], [0, 1, 2]),
        ([2, 1], [0, 1, 2], [0, 2, 1]),
        ([5, 2, 1], [0, 1, 2], [5, 0, 2, 1]),
        ([5], [0, 1], [0, 1, 5]),
        ([], [3, 4], [3, 4]),
    ],
)
def test_a_missing_item_follows_its_predecessor(
    order: list[int], items: list[int], expected: list[int]
) -> None:
    insert_missing(order, items)
    assert order == expected


def test_an_order_is_completed_by_the_labels_of_all_operands() -> None:
    found = propagation(((0, 1, 2), (1, 2)), ((0, 1, 2, 3),))
    assert found.completed((2, 1)) == (0, 2, 3, 1)
    assert found.completed((3, 2, 1, 0)) == (3, 2, 1, 0)


def test_tied_labels_stay_beside_each_other() -> None:
    # A Reshape of (0, 1, 2): 1 becomes 10 and 11.
    ties = (((1,), (10, 11)),)
    found = propagation(((0, 1, 2),), ((0, 10, 11, 2),), ties=ties)
    assert found.completed((1, 0, 2)) == (1, 10, 11, 0, 2)
    assert found.completed((2, 10, 11, 0)) == (2, 10, 11, 1, 0)
    # Some of the new labels alone say nothing.
    assert found.completed((10, 2)) == (10, 11, 0, 1, 2)


def test_the_order_of_a_tensor_is_one_of_the_operator() -> None:
    found = propagation(((0, 1, 2),), ((0, 1, 2),))
    # The tensor is a view (2, 0, 1): its axis 0 is axis 2 of the root.
    assert found.in_order((0, 1, 2), (2, 0, 1), (0, 1, 2)) == (1, 2, 0)
    assert found.in_order((0, 1, 2), (0, 1, 2), (2, 1, 0)) == (2, 1, 0)


def test_an_order_that_the_operator_does_not_have_is_none() -> None:
    found = propagation(((0, 1),), ((0, 1),), allows=lambda order: order[0] == 0)
    assert found.in_order((0, 1), (0, 1), (0, 1)) == (0, 1)
    assert found.in_order((0, 1), (0, 1), (1, 0)) is None


def test_only_inputs_that_are_permuted_have_labels() -> None:
    found = propagation(((1, 0), None), ((0, 1),))
    assert found.own(0) == (1, 0)
    with pytest.raises(AssertionError):
        found.own(1)


# --- an operator that is being written ------------------------------------------------------------

ADD = """(float[2,3,4] x, float[3,4] z, float[3] v) => (float[2,3,4] y) <int64[3] c = {5,6,7},
    float[3,4] k = {0,1,2,3,4,5,6,7,8,9,10,11}, int64[0] none = {}> { y = Add(x, z) }"""


def permuted(model: Model, order: Labels = (2, 0, 1), second: str = "z") -> Permuted:
    node = made_by(model, "y")
    values = {0: named(model, "x"), 1: named(model, second)}
    found = propagation(((0, 1, 2), (1, 2)), ((0, 1, 2),))
    return Permuted(node, found, order, lambda op, slot: values[slot])


def test_axes_are_arranged_in_the_new_order() -> None:
    op = permuted(parsed(ADD))
    assert op.arranged((0, 1, 2)) == (2, 0, 1)
    assert op.arranged((1, 2)) == (2, 1)
    assert [op.moved((0, 1, 2), axis) for axis in (0, 1, 2, -1)] == [1, 2, 0, 0]
    assert op.perm((0, 1, 2)) == (2, 0, 1)
    assert op.perm((1, 2)) == (1, 0)
    assert op.graph is op.node.owner


def test_inputs_that_are_permuted_are_fetched() -> None:
    model = parsed(ADD)
    op = permuted(model)
    assert op.permuted_slots == [0, 1]
    assert op.permuted() == {0: named(model, "x"), 1: named(model, "z")}
    assert op.operand(1) is named(model, "z")


@pytest.mark.parametrize(
    ("order", "own", "shape"),
    [
        ((0, 1, 2), (1, 2), (3, 4)),
        ((1, 2, 0), (1, 2), (3, 4, 1)),
        ((1, 0, 2), (1, 2), (3, 1, 4)),
        ((2, 0, 1), (1, 2), (4, 1, 3)),
    ],
)
def test_an_operand_broadcasts_to_the_new_order(
    order: Labels, own: Labels, shape: tuple[int, ...]
) -> None:
    for name in ("z", "k"):
        model = parsed(ADD)
        node = made_by(model, "y")
        value = named(model, name)

        def fetch(op: Permuted, slot: int, value: Value = value) -> Value:
            array = value.const
            perm = op.perm((1, 2))
            if array is not None:
                return op.graph.constant(array.transpose(perm))
            made: Value = op.graph.op.Transpose(value, perm=perm)
            return made

        op = Permuted(node, propagation(((0, 1, 2), own), ((0, 1, 2),)), order, fetch)
        made = op.aligned(1, (0, 1, 2))
        assert made.shape == shape
        assert (made.const is None) == (name == "z")


def test_a_value_without_missing_axes_stays() -> None:
    model = parsed(ADD)
    op = permuted(model)
    assert op.unsqueezed(named(model, "z"), ()) is named(model, "z")
    assert op.unsqueezed(named(model, "z"), (0, 2)).shape == (1, 3, 1, 4)


VECTOR = """(float[2,3,4] x, int64[3] d, int64[6] p) => (float[A,B,C] y)
    <int64[3] c = {5,6,7}, int64[6] q = {1,2,3,4,5,6}, int64[0] none = {}> { y = LINE }"""


def test_numbers_of_axes_follow_the_order() -> None:
    for line, slot, halves, expected in (
        ("Tile(x, c)", 1, 1, [7, 5, 6]),
        ("Pad(x, q)", 1, 2, [3, 1, 2, 6, 4, 5]),
    ):
        op = permuted(parsed(VECTOR.replace("LINE", line)), second="x")
        made = op.vector(slot, (0, 1, 2), halves)
        assert made is not None
        assert made.const is not None
        assert made.const.tolist() == expected
    model = parsed(VECTOR.replace("LINE", "Tile(x, d)"))
    made = permuted(model, second="x").vector(1, (0, 1, 2))
    assert made is not None
    gather = made.producer
    assert gather is not None
    assert gather.op_type == "Gather"
    index = gather.inputs[1]
    assert index is not None
    assert index.const is not None
    assert index.const.tolist() == [2, 0, 1]


def test_an_absent_operand_has_no_numbers() -> None:
    model = parsed("(float[2,3,4] x) => (float[A,B,C] y) { y = Resize(x, , s)  s = "
                   "Constant<value_floats=[1.0,1.0,1.0]>() }")  # fmt: skip
    op = permuted(model, second="x")
    assert op.vector(1, (0, 1, 2)) is None
    text = VECTOR.replace("LINE", "ReduceSum(x, none)")
    op = permuted(parsed(text), second="x")
    none = op.vector(1, ())
    assert none is op.operands[1]


def unary(model: Model) -> Permuted:
    kept = propagation(((0, 1),), ((0, 1),))
    return Permuted(made_by(model, "y"), kept, (1, 0), lambda op, slot: named(model, "x"))


def test_an_operator_is_built_with_other_operands_and_attributes() -> None:
    model = parsed("(float[2,3] x, float[2,3] z) => (float[2,3] y) { y = Softmax<axis=0>(x) }")
    op = unary(model)
    (made,) = op.emit({0: named(model, "z")}, axis=1)
    built = made.producer
    assert built is not None
    assert (built.op_type, built.attr("axis"), built.inputs[0]) == ("Softmax", 1, named(model, "z"))
    (made,) = op.emit({})
    assert made.producer is not None
    assert (made.producer.attr("axis"), made.producer.inputs[0]) == (0, named(model, "x"))


def test_an_operator_of_an_old_opset_is_built_from_its_newest_form() -> None:
    model = parsed("(float[2,3] x) => (float[1,3] y) { y = ReduceSum<axes=[0]>(x) }", opset=11)
    op = unary(model)
    assert [value is not None for value in op.operands] == [True, True]
    (made,) = op.emit({1: np.array([1])})
    assert made.producer is not None
    assert list(made.producer.attr("axes")) == [1]


def test_all_outputs_are_built() -> None:
    model = parsed(
        "(float[2,4] x) => (float[2,2] y, float[2,2] z) { y, z = Split<axis=1, num_outputs=2>(x) }"
    )
    op = Permuted(made_by(model, "y"), propagation(((0, 1),), ((0, 1),) * 2), (1, 0),
                  lambda op, slot: named(model, "x"))  # fmt: skip
    made = op.emit({}, axis=0)
    assert len(made) == 2
    assert ops(model) == ["Split", "Split"]


def test_ranks_and_constants_of_operands() -> None:
    model = parsed("(float[2,3] x) => (float[2,1] y) <int64[1] a = {1}> { y = ReduceSum(x, a) }")
    node = made_by(model, "y")
    assert (rank_of(node), rank_of(node, 1), rank_of(node, 2)) == (2, 1, None)
    assert constant_operand(node, 0) is None
    array = constant_operand(node, 1)
    assert array is not None
    assert array.tolist() == [1]
    assert constant_operand(node, 2) is None
    old = parsed("(float[2,3] x) => (float[1,3] y) { y = ReduceSum<axes=[0]>(x) }", opset=11)
    array = constant_operand(made_by(old, "y"), 1)
    assert array is not None
    assert array.tolist() == [0]
