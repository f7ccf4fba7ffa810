"""networkx for users: the live view, plain copies, parts, and equality up to names."""

import copy
import io
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import onnx
import pytest

from tests.graph.editor import fresh
from tests.small import model
from tiered.graph import Graph, Model
from tiered.support.errors import ModelError

SHARED = "g (float[2,3] x) => (float[2,3] y) { a = Relu(x)  b = Sub(a, a)  y = Mul(b, a) }"


def parsed(text: str, *, opset: int = 21) -> Graph:
    return Model.from_proto(
        onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}, "l" : 1]> {text}')
    ).main


def test_the_live_view_keeps_both_slots_of_a_value_that_is_read_twice() -> None:
    graph = model(SHARED).main
    relu, sub, mul = graph.nodes
    assert dict(graph.dag.edges) == {
        (relu, sub): {"slots": ((0, 0), (0, 1))},
        (relu, mul): {"slots": ((0, 1),)},
        (sub, mul): {"slots": ((0, 0),)},
    }


def test_the_live_view_is_read_only_and_follows_edits() -> None:
    graph = model(SHARED).main
    dag = graph.dag
    with pytest.raises(nx.NetworkXError, match="Frozen"):
        dag.add_node(None)
    node = graph.add_node("Neg", (graph.values["b"],))
    assert node in dag
    assert nx.ancestors(dag, node) == set(graph.nodes[:2])


@pytest.mark.parametrize(
    "edit",
    [
        lambda dag, edge: dag.edges[edge].__setitem__("slots", []),
        lambda dag, edge: dag[edge[0]][edge[1]].update(slots=[]),
        lambda dag, edge: dag.get_edge_data(*edge).clear(),
        lambda dag, edge: dag.pred[edge[1]][edge[0]].pop("slots"),
        lambda dag, edge: dag.subgraph(edge).edges[edge].setdefault("weight", 1),
        lambda dag, edge: dag.reverse(copy=False).edges[edge[::-1]].popitem(),
        lambda dag, edge: dag.nodes[edge[0]].__setitem__("colour", 1),
        lambda dag, edge: nx.set_node_attributes(dag, 1, "colour"),
        lambda dag, edge: dag.graph.__setitem__("name", "g"),
    ],
)
def test_attributes_of_the_live_view_are_read_only(edit: Callable[[Any, Any], object]) -> None:
    view = model(SHARED)
    graph = view.main
    (edge, *_) = graph.dag.edges
    with pytest.raises(ModelError, match=r"graph\.dag is read-only: edit the graph itself"):
        edit(graph.dag, edge)
    view.check_view()
    graph.set_input(graph.nodes[1], 1, graph.inputs[0])
    assert graph.dag.edges[edge]["slots"] == ((0, 0),)
    graph.set_input(graph.nodes[1], 1, graph.values["a"])
    assert graph.dag.edges[edge]["slots"] == ((0, 0), (0, 1))
    with pytest.raises(AttributeError):
        graph.dag.edges[edge]["slots"].append((0, 2))


def test_a_copy_of_the_live_view_may_be_edited() -> None:
    view = model(SHARED)
    graph = view.main
    for own in (graph.dag.copy(), nx.DiGraph(graph.dag), graph.subgraph(graph.nodes).copy()):
        edge = next(iter(own.edges))
        own.edges[edge]["slots"] = []
        own.nodes[edge[0]]["colour"] = 1
        own.add_edge(*edge[::-1], weight=2)
        own.graph["name"] = "mine"
    for copied in (copy.deepcopy(graph.dag.graph), pickle.loads(pickle.dumps(graph.dag.graph))):
        assert type(copied) is dict
    assert "name" not in graph.dag.graph
    view.check_view()


def test_a_plain_copy_has_names_texts_and_numbers_only() -> None:
    graph = parsed(
        "g (float[2,N] x, bool c) => (float[2,N] y) { a = Relu(x) y = If(c) <"
        "then_branch = t () => (float[2,N] p) { p = Neg(a) },"
        "else_branch = e () => (float[2,N] q) { q = Softmax<axis=0>(a) }> }"
    )
    plain = graph.to_networkx()
    assert list(plain) == ["a", "y"]
    assert plain.nodes["y"]["bodies"] == 1 + 1
    assert plain.nodes["a"] == {
        "op_type": "Relu", "domain": "", "inputs": "x", "outputs": "a", "attributes": "",
        "bodies": 0,
    }  # fmt: skip
    assert plain.edges["a", "y"] == {"slots": "0:", "values": "a", "types": "float[2,N]"}


def test_nodes_of_one_label_are_numbered() -> None:
    proto = model(SHARED).to_proto()
    for node in proto.graph.node:
        node.name = "same"
    graph = Model.from_proto(proto).main
    assert list(graph.to_networkx()) == ["same", "same#2", "same#3"]


def test_networkx_writes_a_plain_copy_as_graphml_gexf_and_json(tmp_path: Path) -> None:
    plain = fresh().main.to_networkx()
    path = tmp_path / "g.graphml"
    nx.write_graphml(plain, path)
    again = nx.read_graphml(path)
    assert dict(again.nodes(data=True)) == dict(plain.nodes(data=True))
    assert dict(again.edges) == dict(plain.edges)
    nx.write_gexf(plain, io.BytesIO())
    assert nx.node_link_data(plain, edges="edges")["nodes"][0]["op_type"] == "Add"


