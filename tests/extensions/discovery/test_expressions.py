"""Expressions: each structure once, with its cost, its text and its node."""

from typing import Any

import numpy as np
import onnx
import pytest

from tests.extensions.discovery.making import Maker
from tiered.extensions.discovery.expressions import (
    BORDER,
    CONSTANT,
    ExpressionTable,
    GrammarExpr,
    node_of,
    outputs_of,
)
from tiered.extensions.discovery.grammar import FLOAT, INT64
from tiered.graph import Tensor


def test_attributes_with_their_default_are_not_written() -> None:
    make = Maker()
    assert make("Softmax", make.x, axis=-1) is make("Softmax", make.x)


def test_the_cost_counts_shared_nodes_once_and_no_views() -> None:
    make = Maker()
    flat = make("Reshape", make("Relu", make.x), [6])
    assert make("Add", flat, flat).cost == (3, 4 * 6 * 2 + 4 * 6 * 2)
    deep = make("Reshape", flat, [1, 6])
    assert make("Add", deep, flat).cost == (4, 4 * 6 * 2 + 4 * 6 * 2)


KIND = (FLOAT, (2, 3))


@pytest.fixture
def table() -> ExpressionTable:
    return ExpressionTable()


@pytest.fixture
def x(table: ExpressionTable) -> GrammarExpr:
    return table.border("x", FLOAT, [2, 3])


def apply(
    table: ExpressionTable, op: str, *operands: GrammarExpr | None, **attributes: Any
) -> GrammarExpr:
    return table.apply(op, operands, attributes, kind=KIND)


def test_equal_structures_are_one_object(table: ExpressionTable, x: GrammarExpr) -> None:
    assert table.border("x", FLOAT, (2, 3)) is x
    assert apply(table, "Relu", x) is apply(table, "Relu", x)
    assert apply(table, "Concat", x, x, axis=1) is table.apply(
        "Concat", [x, x], (("axis", 1),), kind=KIND
    )


@pytest.mark.parametrize("what", ["op", "name", "dtype", "shape", "attribute", "output", "domain"])
def test_another_structure_is_another_one(
    table: ExpressionTable, x: GrammarExpr, what: str
) -> None:
    y = table.border("y", FLOAT, (2, 3))
    first = table.apply("Softmax", [x], {"axis": 0}, kind=KIND)
    others = {
        "op": table.apply("LogSoftmax", [x], {"axis": 0}, kind=KIND),
        "name": table.apply("Softmax", [y], {"axis": 0}, kind=KIND),
        "dtype": table.apply("Softmax", [x], {"axis": 0}, kind=(INT64, (2, 3))),
        "shape": table.apply("Softmax", [x], {"axis": 0}, kind=(FLOAT, (3, 2))),
        "attribute": table.apply("Softmax", [x], {"axis": 1}, kind=KIND),
        "output": table.apply("Softmax", [x], {"axis": 0}, kind=KIND, output=1),
        "domain": table.apply("Softmax", [x], {"axis": 0}, kind=KIND, domain="com.microsoft"),
    }
    assert others[what] is not first
    assert others[what].number != first.number


def test_constants_are_one_by_their_bits(table: ExpressionTable) -> None:
    one = table.constant(np.array([0.0, 1], np.float32))
    assert table.constant(np.array([0.0, 1], np.float32)) is one
    assert table.constant(np.array([-0.0, 1], np.float32)) is not one
    assert table.constant(np.array([0.0, 1], np.float64)) is not one
    assert table.constant(np.array([[0.0, 1]], np.float32)) is not one
    assert (one.op, one.shape, one.nbytes) == (CONSTANT, (2,), 8)


def test_lists_and_numpy_numbers_are_plain_attributes(
    table: ExpressionTable, x: GrammarExpr
) -> None:
    first = apply(table, "Transpose", x, perm=[1, 0])
    assert first is apply(table, "Transpose", x, perm=np.array([1, 0]))
    assert first.attributes == (("perm", (1, 0)),)
    leaky = apply(table, "LeakyRelu", x, alpha=0.1)
    assert leaky is apply(table, "LeakyRelu", x, alpha=np.float32(0.1))
    assert apply(table, "LeakyRelu", x, alpha=0.01) is apply(table, "LeakyRelu", x)


def test_a_border_is_no_operator(table: ExpressionTable, x: GrammarExpr) -> None:
    assert not x.is_operator
    assert not table.constant(np.array([1], np.float32)).is_operator
    assert apply(table, "Relu", x).is_operator
    assert (x.op, str(x), x.nbytes) == (BORDER, "x", 24)


def test_expressions_are_walked_operands_first_and_once(
    table: ExpressionTable, x: GrammarExpr
) -> None:
    a = apply(table, "Relu", x)
    b = apply(table, "Clip", a, None, table.constant(np.array(1, np.float32)))
    y = apply(table, "Add", a, b)
    assert [each.op for each in y.walk()] == ["border", "Relu", "constant", "Clip", "Add"]
    assert [each.op for each in y.nodes().values()] == ["Relu", "Clip", "Add"]


def test_results_of_one_node_are_one_node(table: ExpressionTable, x: GrammarExpr) -> None:
    parts = [table.apply("Split", [x], {"num_outputs": 2}, kind=(FLOAT, (1, 3)), output=at)
             for at in (0, 1)]  # fmt: skip
    assert parts[0].node_key == parts[1].node_key
    y = table.apply("Add", parts, kind=(FLOAT, (1, 3)))
    assert len(y.nodes()) == 2


