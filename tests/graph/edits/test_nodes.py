"""Nodes come, go, move and change places; all that refers to them follows."""

from collections.abc import Callable, Iterator

import numpy as np
import onnx
import pytest

from tests.graph.editor import fresh, serialized, wound_back
from tests.small import made_by, model as small, named, parsed
from tiered.graph import Graph, Model, Tensor, Value
from tiered.graph.opset.adapter import detached
from tiered.support.errors import ModelError
from tiered.testing import parse

TEXT = """g (float[2,3] x, bool c) => (float[2,3] y, float[2,3] z) <float[3] w = {1, 2, 3}> {
    a = Relu(x)  b = Add(a, w)
    y = If (c) <then_branch = t () => (float[2,3] u) { i = Exp(a)  u = Neg(i) },
                else_branch = f () => (float[2,3] v) { v = Abs(a) }>
    z = Neg(b) }"""


@pytest.fixture
def graph() -> Iterator[Graph]:
    yield from wound_back(small(TEXT))


def test_a_node_has_the_outputs_that_are_asked_for(graph: Graph) -> None:
    x, n = graph.inputs[0], graph.new_value("mine")
    one = graph.add_node("Relu", (x,))
    several = graph.add_node("Split", (x,), ["first", "", n], name="cut")
    assert one.name == "Relu"
    assert [value.name for value in one.outputs if value] == ["Relu_output_0"]
    assert [value and value.name for value in several.outputs] == ["first", None, "mine"]
    assert list(several.proto.output) == ["first", "", "mine"]
    assert several.outputs[2] is n
    assert (n.producer, n.index) == (several, 2)
    assert graph.add_node("Relu", (x,)).name == "Relu_1"


def test_attributes_bodies_and_overload_are_written(graph: Graph) -> None:
    made = graph.add_node(
        "Own", (None, graph.inputs[0]), 0, {"k": 3}, domain="mine", bodies=("b",), overload="o"
    )
    assert (made.attr("k"), made.callee) == (3, ("mine", "Own", "o"))
    assert [body.attribute for body in made.bodies] == ["b"]
    assert made.bodies[0].parent_node is made
    assert list(made.proto.input) == ["", "x"]
    assert graph.model.opset_imports["mine"] == 1


def test_a_domain_that_onnx_knows_is_imported_as_it_is_known() -> None:
    model = parsed("(float[2] x) => (float[2] y) { y = Relu(x) }")
    model.set_opset("com.microsoft", None)
    model.main.add_node("Binarizer", (named(model, "x"),), domain="ai.onnx.ml")
    assert model.opset_imports["ai.onnx.ml"] == 1
    model.main.add_node("Gelu", (named(model, "x"),), domain="com.microsoft")
    assert model.opset_imports["com.microsoft"] == 1


@pytest.mark.parametrize(("ir", "opset"), [(10, 22), (8, 18), (3, 8), (1, 8)])
def test_a_default_domain_that_is_not_imported_is_that_of_the_ir_version(
    ir: int, opset: int
) -> None:
    text = f'<ir_version: {ir}, opset_import: ["d" : 1]> g (float[2] x) => (float[2] y)'
    model = Model.from_proto(onnx.parser.parse_model(f"{text} {{ y = d.F(x) }}"))
    model.main.add_node("Relu", (named(model, "x"),))
    assert model.opset_imports[""] == opset


def test_a_function_and_the_model_import_a_new_domain() -> None:
    model = fresh()
    function = model.functions[0]
    function.add_node("F", (function.inputs[0],), domain="late")
    assert (function.opset("late"), model.opset("late")) == (1, 1)


