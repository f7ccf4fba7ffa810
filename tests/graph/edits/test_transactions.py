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
from tiered.graph.edits.transactions import (
    check_free,
    check_model,
    check_node,
    check_node_within,
    check_place,
    check_value,
    is_hidden,
)
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


SIBLINGS = """g (float[2] x, bool c) => (float[2] y) { a = Neg(x)  y = If (c) <
    then_branch = t () => (float[2] u) { s = Exp(a)  u = If (c) <
        then_branch = tt () => (float[2] p) { d = Abs(s)  p = Neg(d) },
        else_branch = te () => (float[2] q) { q = Neg(a) }> },
    else_branch = f () => (float[2] v) { s = Abs(x)  v = Neg(s) }> }"""


def graphs() -> dict[str, Graph]:
    return {graph.name: graph for graph in small(SIBLINGS).graphs()}


def refusal(check: Callable[..., object], *args: object) -> str:
    with pytest.raises(ModelError) as caught:
        check(*args)
    return str(caught.value)


def test_what_is_not_in_a_graph_is_named() -> None:
    found, other = graphs(), small(OTHER).main
    main, body, inner = found["g"], found["t"], found["tt"]
    a, s, p = main.values["a"], body.values["s"], inner.values["p"]
    nodes = {value.name: value.producer for value in (a, s, p)}
    for name, node in nodes.items():
        assert node is not None
        check_node(node.owner, node)
        check_node_within(main, node)
        if name != "a":
            place = f"is in {node.owner!r}, not in <Graph 'g', 2 nodes>"
            said = f"node {node.label!r} {place}; expected one of its nodes"
            assert refusal(check_node, main, node) == said
    assert nodes["p"] is not None
    assert nodes["a"] is not None
    check_node_within(body, nodes["p"])
    assert "expected one of its nodes" in refusal(check_node_within, inner, nodes["a"])
    check_value(main, a)
    assert refusal(check_value, main, s).endswith(
        "is in <Graph 't', 2 nodes>, not in <Graph 'g', 2 nodes>; expected one of its values"
    )
    check_model(main, s)
    check_model(inner, a)
    assert refusal(check_model, main, other.values["p"]).endswith(
        "is in another model than <Graph 'g', 2 nodes>"
    )
    for kind, places in (("input", 1), ("output", 1)):
        check_place(nodes["a"], 0, kind)  # type: ignore[arg-type]  # a literal
        for index in (-1, 1):
            said = refusal(check_place, nodes["a"], index, kind)
            assert said == f"node 'node_a' has no {kind} {index}; it has {places}"


def test_a_name_is_free_where_it_hides_nothing_and_is_not_hidden() -> None:
    found = graphs()
    main, body, other, inner = (found[name] for name in ("g", "t", "f", "tt"))
    taken = "graph {!r} or an outer graph already has a value {!r}"
    for graph, name, bearer, said in (
        (main, "new", None, None), (main, "", None, "a value of graph 'g' needs a name that is not empty"),
        (main, "a", None, taken.format("g", "a")), (main, "a", main.values["a"], None),
        (main, "a", main.values["x"], taken.format("g", "a")), (main, "s", None, taken.format("g", "s")),
        (main, "d", None, taken.format("g", "d")), (body, "d", None, taken.format("t", "d")),
        (other, "d", None, None), (inner, "s", None, taken.format("tt", "s")),
        (inner, "a", None, taken.format("tt", "a")), (inner, "v", None, None), (inner, "q", None, None),
        (body, "s", body.values["s"], None), (inner, "d", inner.values["d"], None),
        (body, "d", inner.values["d"], None),
    ):  # fmt: skip
        if said is None:
            check_free(graph, name, bearer)
        else:
            assert refusal(check_free, graph, name, bearer) == said


def test_names_that_a_body_has_in_the_file_are_not_free() -> None:
    found = graphs()
    main, body, other, inner = (found[name] for name in ("g", "t", "f", "tt"))
    body.file_names["s"] = "shown"
    main.model.names.take("shown")
    said = "'shown' is the name of an input or output of a body in the file"
    for graph, bearer, is_taken in (
        (body, None, True), (inner, None, True), (main, None, False), (other, None, False),
        (main, main.values["a"], True), (main, main.values["x"], False), (inner, inner.values["d"], True),
    ):  # fmt: skip
        if is_taken:
            assert refusal(check_free, graph, "shown", bearer) == said
        else:
            check_free(graph, "shown", bearer)
    assert is_hidden(main.values["a"], "shown")
    assert not is_hidden(main.values["a"], "other")
    assert not is_hidden(main.values["x"], "shown")
    returned = found["te"]
    returned.set_graph_outputs([main.values["x"]], returned.output_infos)
    assert is_hidden(main.values["x"], "shown")
