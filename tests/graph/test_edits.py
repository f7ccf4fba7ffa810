"""Random edits: the view equals a fresh one after each, and undoing all gives the first bytes."""

import hypothesis.strategies as st
import numpy as np
import onnx
import pytest
from hypothesis import given, settings

from tiered.errors import ModelError
from tiered.graph import Graph, Model, Node, Value

TEXT = """
<ir_version: 10, opset_import: ["" : 21, "local" : 1]>
g (float[2,3] x, bool c, float[3] w = {1, 2, 3}) => (float[2,3] y, float[2,3] x, float[2,3] z)
<float[3] k = {4, 5, 6}, float[3] unused = {0, 0, 0}, int64 n = {2}, float[2,3] b, float[2,3] q>
{
    a = Add(x, w)
    b = Mul(a, a)
    f = local.twice(b)
    i = If(c) <
        then_branch = t () => (float[2,3] p) <float[3] k2 = {7, 8, 9}> {
            q = Sub(a, k2)
            n = If(c) <
                then_branch = tt () => (float[2,3] r) { r = Mul(q, b) },
                else_branch = te () => (float[2,3] r2) { r2 = Identity(a) }
            >
            p = Add(n, k)
        },
        else_branch = e () => (float[2,3] p2) { p2 = Relu(f) }
    >
    count, stop = Loop(n, , b) <
        body = l (int64 at, bool go, float[m,3] v) => (bool go2, float[m,3] w2, float[2,3] each)
        <float[3] step = {1, 1, 1}> {
            go2 = Identity(go)
            w2 = Add(v, step)
            each = Mul(w2, b)
        }
    >
    y = Div(i, k)
    z = Concat<axis=0>(i)
    dead, dead2 = Split<axis=1, num_outputs=2>(a)
}
<domain: "local", opset_import: ["" : 21]> twice (v) => (u) { o = Constant<value_float=2.0>() u = Mul(v, o) }
"""


def fresh() -> Model:
    model = Model.from_proto(onnx.parser.parse_model(TEXT))
    model.check_view()
    return model


def serialized(model: Model) -> bytes:
    return model.to_proto().SerializeToString(deterministic=True)


