"""An edit that fails leaves the model as it was, and none reaches into another graph or model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.graph.editor import serialized
from tests.small import model as small
from tiered import Model, ShapeError
from tiered.compat.ppq import BaseGraph, Operation, Variable
from tiered.graph import Graph, Node, Tensor, Value
from tiered.support.errors import ModelError

TEXT = """g (float[2,3] x, bool c) => (float[2,3] y, float[2,3] z) <float[3] w = {1, 2, 3}> {
    a = Relu(x)
    b = Add(a, w)
    y = If (c) <then_branch = t () => (float[2,3] u) { i = Exp(a)  u = Neg(i) },
                else_branch = f () => (float[2,3] v) { v = Abs(a) }>
    z = Neg(b) }"""

OTHER = "g (float[2,3] p) => (float[2,3] q) <float[3] k = {1, 2, 3}> { q = Mul(p, k) }"


class Pieces:
    """A model, a body of it, and another model."""

    def __init__(self) -> None:
        self.model, self.other = small(TEXT), small(OTHER)
        self.main = self.model.main
        self.body = self.main.body_nodes[0].bodies[0]

    def node(self, name: str, graph: Graph | None = None) -> Node:
        producer = self.value(name, graph).producer
        assert producer is not None
        return producer

    def value(self, name: str, graph: Graph | None = None) -> Value:
        return (graph or self.main).values[name]

    @property
    def inner(self) -> Node:
        return self.node("i", self.body)

    @property
    def foreign(self) -> Node:
        return self.other.main.nodes[0]


def bare(graph: Graph) -> Node:
    return graph.add_node("Neg", (), 0)


Edit = Callable[[Pieces], Any]


def ppq(pieces: Pieces) -> BaseGraph:
    return BaseGraph(pieces.main)


REFUSED: dict[str, Edit] = {
    "link to a node of another model": lambda p: ppq(p).create_link_with_op(
        Operation(p.node("a")), Operation(p.foreign)
    ),
    "link from a node of a body": lambda p: ppq(p).create_link_with_op(
        Operation(p.inner), Operation(p.node("a")), Variable(p.value("i", p.body))
    ),
    "remove a node of a body": lambda p: ppq(p).remove_operation(Operation(p.inner), True),
    "remove a node of another model": lambda p: ppq(p).remove_operation(Operation(p.foreign), True),
    "delete a node of another model": lambda p: ppq(p).remove_operation(Operation(p.foreign)),
    "remove a value of another model": lambda p: ppq(p).remove_variable(
        Variable(p.other.main.values["k"])
    ),
    "join a value of another model": lambda p: p.main.join(p.value("x"), p.other.main.values["k"]),
    "replace by a value of another model": lambda p: p.main.replace_uses(
        p.value("a"), p.other.main.values["p"]
    ),
    "replace a node of a body": lambda p: p.main.replace(p.inner, [p.value("a")]),
    "replace by what a user does not see": lambda p: p.main.replace_uses(
        p.value("a"), p.value("i", p.body)
    ),
    "remove_node of a body": lambda p: p.main.remove_node(p.node("u", p.body)),
    "set_input of another model": lambda p: p.main.set_input(p.foreign, 0, p.value("x")),
    "set_inputs of another model": lambda p: p.main.set_inputs(p.foreign, [p.value("x")]),
    "set_outputs of another model": lambda p: p.main.set_outputs(p.foreign, []),
    "set_attribute of another model": lambda p: p.main.set_attribute(p.foreign, "a", 1),
    "set_metadata of another model": lambda p: p.main.set_metadata(p.foreign, {"a": "b"}),
    "set_operator of another model": lambda p: p.main.set_operator(p.foreign, "Add"),
    "rename_node of another model": lambda p: p.main.rename_node(p.foreign, "n"),
    "rename_node to the name of another node": lambda p: p.main.rename_node(p.node("a"), "node_b"),
    "rename_value of another model": lambda p: p.main.rename_value(p.other.main.values["p"], "n"),
    "move_node of another model": lambda p: p.main.move_node(p.foreign, p.body),
    "fold a node of another model": lambda p: p.main.fold_to_initializer(
        p.foreign, 0, Tensor.of(np.zeros(1, np.float32))
    ),
    "set_constant of another model": lambda p: p.main.set_constant(
        p.other.main.values["k"], Tensor.of(np.zeros(3, np.float32))
    ),
    "remove_constant of another model": lambda p: p.main.remove_constant(p.other.main.values["k"]),
    "move_constant of another model": lambda p: p.main.move_constant(
        p.other.main.values["k"], p.body
    ),
    "two outputs of one name": lambda p: p.main.add_node("Split", [p.value("x")], ["n", "n"]),
    "outputs without declarations": lambda p: p.main.set_graph_outputs([p.value("a")]),
    "inputs without declarations": lambda p: p.main.set_graph_inputs(p.main.inputs),
    "a new domain and a taken name": lambda p: p.main.add_node(
        "Own", [p.value("x")], ["a"], domain="new"
    ),
    "a value that one user needs": lambda p: p.main.delete_value(p.value("a")),
    "readers of which one is foreign": lambda p: p.main.create_value(
        "n", np.zeros(3, np.float32), None, [p.node("a"), p.foreign]
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_edit_changes_nothing(name: str) -> None:
    pieces = Pieces()
    before = serialized(pieces.model), serialized(pieces.other)
    marks = pieces.model.mark(), pieces.other.mark()
    with pytest.raises(ModelError):
        REFUSED[name](pieces)
    assert (serialized(pieces.model), serialized(pieces.other)) == before
    assert (pieces.model.mark(), pieces.other.mark()) == marks
    for model in (pieces.model, pieces.other):
        model.check_view()


@pytest.mark.parametrize("where", ["body", "other"])
def test_a_foreign_node_is_not_inserted(where: str) -> None:
    pieces = Pieces()
    home = pieces.body if where == "body" else pieces.other.main
    new = bare(home)
    before = serialized(pieces.model), serialized(pieces.other)
    insert = pieces.main
    edits: list[Callable[[], object]] = [
        lambda: insert.insert_after(new, pieces.node("a")),
        lambda: insert.insert_before(new, pieces.node("a")),
        lambda: insert.insert_after(bare(insert), pieces.foreign),
        lambda: insert.insert_before(bare(insert), pieces.foreign),
    ]
    for edit in edits:
        mark = pieces.model.mark()
        with pytest.raises(ModelError):
            edit()
        pieces.model.undo_to(mark)
        assert (serialized(pieces.model), serialized(pieces.other)) == before


def test_a_detached_value_stays_detached_where_the_node_is_refused() -> None:
    pieces = Pieces()
    value = pieces.main.new_value("n")
    foreign = pieces.other.main.values["p"]
    with pytest.raises(ModelError):
        pieces.main.add_node("Neg", [foreign], [value])
    with pytest.raises(ModelError, match="more outputs than its num_outputs"):
        pieces.main.add_node("Split", [pieces.value("x")], [value, "m"], {"num_outputs": 1})
    assert (value.graph, value.producer) == (None, None)
    pieces.main.add_node("Neg", [pieces.value("x")], [value])


def test_a_rewrite_block_that_raises_is_undone() -> None:
    model = small(TEXT)
    (relu,) = model.main.nodes_of("Relu")
    before = serialized(model)

    def fail() -> None:
        with model.main.rewrite("law", relu):
            model.main.rename_value(relu.output, "n")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (serialized(model), model.gate.count, model.gate.at) == (before, 0, relu.label)


def test_shapes_that_do_not_fit_leave_the_model_as_it_was() -> None:
    model: Model = small(
        "g (float[N,4] x) => (float[M,K] y) <int64[2] s = {2, 6}> { y = Reshape(x, s) }"
    )
    before = serialized(model)
    with pytest.raises(ShapeError):
        model.set_input_shapes({"x": [5, 4]})
    assert serialized(model) == before
