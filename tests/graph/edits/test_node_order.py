"""order_nodes: the order in which nodes are saved, and its undo."""

import pytest

from tiered import Model, ModelError
from tiered.testing import parse

TEXT = (
    "(float[2] x) => (float[2] y) { a = Sin(x) b = Cos(x) c = Exp(x) d = Add(a, b) y = Add(d, c) }"
)


def names(model: Model) -> list[str]:
    return [node.output.name for node in model.main.topological_order()]


def test_it_is_saved_and_undone() -> None:
    model = Model.from_proto(parse(TEXT))
    a, b, c, d, y = model.main.topological_order()
    before = model.snapshot()
    model.main.order_nodes([b, a, d, c, y])
    assert names(model) == ["b", "a", "d", "c", "y"]
    assert [node.output[0] for node in model.to_proto().graph.node] == names(model)
    model.check_view()
    before.restore()
    assert names(model) == ["a", "b", "c", "d", "y"]


def test_a_new_node_comes_before_its_first_consumer() -> None:
    model = Model.from_proto(parse(TEXT))
    a, b, c, d, y = model.main.topological_order()
    model.main.order_nodes([c, b, a, d, y])
    model.main.replace_uses(a.output, model.main.op.Neg(model.main.inputs[0]))
    operators = [node.op_type for node in model.main.topological_order()]
    assert operators == ["Exp", "Cos", "Sin", "Neg", "Add", "Add"]


def test_only_topological_orders_of_all_nodes() -> None:
    model = Model.from_proto(parse(TEXT))
    a, b, c, d, y = model.main.topological_order()
    with pytest.raises(ModelError, match="each of its 5 nodes once; found 4 in 5 places"):
        model.main.order_nodes([a, b, c, d, d])
    with pytest.raises(ModelError, match="node 'd' is before its producer 'b'"):
        model.main.order_nodes([a, c, d, b, y])
    assert names(model) == ["a", "b", "c", "d", "y"]


def test_a_part_is_ordered_by_itself() -> None:
    graph = Model.from_proto(parse(TEXT)).main
    a, b, c, d, y = graph.topological_order()
    graph.order_nodes([b, a, d, c, y])
    assert graph.topological_order([y, d, b, a]) == (a, b, d, y)
    assert graph.topological_order([y, c]) == (c, y)
    assert graph.topological_order([]) == ()