@pytest.mark.parametrize(
    ("edit", "because"),
    [
        (lambda g: g.add_node("Relu", (g.nodes[2].bodies[0].values["i"],)), "is not visible"),
        (lambda g: g.add_node("Relu", (g.inputs[0],), ["a"]), "already has a value 'a'"),
        (lambda g: g.add_node("Split", (g.inputs[0],), ["n", "n"]), "cannot have an output twice"),
        (lambda g: g.add_node("Relu", (g.inputs[0],), [g.values["a"]]), "has a source already"),
        (lambda g: g.append_node(g.nodes[0]), "node 'node_a' is in graph 'g' already"),
        (lambda g: g.remove_node(g.nodes[0]), "node 'node_a' cannot be removed: 'a' is used"),
        (lambda g: g.remove_node(g.nodes[3]), "cannot be removed: 'z' is used"),
        (lambda g: g.order_nodes(g.nodes[1:]), "needs each of its 4 nodes once; found 3 in 3"),
        (lambda g: g.order_nodes([*g.nodes[:3], g.nodes[0]]), "found 3 in 4 places"),
        (lambda g: g.order_nodes([*g.nodes, g.nodes[0]]), "found 4 in 5 places"),
        (
            lambda g: g.order_nodes(g.nodes[::-1]),
            "node 'node_z' is before its producer 'node_b'",
        ),
        (
            lambda g: g.move_node(g.nodes[2], g.nodes[2].bodies[0]),
            "cannot be moved into a body of its own",
        ),
        (lambda g: g.move_node(g.nodes[0], g.nodes[2].bodies[0]), "is read in"),
        (
            lambda g: g.nodes[2].bodies[0].move_node(g.nodes[2].bodies[0].nodes[1], g),
            "is not visible in graph 'g'",
        ),
        (
            lambda g: g.fold_to_initializer(g.nodes[0], 1, Tensor.of(np.zeros(1))),
            "node 'node_a' has no output 1; it has 1",
        ),
        (
            lambda g: g.fold_to_initializer(g.nodes[0], -1, Tensor.of(np.zeros(1))),
            "node 'node_a' has no output -1; it has 1",
        ),
        (
            lambda g: g.fold_to_initializer(g.nodes[3], 0, Tensor.of(np.zeros(1))),
            "cannot become an initializer: it is absent, or an output of a graph",
        ),
    ],
)
def test_an_edit_of_nodes_that_is_none_is_refused(
    graph: Graph, edit: Callable[[Graph], object], because: str
) -> None:
    with pytest.raises(ModelError, match=because):
        edit(graph)
    assert not graph.model.changed_since(0)


def test_a_node_that_is_removed_comes_back_with_its_operands(graph: Graph) -> None:
    new = graph.add_node("Neg", (graph.values["a"],))
    output = new.output
    graph.remove_node(new)
    assert (new.graph, output.graph) == (None, None)
    assert output.name not in graph.values
    assert new not in graph.dag
    graph.append_node(new)
    assert graph.values[output.name] is output
    assert graph.nodes_of("Neg")[-1] is new
    assert new in graph.dag
    graph.remove_node(new)
    graph.add_node("Exp", (graph.values["a"],), [output.name])
    with pytest.raises(ModelError, match="already has a value"):
        graph.append_node(new)


def test_a_node_whose_name_is_taken_does_not_come_back(graph: Graph) -> None:
    new = graph.add_node("Neg", (graph.values["a"],), name="mine")
    graph.remove_node(new)
    graph.add_node("Neg", (graph.values["a"],), name="mine")
    with pytest.raises(ModelError, match="'mine' has bodies, or its name is taken"):
        graph.append_node(new)


def test_a_node_moves_where_its_operands_are_seen(graph: Graph) -> None:
    owner = graph.nodes[2]
    body, exp = owner.bodies[0], owner.bodies[0].nodes[0]
    body.move_node(exp, graph)
    assert exp.graph is graph
    assert graph.values["i"] is exp.output
    assert exp.output in owner.captured
    assert graph.dag.has_edge(exp, owner)
    graph.move_node(exp, body)
    assert body.values["i"] is exp.output
    assert "i" not in graph.values


def test_a_moved_body_may_shadow_nothing() -> None:
    model = small(
        """g (float[2] x, bool c) => (float[2] y) {
        y = If (c) <
            then_branch = t () => (float[2] u) { s = Exp(x)  u = If (c) <
                then_branch = p () => (float[2] q) { m = Neg(x)  q = Abs(m) },
                else_branch = r () => (float[2] v) { v = Abs(x) }> },
            else_branch = f () => (float[2] w) { m = Abs(x)  w = Exp(m) }> }"""
    )
    then, other = model.main.nodes[0].bodies
    inner = then.nodes_of("If")[0]
    assert then.nodes_of("Exp")
    with pytest.raises(ModelError, match=r"is read in|would shadow"):
        then.move_node(inner, other)


def test_the_order_of_nodes_is_the_one_that_is_set(graph: Graph) -> None:
    a, b, owner, z = graph.topological_order()
    graph.order_nodes([a, owner, b, z])
    assert list(graph.topological_order()) == [a, owner, b, z]
    new = graph.add_node("Abs", (graph.values["b"],))
    graph.set_input(z, 0, new.output)
    order = graph.topological_order()
    assert order.index(new) == order.index(z) - 1