class Editor:
    """Does one random edit, or leaves the model alone where a primitive refuses it."""

    def __init__(self, model: Model, data: st.DataObject) -> None:
        self.model = model
        self.data = data

    def pick(self, choices: list[object], what: str) -> object:
        return self.data.draw(st.sampled_from(choices), label=what)

    def graph(self) -> Graph:
        graph = self.pick(list(self.model.graphs()), "graph")
        assert isinstance(graph, Graph)
        return graph

    def visible(self, graph: Graph) -> Value | None:
        found: list[object] = []
        scope: Graph | None = graph
        while scope is not None:
            found += scope.values.values()
            scope = scope.parent
        value = self.pick(found, "value") if found else None
        assert value is None or isinstance(value, Value)
        return value

    def node(self, graph: Graph) -> Node | None:
        node = self.pick(list(graph.nodes), "node") if len(graph) else None
        assert node is None or isinstance(node, Node)
        return node

    def step(self) -> None:
        graph = self.graph()
        edits = [
            self.add, self.remove, self.set_input, self.set_attribute, self.replace_uses,
            self.add_constant, self.remove_constant, self.rename_value, self.rename_node,
            self.prune, self.drop_outputs, self.set_inputs, self.outputs, self.dissolve,
            self.copy_nodes, self.add_with_body, self.set_opset, self.remove_function,
            self.declare, self.forget_types,
        ]  # fmt: skip
        edit = self.data.draw(st.sampled_from(edits), label="edit")
        try:
            edit(graph)
            # A cycle is for the passes to avoid; the view tells of it, and the edit is undone here.
            for each in self.model.graphs():
                each._order = None
                each.topological_order()
        except ModelError:
            raise
        except IndexError:
            pytest.fail("an edit left an index behind")

    def add(self, graph: Graph) -> None:
        value = self.visible(graph)
        if value is not None:
            graph.add_node("Add", (value, value))

    def remove(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None and not node.is_used:
            graph.remove_node(node)

    def set_input(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None and node.inputs:
            index = self.data.draw(st.integers(0, len(node.inputs) - 1), label="index")
            graph.set_input(node, index, self.visible(graph))

    def set_inputs(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None:
            graph.set_inputs(node, (*node.inputs, None, self.visible(graph)))

    def set_attribute(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None:
            graph.set_attribute(node, "tag", self.data.draw(st.sampled_from([1, 2.5, "t", None])))

    def replace_uses(self, graph: Graph) -> None:
        old, new = self.visible(graph), self.visible(graph)
        if old is not None and new is not None and old.owner.sees(new):
            graph.replace_uses(old, new)

    def add_constant(self, graph: Graph) -> None:
        graph.constant(np.array([1.0, 2.0, 3.0], np.float32))

    def remove_constant(self, graph: Graph) -> None:
        for value in graph.initializers:
            if not value.is_used and not value.is_graph_input:
                graph.remove_constant(value)
                return

    def rename_value(self, graph: Graph) -> None:
        value = self.visible(graph)
        if value is not None:
            value.owner.rename_value(value, self.model.names.fresh("renamed"))

    def rename_node(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None:
            graph.rename_node(node, self.data.draw(st.sampled_from(["", "one", "two"])))

    def prune(self, graph: Graph) -> None:
        graph.prune(graph.nodes)

    def drop_outputs(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None:
            unread = [i for i, v in enumerate(node.outputs) if v is not None and not v.is_used]
            graph.drop_outputs(node, unread)

    def outputs(self, graph: Graph) -> None:
        if not graph.is_function and graph.outputs:
            graph.set_graph_outputs(graph.outputs[::-1], graph.output_infos[::-1])

    def dissolve(self, graph: Graph) -> None:
        bodies = [body for node in graph.nodes for body in node.bodies if not body.inputs]
        if bodies:
            body = self.pick(bodies, "body")
            assert isinstance(body, Graph)
            assert body.owner is not None
            graph.dissolve(body.owner, body)

    def copy_nodes(self, graph: Graph) -> None:
        source = self.graph()
        order = source.topological_order()
        start = self.data.draw(st.integers(0, len(order)), label="start")
        nodes = order[start : start + 3]
        stands = {value: self.visible(graph) for value in source.inputs}
        graph.copy_nodes(nodes, stands, prefix=self.data.draw(st.sampled_from(["", "p"])))

    def add_with_body(self, graph: Graph) -> None:
        value = self.visible(graph)
        if value is not None:
            node = graph.add_node("If", (value,), 1, bodies=("then_branch", "else_branch"))
            for body in node.bodies:
                inner = body.add_node("Relu", (value,))
                body.set_graph_outputs([inner.output], [onnx.ValueInfoProto()])

    def set_opset(self, graph: Graph) -> None:
        version = self.data.draw(st.sampled_from([None, 1, 21]), label="version")
        domain = self.data.draw(st.sampled_from(["local", "other"]), label="domain")
        holds = self.model.opset_imports if not graph.root.is_function else graph.root.opset_imports
        if version is not None or domain in holds:
            self.model.set_opset(domain, version, graph.root)

    def remove_function(self, graph: Graph) -> None:
        for function in self.model.functions:
            self.model.remove(function)
            return

    def declare(self, graph: Graph) -> None:
        value = self.visible(graph)
        if value is not None and value.graph is graph:
            kept = self.data.draw(st.integers(0, len(graph.declarations)), label="kept")
            graph.set_declarations([(value, onnx.ValueInfoProto())], keep=kept)

    def forget_types(self, graph: Graph) -> None:
        for value in graph.values.values():
            assert value.type is None or str(value.type)
        self.model.forget_types()


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_each_edit_keeps_every_invariant_and_undoing_all_gives_back_the_first_bytes(
    data: st.DataObject,
) -> None:
    model = fresh()
    for graph in model.graphs():
        assert graph.dag is not None
    first = serialized(model)
    editor = Editor(model, data)
    marks = []
    for _ in range(data.draw(st.integers(1, 25), label="steps")):
        mark = model.mark()
        before = serialized(model)
        try:
            editor.step()
        except ModelError:
            model.undo_to(mark)
            assert serialized(model) == before
        model.check_view()
        marks.append((mark, before))
    again = Model.from_proto(model.to_proto())
    again.check_view()
    assert serialized(again) == serialized(model)
    for mark, before in reversed(marks):
        model.undo_to(mark)
        model.check_view()
        assert serialized(model) == before
    assert serialized(model) == first