def test_what_a_node_moves() -> None:
    make = Maker()
    x = make.x  # 24 bytes
    assert make("Relu", x).cost == (1, 48)
    assert make("Add", x, x).cost == (1, 48)
    assert make("Reshape", x, [6]).cost == (1, 0)
    assert make("Add", x, 1.0).cost == (1, 48)  # a small constant is a parameter
    assert make("Gather", x, [0], axis=0).cost == (1, 2 * 12)
    assert make("Transpose", x, perm=[1, 0]).cost == (1, 48)
    large = make.meaning.table.constant(np.ones((65, 1, 1), np.float32))
    wide = make.meaning.applied("Add", [x, large], ())[0]
    assert wide.cost == (1, 65 * 24 + 24 + 65 * 4)
    small = make.meaning.table.constant(np.ones((64, 1, 1), np.float32))
    assert make.meaning.applied("Add", [x, small], ())[0].cost == (1, 64 * 24 + 24)


def test_text_is_short(table: ExpressionTable, x: GrammarExpr) -> None:
    clip = apply(table, "Clip", x, None, table.constant(np.array(1.5, np.float32)))
    assert str(clip) == "Clip(x, _, 1.5)"
    assert str(apply(table, "Transpose", x, perm=[1, 0])) == "Transpose<perm=[1, 0]>(x)"
    second = table.apply("Split", [x], {"num_outputs": 2}, kind=KIND, output=1)
    assert str(second) == "Split<num_outputs=2, result=1>(x)"
    assert str(table.constant(np.arange(3))) == "[0,1,2]"
    assert "..." in str(table.constant(np.arange(99)))


def test_a_node_has_names_attributes_and_absent_operands(
    table: ExpressionTable, x: GrammarExpr
) -> None:
    top = table.constant(np.array(1.5, np.float32))
    node = node_of(apply(table, "Clip", x, None, top), {x.number: "a", top.number: "b"}, ["y"])
    assert (node.op_type, [*node.input], [*node.output]) == ("Clip", ["a", "", "b"], ["y"])
    moved = node_of(apply(table, "Transpose", x, perm=[1, 0]), {x.number: "a"}, ["y"])
    assert (moved.attribute[0].name, [*moved.attribute[0].ints]) == ("perm", [1, 0])
    assert (
        node_of(
            table.apply("Gelu", [x], kind=KIND, domain="com.microsoft"), {x.number: "a"}, ["y"]
        ).domain
        == "com.microsoft"
    )


def test_how_many_results_an_operator_has(table: ExpressionTable, x: GrammarExpr) -> None:
    assert outputs_of(apply(table, "Relu", x)) == 1
    assert outputs_of(table.apply("TopK", [x], kind=KIND, output=1)) == 2
    sizes = table.constant(np.array([1, 1, 1]))
    assert outputs_of(table.apply("Split", [x, sizes], kind=KIND)) == 3
    assert outputs_of(table.apply("Split", [x], {"num_outputs": 4}, kind=KIND)) == 4
    assert outputs_of(table.apply("Split", [x], kind=KIND, output=1)) == 2


def test_operators_of_other_domains_are_no_views_and_no_splits(
    table: ExpressionTable, x: GrammarExpr
) -> None:
    indices = table.border("i", INT64, (1,))
    own = [
        table.apply(op, [x, indices], kind=(FLOAT, (1, 3)), domain="own")
        for op in ("Reshape", "Gather")
    ]
    assert [each.cost for each in own] == [(1, 12 + 24 + 8)] * 2
    pair = table.apply("Add", [own[0], x], kind=KIND)
    assert pair.cost == (2, 44 + 24 + 12 + 24)
    split = table.apply("Split", [x], {"num_outputs": 4}, kind=KIND, domain="own")
    assert outputs_of(split) == 1
    assert outputs_of(table.apply("Split", [x, indices], kind=KIND, output=1)) == 2
    assert outputs_of(table.apply("Concat", [x, table.constant(np.arange(3))], kind=KIND)) == 1


def test_the_cost_of_absent_operands_and_views_of_views(
    table: ExpressionTable, x: GrammarExpr
) -> None:
    clip = apply(table, "Clip", x, None, table.constant(np.array(1.5, np.float32)))
    assert clip.cost == (1, 48)
    view = table.apply("Flatten", [None], kind=KIND)
    assert table.apply("Add", [view, x], kind=KIND).cost == (2, 24 + 24 + 24)


def test_attributes_are_plain_numbers_lists_and_tensors(
    table: ExpressionTable, x: GrammarExpr
) -> None:
    soft = apply(table, "Softmax", x, axis=np.int64(0))
    assert type(dict(soft.attributes)["axis"]) is int
    unknown = apply(table, "Nothing", x, a=1)
    assert unknown.attributes == (("a", 1),)
    assert (x.output, table.constant(np.arange(2)).output, soft.output) == (0, 0, 0)
    filled = table.apply(
        "ConstantOfShape", [x], {"value": Tensor.of(np.ones(1, np.float32))}, kind=KIND
    )
    attribute = node_of(filled, {x.number: "a"}, ["y"]).attribute[0]
    assert attribute.type == onnx.AttributeProto.TENSOR
    assert attribute.t.dims == [1]
