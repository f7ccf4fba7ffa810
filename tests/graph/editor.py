"""Random edits of a model that has a bit of everything, for the tests of the view."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import onnx

from tiered.graph import Function, Graph, Model, Node, Tensor, TensorType, Value
from tiered.support.errors import ModelError, OperatorError

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
<domain: "local", opset_import: ["" : 21]> choose (s, t) => (u) {
    u = If(s) <
        then_branch = yes () => (h) { h = Neg(t) },
        else_branch = no () => (h) <float one = {1}> { h = Add(t, one) }
    >
}
"""

ONE = onnx.parser.parse_function(
    '<domain: "local", opset_import: ["" : 21]> once (v) => (u) { u = Neg(v) }'
)

Choose = Callable[[Sequence[Any], str], Any]
"""Picks one of several items; the string names the purpose."""


def fresh() -> Model:
    model = Model.from_proto(onnx.parser.parse_model(TEXT))
    model.check_view()
    return model


def serialized(model: Model) -> bytes:
    return bytes(model.to_proto().SerializeToString(deterministic=True))


def wound_back(model: Model) -> Iterator[Graph]:
    """Yield the main graph; after the edits, check the view and that undo restores the bytes."""
    assert model.main.dag is not None
    first = serialized(model)
    yield model.main
    model.check_view()
    model.undo_to(0)
    model.check_view()
    assert serialized(model) == first


def structure(model: Model) -> list[Any]:
    """Return all that two views of one model must agree in, by names and places."""
    # As a file has them: `model.graphs()` goes by serial number.
    graphs: list[Graph] = []
    for root in (model.main, *model.functions):
        pending: list[Graph] = [root]
        while pending:
            graphs.append(pending.pop())
            pending += [body for node in graphs[-1].topological_order() for body in node.bodies]
    places = {
        node: (number, at)
        for number, graph in enumerate(graphs)
        for at, node in enumerate(graph.topological_order())
    }
    return [_structure(graph, places) for graph in graphs]


def _structure(graph: Graph, places: dict[Node, tuple[int, int]]) -> dict[str, Any]:
    def names(values: Sequence[Value | None]) -> list[str]:
        # As the file has them: a body may repeat the names of another one.
        return [
            "" if value is None else value.owner.file_names.get(value.name, value.name)
            for value in values
        ]

    return {
        "nodes": [
            (
                node.name,
                node.callee,
                names(node.inputs),
                names(node.outputs),
                sorted(names(node.captured)),
                [(body.attribute, body.name) for body in node.bodies],
            )
            for node in graph.topological_order()
        ],
        "inputs": names(graph.inputs),
        "outputs": names(graph.outputs),
        "initializers": sorted(names(graph.initializers)),
        "values": {
            graph.file_names.get(name, name): (
                sorted((places[use.node], use.slot) for use in value.users),
                len(value.output_of),
                value.is_captured,
                None if value.producer is None else (places[value.producer], value.index),
            )
            for name, value in graph.values.items()
        },
        "edges": sorted(
            (places[tail], places[head], slots)
            for tail, head, slots in graph.dag.edges(data="slots")
        ),
    }