def test_a_part_is_live_too() -> None:
    graph = model(SHARED).main
    part = graph.subgraph(graph.nodes[:2])
    assert [len(part), part.number_of_edges()] == [2, 1]


# --- equality up to names -------------------------------------------------------------------------

BASE = "g (float[N,3] x, float[N,3] z) => (float[N,3] y) <float[3] w = {1,2,3}> { a = Sub(x, z) y = Add(a, w) }"
SAME = [
    BASE.replace("a", "first").replace("flofirstt", "float").replace("N", "batch"),
    BASE.replace("{ a = Sub(x, z)", "{ unread = Neg(x) a = Sub(x, z)"),
    BASE.replace("y = Add(a, w)", "k = Constant<value = float[3] {1,2,3}>() y = Add(a, k)"),
    BASE.replace("float[N,3] z", "float[N,3] u").replace("(x, z)", "(x, u)"),
]  # fmt: skip
OTHER = [
    BASE.replace("Sub(x, z)", "Sub(z, x)"),
    BASE.replace("{1,2,3}", "{1,2,4}"),
    BASE.replace("{1,2,3}", "{-0.0,2,3}"),
    BASE.replace("float[N,3] z", "float[M,3] z"),
    BASE.replace("float[N,3] x, float[N,3] z", "float[N,3] z, float[N,3] x"),
    BASE.replace("Sub", "Mul"),
    BASE.replace("a = Sub(x, z)", "a = Sub(x, x)"),
    BASE.replace("=> (float[N,3] y)", "=> (float[N,3] y, float[N,3] a)"),
]


@pytest.mark.parametrize("text", SAME)
def test_names_do_not_count(text: str) -> None:
    assert parsed(text).is_isomorphic(parsed(BASE))


@pytest.mark.parametrize("text", OTHER)
def test_all_else_counts(text: str) -> None:
    assert not parsed(text).is_isomorphic(parsed(BASE))


def test_a_plain_copy_shows_each_kind_of_attribute_and_what_has_no_name_or_type() -> None:
    graph = parsed(
        """g (float[2] x, bool c) => (float[2] y) {
            w = Constant<value = float[2] {1, 2}>() n = Constant<value_ints = [1, 2]>()
            t = l.F<f = 1.5, s = "text", o : type_proto = float[2]>(x, w, n) y = l.G(t)
            z = If (c) <then_branch = p () => (u) { u = Neg(y) },
                        else_branch = q () => (v) { v = Abs(y) }> }"""
    )
    graph.add_node("Print", (graph.values["t"],), 0, domain="l")
    plain = graph.to_networkx()
    attributes = {name: data["attributes"] for name, data in plain.nodes(data=True)}
    assert attributes == {
        "w": "value=tensor[2]",
        "n": "value_ints=[1 2]",
        "t": "f=1.5, s=text, o=TypeProto",
        "y": "",
        "z": "",
        "Print": "",
    }
    assert plain.edges["w", "t"]["types"] == "float[2]"
    assert plain.edges["t", "y"]["types"] == "?"
    assert plain.edges["t", "Print"] == {"slots": "0:0", "values": "t", "types": "?"}


def test_attributes_count_by_meaning() -> None:
    text = "g (float[2,3] x) => (float[2,3] y) { y = Softmax(x) }"
    assert parsed(text).is_isomorphic(parsed(text.replace("Softmax", "Softmax<axis=-1>")))
    assert not parsed(text).is_isomorphic(parsed(text.replace("Softmax", "Softmax<axis=0>")))
    assert not parsed(text).is_isomorphic(parsed(text, opset=11))


BODY = """g (float[2] x, bool c) => (float[2] y) {
    a = Relu(x)
    y = If(c) <then_branch = t () => (float[2] p) { p = Neg(a) },
               else_branch = e () => (float[2] q) { q = Abs(a) }>
}"""


def test_bodies_count_with_their_captures() -> None:
    assert parsed(BODY).is_isomorphic(parsed(BODY.replace("p", "r").replace("ty", "ty")))
    for other in ("Neg(x)", "Exp(a)"):
        assert not parsed(BODY).is_isomorphic(parsed(BODY.replace("Neg(a)", other)))


def test_functions_count_by_their_body() -> None:
    call = "g (float[2] x) => (float[2] y) { y = l.NAME(x) }"
    function = '<domain: "l", opset_import: ["" : 21]> NAME (v) => (u) { u = OP(v) }'

    def made(name: str, op: str) -> Graph:
        return parsed((call + function).replace("NAME", name).replace("OP", op))

    assert made("f", "Neg").is_isomorphic(made("g", "Neg"))
    assert not made("f", "Neg").is_isomorphic(made("f", "Abs"))


@pytest.mark.parametrize(
    "edit",
    [
        lambda g: g.rename_value(g.values["a"], "other"),
        lambda g: g.rename_node(g.nodes[0], "other"),
        lambda g: g.constant(np.zeros(3, np.float32)),
    ],
)
def test_the_hash_is_that_of_the_structure(edit: Callable[[Graph], None]) -> None:
    graph = fresh().main
    before = graph.structural_hash()
    edit(graph)
    assert graph.structural_hash() == before
    graph.set_input(graph.nodes[1], 0, graph.values["x"])
    assert graph.structural_hash() != before