@pytest.mark.parametrize("ir", [3, 4])
def test_before_ir_4_no_output_becomes_an_initializer(ir: int) -> None:
    text = f'<ir_version: {ir}, opset_import: ["" : 9]> g (float[1] x) => (float[1] y)'
    model = Model.from_proto(onnx.parser.parse_model(f"{text} {{ a = Neg(x)  y = Abs(a) }}"))
    node, tensor = made_by(model, "a"), Tensor.of(np.zeros(1, np.float32))
    if ir == 4:
        model.main.fold_to_initializer(node, 0, tensor)
        assert [value.name for value in model.main.initializers] == ["a"]
    else:
        with pytest.raises(ModelError, match="its graph can have no initializers"):
            model.main.fold_to_initializer(node, 0, tensor)


def test_a_folded_output_is_an_initializer_with_the_same_readers() -> None:
    model = fresh()
    value = model.main.values["a"]
    node, users, dag = value.producer, value.users, model.main.dag
    assert node is not None
    before = model.snapshot()
    model.main.fold_to_initializer(node, 0, Tensor.of(np.ones((2, 3), np.float32)))
    assert (value.is_initializer, value.producer, value.users) == (True, None, users)
    assert value.static_shape == (2, 3)
    assert node not in dag
    model.check_view()
    before.restore()
    assert value.producer is node
    assert value.is_initializer is False
    assert set(dag.successors(node)) == set(node.successors)


def test_a_node_with_another_used_output_is_not_folded() -> None:
    main = small(
        """g (float[4] x) => (float[2] y)
        { a, b = Split<axis=0, num_outputs=2>(x)  y = Sub(a, b) }"""
    ).main
    node = main.values["a"].producer
    assert node is not None
    with pytest.raises(ModelError, match="'b' is used"):
        main.fold_to_initializer(node, 0, Tensor.of(np.ones(3, np.float32)))


def test_a_graph_output_is_not_folded() -> None:
    main = fresh().main
    node = main.outputs[0].producer
    assert node is not None
    with pytest.raises(
        ModelError, match="cannot become an initializer: it is absent, or an output of a graph"
    ):
        main.fold_to_initializer(node, 0, Tensor.of(np.ones(3, np.float32)))


def test_no_edit_makes_a_function_call_itself() -> None:
    made = small(
        """g (float[2] x) => (float[2] y) { y = own.outer(x) }
        <opset_import: ["" : 21, "own" : 1], domain: "own">
        outer (a) => (b) { c = own.inner(a)  b = Neg(c) }
        <opset_import: ["" : 21, "own" : 1], domain: "own">
        inner (d) => (e) { e = Neg(d) }"""
    )
    outer, inner = made.functions
    (call,), (neg,) = made.main.nodes, inner.nodes
    before = serialized(made)
    for edit in (
        lambda: outer.copy_nodes([call], {made.main.inputs[0]: outer.inputs[0]}),
        lambda: inner.add_node("outer", [inner.inputs[0]], domain="own"),
        lambda: inner.add_node("inner", [inner.inputs[0]], domain="own"),
        lambda: inner.set_operator(neg, "outer", "own"),
    ):
        with pytest.raises(ModelError, match="call itself"):
            edit()
        assert serialized(made) == before
    made.main.add_node("inner", [made.main.inputs[0]], domain="own")


ABSENT = """<ir_version: 10, opset_import: ["" : 21, "own" : 1]>
g (float[2] x, bool c) => (float[2] y) {
    a = Neg(x)  s, , t = own.Three(a, , x)  y = Clip(s, , )
    i = If(c) <then_branch = p () => (float[2] q) { r = Neg(x)  q = Abs(r) },
               else_branch = e () => (float[2] f) { f = Neg(x) }>
    j = If(c) <then_branch = pp () => (float[2] qq) { r = Exp(x)  qq = Abs(r) },
               else_branch = ee () => (float[2] ff) { ff = Neg(x) }>
    k = own.calls(x) }
<domain: "own", opset_import: ["own" : 1]> calls (v) => (w) { [N] n = own.Half(v)  w = own.Half(n) }"""


def absent() -> Model:
    model = Model.from_proto(parse(ABSENT))
    assert model.main.dag is not None
    return model