class Editor:
    """Does one random edit; a primitive that refuses it raises ModelError or OperatorError."""

    def __init__(self, model: Model, choose: Choose) -> None:
        self.model = model
        self.choose = choose

    def graph(self) -> Graph:
        graph = self.choose(list(self.model.graphs()), "graph")
        assert isinstance(graph, Graph)
        return graph

    def number(self, below: int, what: str) -> int:
        return int(self.choose(range(below), what))

    def visible(self, graph: Graph) -> Value | None:
        found: list[Value] = []
        scope: Graph | None = graph
        while scope is not None:
            found += scope.values.values()
            scope = scope.parent
        value = self.choose(found, "value") if found else None
        assert value is None or isinstance(value, Value)
        return value

    def node(self, graph: Graph) -> Node | None:
        node = self.choose(graph.nodes, "node") if len(graph) else None
        assert node is None or isinstance(node, Node)
        return node

    def step(self) -> None:
        graph = self.graph()
        edits = [
            self.add, self.remove, self.set_input, self.set_attribute, self.replace_uses,
            self.add_constant, self.remove_constant, self.set_constant, self.rename_value,
            self.rename_node, self.prune, self.drop_outputs, self.add_detached_output,
            self.exchange_outputs, self.set_inputs, self.order_outputs, self.replace_outputs,
            self.order_inputs, self.add_input, self.remove_input, self.add_output,
            self.remove_output, self.move_node,
            self.move_constant, self.set_type, self.set_metadata, self.set_ir_version,
            self.dissolve, self.copy_nodes, self.add_with_body, self.set_opset, self.add_function,
            self.remove_function, self.declare, self.forget_types, self.splice_in,
            self.set_operator, self.fold_to_initializer, self.exchange_output,
        ]  # fmt: skip
        edit = self.choose(edits, "edit")
        edit(graph)
        # Passes must avoid cycles; the view raises, and the edit is undone here.
        for each in self.model.graphs():
            each.topological_order()

    # --- nodes ------------------------------------------------------------------------------------

    def add(self, graph: Graph) -> None:
        value = self.visible(graph)
        if value is not None:
            graph.add_node("Add", (value, value))

    def remove(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None:
            graph.remove_node(node)

    def fold_to_initializer(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None and node.outputs:
            index = self.number(len(node.outputs), "output")
            graph.fold_to_initializer(node, index, Tensor.of(np.arange(3, dtype=np.float32)))

    def set_input(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None and node.inputs:
            graph.set_input(node, self.number(len(node.inputs), "index"), self.visible(graph))

    def set_inputs(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None:
            graph.set_inputs(node, (*node.inputs, None, self.visible(graph)))

    def set_attribute(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None:
            graph.set_attribute(node, "tag", self.choose([1, 2.5, "t", None], "tag"))

    def set_operator(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None:
            kinds = [("", "Relu"), ("", "Sub"), ("local", "twice")]
            # A function that calls itself is no model.
            domain, op_type = self.choose(kinds[: 2 if graph.root.is_function else 3], "kind")
            graph.set_operator(node, op_type, domain)

    def set_metadata(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None:
            graph.set_metadata(node, {"from": self.choose(["here", "there"], "text")})

    def rename_node(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None:
            graph.rename_node(node, self.choose(["", "one", "two"], "name"))

    def prune(self, graph: Graph) -> None:
        graph.prune(graph.nodes)

    def drop_outputs(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None:
            unread = [i for i, v in enumerate(node.outputs) if v is not None and not v.is_used]
            graph.drop_outputs(node, unread)

    def add_detached_output(self, graph: Graph) -> None:
        node = self.node(graph)
        # A Split says how many it has, and no file may say less.
        if node is not None and node.op_type != "Split":
            name = self.choose(["x", "extra", self.model.names.fresh("extra")], "name")
            value = Value(self.model.next_serial(), None, name)
            graph.set_outputs(node, (*node.outputs, value))

    def exchange_outputs(self, graph: Graph) -> None:
        one, other = self.node(graph), self.node(graph)
        if one is not None and other is not None and one.outputs and other.outputs:
            at, place = self.number(len(one.outputs), "at"), self.number(len(other.outputs), "at")
            graph.exchange_outputs(one, at, other, place)

    def splice_in(self, graph: Graph) -> None:
        node = self.node(graph)
        if node is not None and node.outputs:
            new = graph.add_node("Neg", (), 0)
            graph.insert_after(new, node, self.number(len(node.outputs), "at"))

    def move_node(self, graph: Graph) -> None:
        node, target = self.node(graph), self.graph()
        may_call = node is not None and (node.domain != "" or node.bodies)
        if node is not None and not (may_call and target.root.is_function):
            graph.move_node(node, target)

    def dissolve(self, graph: Graph) -> None:
        bodies = [body for node in graph.nodes for body in node.bodies if not body.inputs]
        if bodies:
            body = self.choose(bodies, "body")
            graph.dissolve(body.parent_node, body)

    def copy_nodes(self, graph: Graph) -> None:
        source = self.graph()
        order = source.topological_order()
        start = self.number(len(order) + 1, "start")
        nodes = order[start : start + 3]
        stands = {value: self.visible(graph) for value in source.inputs}
        graph.copy_nodes(nodes, stands, prefix=self.choose(["", "p"], "prefix"))

    def add_with_body(self, graph: Graph) -> None:
        value = self.visible(graph)
        if value is not None:
            node = graph.add_node("If", (value,), 1, bodies=("then_branch", "else_branch"))
            for body in node.bodies:
                inner = body.add_node("Relu", (value,))
                body.set_graph_outputs([inner.output], [onnx.ValueInfoProto()])

    # --- values -----------------------------------------------------------------------------------

    def replace_uses(self, graph: Graph) -> None:
        old, new = self.visible(graph), self.visible(graph)
        if old is not None and new is not None and old.owner.sees(new):
            graph.replace_uses(old, new)

    def add_constant(self, graph: Graph) -> None:
        graph.constant(np.array([1.0, 2.0, 3.0], np.float32))

    def remove_constant(self, graph: Graph) -> None:
        if graph.initializers:
            graph.remove_constant(self.choose(graph.initializers, "initializer"))

    def set_constant(self, graph: Graph) -> None:
        if graph.initializers:
            value = self.choose(graph.initializers, "initializer")
            numbers = np.array(self.choose([[1.0], [2.0, 3.0]], "numbers"), np.float32)
            graph.set_constant(value, Tensor.of(numbers))

    def move_constant(self, graph: Graph) -> None:
        if graph.initializers:
            graph.move_constant(self.choose(graph.initializers, "initializer"), self.graph())

    def rename_value(self, graph: Graph) -> None:
        value = self.visible(graph)
        if value is not None:
            name = self.choose(["x", "q", "h", self.model.names.fresh("renamed")], "name")
            value.owner.rename_value(value, name)

    def set_type(self, graph: Graph) -> None:
        value = self.visible(graph)
        if value is not None:
            kind = self.choose([TensorType(1, (2, 3)), TensorType(1, None), None], "type")
            graph.set_type(value, kind)

    def declare(self, graph: Graph) -> None:
        value = self.visible(graph)
        if value is not None and value.graph is graph:
            kept = self.number(len(graph.declarations) + 1, "kept")
            graph.set_declarations([(value, onnx.ValueInfoProto())], keep=kept)

    # --- interface --------------------------------------------------------------------------------

    def add_input(self, graph: Graph) -> None:
        name = self.choose(["x", self.model.names.fresh("input")], "name")
        graph.add_input(name, TensorType(1, (2, 3)), index=self.number(len(graph.inputs) + 1, "at"))

    def remove_input(self, graph: Graph) -> None:
        if graph.inputs:
            graph.remove_input(self.choose(graph.inputs, "input"))

    def order_inputs(self, graph: Graph) -> None:
        graph.order_inputs(graph.inputs[::-1])

    def add_output(self, graph: Graph) -> None:
        value = self.visible(graph)
        if value is not None:
            graph.add_output(value, index=self.number(len(graph.outputs) + 1, "at"))

    def exchange_output(self, graph: Graph) -> None:
        new = self.visible(graph)
        if graph.outputs and new is not None:
            graph.exchange_output(self.choose(graph.outputs, "old"), new)

    def remove_output(self, graph: Graph) -> None:
        if graph.outputs:
            graph.remove_output(self.choose(graph.outputs, "output"))

    def order_outputs(self, graph: Graph) -> None:
        graph.order_outputs(graph.outputs[::-1])

    def replace_outputs(self, graph: Graph) -> None:
        graph.replace_outputs([*dict.fromkeys(graph.outputs)][::-1])

    # --- model ------------------------------------------------------------------------------------

    def set_opset(self, graph: Graph) -> None:
        version = self.choose([None, 1, 21], "version")
        domain = self.choose(["local", "other"], "domain")
        holds = self.model.opset_imports if not graph.root.is_function else graph.root.opset_imports
        if version is not None or domain in holds:
            self.model.set_opset(domain, version, graph.root)

    def set_ir_version(self, graph: Graph) -> None:
        self.model.set_ir_version(self.choose([8, 10], "version"))

    def add_function(self, graph: Graph) -> None:
        self.model.add(ONE)

    def remove_function(self, graph: Graph) -> None:
        if self.model.functions:
            function = self.choose(self.model.functions, "function")
            assert isinstance(function, Function)
            self.model.remove(function)

    def forget_types(self, graph: Graph) -> None:
        for value in graph.values.values():
            assert value.type is None or str(value.type)
        self.model.forget_types()


def edited(model: Model, editor: Editor) -> bytes | None:
    """Do one edit and undo it if it raises. Return the bytes before it, if there is an edit."""
    mark, before = model.mark(), serialized(model)
    try:
        editor.step()
    except (ModelError, OperatorError):
        model.undo_to(mark)
        assert serialized(model) == before
        return None
    return before