def test_absent_operands_and_outputs_come_and_go_with_their_node() -> None:
    model = absent()
    graph, (_, three, clip, *_) = model.main, model.main.nodes
    body = made_by(graph, "i").bodies[0]
    graph.remove_output(named(graph, "y"))
    for node in (clip, three):
        graph.remove_node(node)
        model.check_view()
    graph.append_node(three)
    graph.append_node(clip)
    model.check_view()
    graph.remove_node(clip)
    graph.move_node(three, body)
    model.check_view()
    model.undo_to(0)
    model.check_view()


def test_a_node_comes_back_only_where_its_operands_are() -> None:
    model = absent()
    graph = model.main
    a, branch = made_by(graph, "a"), made_by(graph, "i")
    new = graph.add_node("Neg", (a.output,))
    graph.remove_node(new)
    with pytest.raises(ModelError, match=r"'a' float.* is not visible in graph 'calls'"):
        model.functions[0].append_node(new)
    graph.remove_node(branch)
    with pytest.raises(ModelError, match="'i' has bodies, or its name is taken"):
        graph.append_node(branch)
    unnamed = made_by(graph, "y")
    graph.remove_output(unnamed.output)
    graph.remove_node(unnamed)
    graph.append_node(unnamed)
    assert unnamed.graph is graph


def test_a_detached_value_becomes_an_output() -> None:
    graph = absent().main
    x, value = graph.inputs[0], Value(graph.model.next_serial(), None, "mine")
    with pytest.raises(ModelError, match="'const'> has a source already: 'Neg' cannot be it"):
        graph.add_node("Neg", (x,), [detached(np.zeros(1))], name="Neg")
    graph.add_node("Neg", (x,), [value])
    assert str(value.type) == "float[2]"
    length = len(graph.model.journal)
    graph.add_node("Relu", (x,))
    assert len(graph.model.journal) == length + 1


def test_new_domains_have_the_version_of_the_model_or_of_their_operator() -> None:
    model = absent()
    (function,) = model.functions
    model.set_opset("late", 3)
    function.add_node("F", (function.inputs[0],), domain="late")
    assert function.opset("late") == 3
    function.add_node("Neg", (function.inputs[0],))
    assert function.opset() == 21
    model.main.add_node("LabelEncoder", (model.main.inputs[0],), domain="ai.onnx.ml")
    assert model.opset_imports["ai.onnx.ml"] == 4


def test_which_outputs_become_initializers() -> None:
    tensor = Tensor.of(np.zeros(2, np.float32))
    for name, index, reason in (
        ("s", 1, "it is absent, or an output of a graph"), ("s", 0, "'t' is used"), ("s", 2, "'s' is used"),
        ("n", 0, "its graph can have no initializers"), ("a", 0, None), ("j", 0, None),
    ):  # fmt: skip
        model = absent()
        if (name, index) == ("s", 0):
            model.main.add_node("Neg", (named(model, "t"),))
        graph = model.functions[0] if name == "n" else model.main
        node = made_by(graph, name)
        if reason is None:
            value = node.output
            graph.fold_to_initializer(node, index, tensor)
            model.check_view()
            model.undo_to(0)
            model.check_view()
            assert value.producer is node
            continue
        with pytest.raises(ModelError) as caught:
            graph.fold_to_initializer(node, index, tensor)
        ending = f"cannot become an initializer: {reason}"
        assert str(caught.value) == f"output {index} of node {node.label!r} {ending}"
    model = absent()
    node = made_by(model, "s")
    model.main.set_input(made_by(model, "y"), 0, named(model, "t"))
    folded = named(model, "t")
    model.main.fold_to_initializer(node, 2, tensor)
    assert (folded.index, folded.is_initializer) == (0, True)
    model.check_view()


def test_a_node_moves_only_where_its_body_hides_nothing() -> None:
    model = absent()
    graph = model.main
    i, j = made_by(graph, "i"), made_by(graph, "j")
    with pytest.raises(ModelError, match="a body of node 'j' would shadow 'r' of <Graph 'p'"):
        graph.move_node(j, i.bodies[0])
    graph.move_node(j, i.bodies[1])
    model.check_view()
    call, (function,) = made_by(graph, "k"), model.functions
    graph.set_input(call, 0, None)
    with pytest.raises(ModelError, match="call itself"):
        graph.move_node(call, function)
    outer = graph.add_node("If", (None,), 1, bodies=("then_branch", "else_branch"))
    inner = outer.bodies[0].add_node("calls", (None,), domain="own")
    outer.bodies[0].set_graph_outputs([inner.output], [onnx.ValueInfoProto()])
    with pytest.raises(ModelError, match="call itself"):
        graph.move_node(outer, function)
