"""Surgery by hand, and the same under PPQ's names; each edit is undone exactly."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tests.graph.editor import fresh, serialized, wound_back
from tests.small import model as small
from tiered import optimize
from tiered.compat.ppq import BaseGraph, Variable
from tiered.graph import Graph, Model, TensorType
from tiered.graph.edits.surgery import mark_parameter, retype
from tiered.support.errors import ModelError

CHAIN = """g (float[2,3] x) => (float[2,3] y, float[2,3] z) <float[3] w = {1, 2, 3}>
{ a = Relu(x)  b = Add(a, w)  c = Clip(b, , )  y = Abs(b)  z = Neg(c) }"""


@pytest.fixture(params=[CHAIN])
def graph(request: pytest.FixtureRequest) -> Iterator[Graph]:
    yield from wound_back(small(request.param))


def lines(graph: Graph) -> list[str]:
    return [
        f"{', '.join(v.name if v else '' for v in node.outputs)} = {node.op_type}"
        f"({', '.join(v.name if v else '' for v in node.inputs)})"
        for node in graph.topological_order()
    ]


def named(graph: Graph, name: str) -> Variable:
    return Variable(graph.values[name])


# --- inserting ------------------------------------------------------------------------------------


def test_insert_before_reroutes_one_input_only(graph: Graph) -> None:
    new = graph.add_node("Neg", (), 0, name="new")
    graph.insert_before(new, graph.values["y"].producer or new, 0)
    assert lines(graph) == [
        "a = Relu(x)",
        "b = Add(a, w)",
        "c = Clip(b, )",
        "new_output = Neg(b)",
        "y = Abs(new_output)",
        "z = Neg(c)",
    ]


def test_insert_after_takes_over_the_value_and_its_users(graph: Graph) -> None:
    b = graph.values["b"]
    new = graph.add_node("Neg", (), 0, name="new")
    assert b.producer is not None
    between = graph.insert_after(new, b.producer)
    assert b.producer is new
    assert [use.node.op_type for use in b.users] == ["Clip", "Abs"]
    assert lines(graph)[1:3] == [f"{between.name} = Add(a, w)", f"b = Neg({between.name})"]


def test_a_graph_output_stays_on_the_far_side(graph: Graph) -> None:
    y = graph.outputs[0]
    new = graph.add_node("Neg", (), 0)
    assert y.producer is not None
    graph.insert_after(new, y.producer)
    assert graph.outputs[0] is y
    assert y.producer is new


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda g: g.insert_before(g.nodes[0], g.nodes[1]), "without inputs and outputs"),
        (lambda g: g.insert_before(g.add_node("Neg", (), 0), g.nodes[0], 3), "no input 3"),
        (
            lambda g: g.insert_before(g.add_node("Neg", (), 0), g.nodes[2], 1),
            "input 1 of .* is absent",
        ),
        (lambda g: g.insert_after(g.add_node("Neg", (), 0), g.nodes[0], 1), "no output 1"),
        (lambda g: g.bypass(g.add_node("Add", (g.inputs[0], g.values["a"]))), "2 inputs"),
        (lambda g: g.delete(g.nodes[0]), "'a' is used"),
        (lambda g: g.delete_value(g.values["a"]), "cannot do without its input 'a'"),
        (lambda g: g.join(g.values["a"], g.values["b"]), "is computed by node"),
        (lambda g: g.connect(g.nodes[0], None, g.values["b"]), "has a source already"),
        (lambda g: g.connect(None, g.nodes[0], g.new_value("v")), "does not see"),
        (lambda g: g.mark_input(g.values["b"]), "cannot be an input"),
        (lambda g: g.add_output(g.new_value("v", TensorType(1, ()))), "cannot be an output"),
        (lambda g: g.add_input("x"), "needs a type"),
        (lambda g: g.add_input("b", TensorType(1, ())), "already has a value 'b'"),
        (lambda g: g.remove_input(g.inputs[0]), "cannot be removed: it is used"),
        (lambda g: g.remove_input(g.values["b"]), "is not an input"),
        (lambda g: g.remove_output(g.values["b"]), "is not an output"),
        (lambda g: g.order_outputs(g.outputs[:1]), "needs the same values"),
        (lambda g: g.assign(g.values["a"], np.zeros(3, np.float32)), "is no initializer"),
        (lambda g: g.assign(g.values["w"], np.zeros(4, np.float32)), "without retype=True"),
        (lambda g: g.append_node(g.nodes[0]), "is in graph 'g' already"),
        (lambda g: g.append_constant(g.values["w"]), "is no initializer that was removed"),
        (lambda g: g.rename_value(g.values["a"], "b"), "already has a value 'b'"),
        (lambda g: g.rename_value(g.values["a"], ""), "a name that is not empty"),
        (lambda g: g.create_value("v", np.zeros(1), g.nodes[0]), "cannot have contents and"),
    ],
)
def test_an_invalid_edit_raises_and_is_undone(
    graph: Graph, break_it: Callable[[Graph], object], message: str
) -> None:
    with pytest.raises(ModelError, match=message), graph.model.transaction():
        break_it(graph)
    assert not graph.model.changed_since(0)


# --- removing -------------------------------------------------------------------------------------


def test_bypass_keeps_the_name_of_an_output(graph: Graph) -> None:
    node = graph.values["y"].producer
    assert node is not None
    graph.bypass(node)
    assert [value.name for value in graph.outputs] == ["y", "z"]
    assert lines(graph) == ["a = Relu(x)", "y = Add(a, w)", "c = Clip(y, )", "z = Neg(c)"]


def test_bypass_removes_a_parameter_without_other_users(graph: Graph) -> None:
    node = graph.values["b"].producer
    assert node is not None
    graph.bypass(node)
    assert graph.initializers == ()
    assert lines(graph)[0].endswith("= Relu(x)")


def test_a_shared_parameter_survives_its_operation(graph: Graph) -> None:
    other = graph.add_node("Add", (graph.inputs[0], graph.values["w"]))
    graph.delete(other)
    assert [value.name for value in graph.initializers] == ["w"]


def test_removing_an_optional_value_leaves_its_place(graph: Graph) -> None:
    limit = graph.constant(np.array(1, np.float32), "limit")
    clip = graph.nodes_of("Clip")[0]
    graph.set_input(clip, 1, limit)
    graph.delete_value(limit)
    assert [value and value.name for value in clip.inputs] == ["b", None]


# --- neighbours -----------------------------------------------------------------------------------


def test_neighbours_include_consumers_in_a_body() -> None:
    main = fresh().main
    a, b = (main.values[name].producer for name in "ab")
    assert a is not None
    assert b is not None
    assert [node.op_type for node in a.successors] == ["Mul", "If", "Split"]
    owner = main.values["i"].producer
    assert owner is not None
    assert [node.op_type for node in owner.predecessors] == ["Add", "Mul", "twice"]
    assert main.values["dead"].producer is not None
    assert main.values["dead"].producer.successors == []


def test_a_removed_node_has_no_neighbours(graph: Graph) -> None:
    node = graph.add_node("Neg", (graph.inputs[0],))
    graph.remove_node(node)
    with pytest.raises(ModelError, match="was removed from its graph"):
        _ = node.successors


# --- history --------------------------------------------------------------------------------------


def test_a_snapshot_brings_the_same_objects_back() -> None:
    model = fresh()
    node = model.main.values["z"].producer
    snapshot = model.snapshot()
    model.main.set_graph_outputs([], [])
    model.main.prune(model.main.nodes)
    assert len(model.main) == 0
    snapshot.restore()
    assert model.main.values["z"].producer is node
    assert model.mark() == snapshot.mark


def test_a_snapshot_of_undone_edits_cannot_be_restored() -> None:
    model = fresh()
    model.main.constant(np.zeros(1))
    snapshot = model.snapshot()
    model.undo_to(0)
    model.main.constant(np.zeros(1))
    with pytest.raises(ModelError, match="edits before it were undone"):
        snapshot.restore()


def test_a_copy_has_a_life_of_its_own() -> None:
    model = fresh()
    copy, deep = model.copy(), model.copy(deep=True)
    model.main.prune(model.main.nodes)
    assert len(copy.main) == len(fresh().main)
    assert serialized(copy) == serialized(deep) == serialized(fresh())


DYNAMIC = """g (float[N,3] x) => (float[N,3] y, int64[2] s) <float[3] w = {1, 2, 3}>
    { a = Mul(x, w)  y = Relu(a)  s = Shape(x) }"""


# --- PPQ's names ----------------------------------------------------------------------------------


def test_ppq_walks_a_graph(graph: Graph) -> None:
    ppq = BaseGraph(graph)
    assert list(ppq.operations) == ["node_a", "node_b", "node_c", "node_y", "node_z"]
    assert set(ppq.variables) == {"x", "w", "a", "b", "c", "y", "z"}
    assert (list(ppq.inputs), list(ppq.outputs)) == (["x"], ["y", "z"])
    add = named(graph, "b").source_op
    assert add is not None
    assert (add.type, add.num_of_input, add.num_of_output) == ("Add", 2, 1)
    assert add.opset.onnx_opset_version() == add.opset.version
    assert [variable.name for variable in add.parameters] == ["w"]
    assert add.num_of_parameter == 1
    assert [operation.type for operation in ppq.get_downstream_operations(add)] == ["Clip", "Abs"]
    assert [operation.type for operation in ppq.get_upstream_operations(add)] == ["Relu"]
    assert ppq.topological_sort()[0].type == "Relu"
    weight = named(graph, "w")
    assert weight.is_parameter
    assert weight.source_op is None
    assert (weight.shape, weight.dtype, weight.dest_idx) == ((3,), 1, (1,))
    assert weight.dest_ops == (add,)
    assert not named(graph, "x").is_parameter
    clip = named(graph, "c").source_op
    assert clip is not None
    assert clip.inputs[1:] == (None,)


def test_ppq_marks_parameters(graph: Graph) -> None:
    weight = named(graph, "w")
    weight.is_parameter = False
    assert [value.name for value in graph.inputs] == ["x", "w"]
    assert not weight.is_parameter
    weight.is_parameter = True
    assert [value.name for value in graph.inputs] == ["x"]
    assert weight.is_parameter
    weight.is_parameter = True
    x = named(graph, "x")
    x.is_parameter = False
    with pytest.raises(ModelError, match="has no contents, it cannot be a parameter"):
        x.is_parameter = True


def test_ppq_edits_a_graph(graph: Graph) -> None:
    ppq = BaseGraph(graph)
    relu = named(graph, "a").source_op
    assert relu is not None
    relu.name, relu.platform = "first", "npu"
    relu.set_attribute("note", "seen")
    relu.extension_attrib["seen"] = True
    assert (relu.name, relu.platform, relu.attributes["note"]) == ("first", "npu", "seen")
    weight = named(graph, "w")
    weight.name, weight.value = "weight", np.array([3, 2, 1], np.float32)
    assert weight.value is not None
    scale = ppq.create_variable("scale", np.array([2], np.float32))
    out = ppq.create_variable("scaled")
    scaled = ppq.create_operation("Mul", "scale_it", {}, [named(graph, "a"), scale], [out])
    ppq.create_link_with_op(scaled, None, out)
    ppq.mark_variable_as_graph_output(out)
    ppq.mark_variable_as_graph_output(out)
    assert list(ppq.outputs) == ["y", "z", "scaled"]
    before = ppq.create_operation("Neg")
    ppq.insert_op_before(before, scaled)
    ppq.remove_operation(before, keep_coherence=True)
    after = ppq.create_operation("Neg")
    ppq.insert_op_after(after, scaled)
    assert out.source_op == after
    assert out.src_idx == 0
    fed = ppq.create_variable("fed")
    fed.dtype, fed.shape = 1, (2, 3)
    ppq.mark_variable_as_graph_input(fed)
    ppq.create_link_with_var(named(graph, "a"), fed)
    assert "fed" not in ppq.variables
    lone = ppq.create_operation("Neg")
    ppq.create_link_with_op(None, lone, out)
    ppq.remove_operation(lone)
    ppq.append_operation(lone)
    ppq.remove_operation(lone)
    spare = ppq.create_variable("spare", np.array([2], np.float32))
    ppq.remove_variable(spare)
    ppq.append_variable(spare)
    assert "spare" in ppq.variables
    assert isinstance(ppq.copy().graph.model, Model)


def test_ppq_changes_operations_and_variables(graph: Graph) -> None:
    ppq = BaseGraph(graph)
    relu = named(graph, "a").source_op
    assert relu is not None
    relu.type = "LeakyRelu"
    relu.attributes["alpha"] = 0.5
    assert dict(relu.attributes) == {"alpha": 0.5}
    assert graph.nodes_of("LeakyRelu") == (relu._node,)
    del relu.attributes["alpha"]
    relu.type = "Abs"
    assert (len(relu.attributes), graph.nodes_of("LeakyRelu")) == (0, ())
    made = ppq.create_variable("made")
    with pytest.raises(ModelError, match="needs a dtype before it has a shape"):
        made.shape = (2, 3)
    made.source_op = ppq.create_operation("Neg", inputs=[named(graph, "a")])
    assert (made.dtype, made.shape) == (1, (2, 3))
    made.shape = ("N", 3)
    assert (made.dtype, made.shape) == (1, ("N", 3))


def test_ppq_copies_stand_alone(graph: Graph) -> None:
    clip = named(graph, "c").source_op
    assert clip is not None
    copy = clip.copy()
    assert (copy.type, *copy.inputs, *copy.outputs) == ("Clip",)
    weight = named(graph, "w").copy(copy_value=True)
    assert weight.value is not None
    assert weight.value.tolist() == [1, 2, 3]
    assert named(graph, "w").copy().source_op is None
    main = fresh().main
    with pytest.raises(ModelError, match="is copied by copy_nodes"):
        main.clone(main.nodes_of("If")[0])


def test_ppq_shape_of_an_input_is_written_to_the_file() -> None:
    made = small(DYNAMIC)
    ppq = BaseGraph(made.main)
    named(made.main, "x").shape = (1, 3)
    assert ppq.inputs["x"].shape == (1, 3)
    optimized = optimize(made.to_proto())
    assert [dim.dim_value for dim in optimized.graph.input[0].type.tensor_type.shape.dim] == [1, 3]
    with pytest.raises(ModelError, match="by its contents"):
        named(made.main, "w").shape = (7,)
    with pytest.raises(ModelError, match="is computed as"):
        named(made.main, "y").shape = (1, 4)


# --- each edit by itself --------------------------------------------------------------------------


def test_new_values_have_names_and_types(graph: Graph) -> None:
    typed = graph.new_value("v", TensorType(1, (2,)))
    assert (graph.new_value().name, typed.name, str(typed.type)) == ("value", "v", "float[2]")
    assert graph.new_value("a").name == "a_1"
    made = graph.create_value(contents=np.zeros(1, np.float32))
    assert (made.name, made.is_initializer) == ("const", True)
    assert graph.create_value("c", np.zeros(1, np.float32)).name == "c_1"
    assert graph.create_value().graph is None
    node = graph.add_node("Neg", (graph.inputs[0],), 0)
    user = graph.add_node("Abs", (), 1)
    linked = graph.create_value("linked", producer=node, users=[user])
    assert (linked.producer, user.inputs) == (node, (linked,))


def test_types_are_set_where_they_are_declared() -> None:
    graph = small(DYNAMIC).main
    x, a, y = (graph.values[name] for name in "xay")
    detached = graph.new_value("d")
    with pytest.raises(ModelError, match="needs a dtype before it has a shape"):
        retype(detached, shape=(2,))
    with pytest.raises(ModelError, match="cannot have the dtype 99: onnx has no such DataType"):
        retype(a, dtype=99)
    retype(detached, dtype=7)
    assert str(detached.type) == "int64"
    retype(detached, shape=(2,))
    assert str(detached.type) == "int64[2]"
    retype(x, shape=(4, 3))
    assert graph.input_infos[0].type.tensor_type.shape.dim[0].dim_value == 4
    retype(a, shape=None)
    assert str(a.type) == "float"
    retype(y, shape=(4, 3))
    assert graph.output_infos[0].type.tensor_type.shape.dim[0].dim_value == 4


def test_what_is_inserted_is_bare_and_in_the_graph(graph: Graph) -> None:
    body = fresh().main.nodes_of("If")[0].bodies[0]
    for new in (
        body.add_node("Neg", (), 0), graph.add_node("Neg", (graph.inputs[0],), 0),
        graph.add_node("Neg", (), 1),
    ):  # fmt: skip
        for insert in (graph.insert_before, graph.insert_after):
            with pytest.raises(ModelError, match=r"must be in .*, without inputs and outputs"):
                insert(new, graph.nodes[1])
    three = graph.add_node("Three", (), ["", "p"], domain="com.microsoft")
    with pytest.raises(ModelError, match="output 0 of node 'Three' is absent: nothing is after it"):
        graph.insert_after(graph.add_node("Neg", (), 0), three)


def test_copies_have_names_of_their_own(graph: Graph) -> None:
    node = graph.nodes[0]
    assert graph.clone(node).name == "node_a_1"
    graph.rename_node(node, "")
    assert graph.clone(node).name == "Relu"


def test_values_are_connected_on_either_side(graph: Graph) -> None:
    a, add = graph.nodes[0], graph.nodes[1]
    value = graph.connect(None, None)
    assert value.graph is None
    assert graph.connect(a, add, graph.values["a"]) is graph.values["a"]
    assert [each and each.name for each in add.inputs] == ["a", "w", "a"]
    with pytest.raises(ModelError, match="expected one of its nodes"):
        graph.connect(fresh().main.nodes[0], None)


def test_contents_are_assigned_to_initializers_alone(graph: Graph) -> None:
    w = graph.values["w"]
    graph.assign(w, np.ones(3, np.float32))
    assert w.const is not None
    assert w.const.tolist() == [1, 1, 1]
    with pytest.raises(ModelError, match=r"'w' is float\[3\], it cannot become int64\[2\] without"):
        graph.assign(w, np.ones(2, np.int64))
    graph.assign(w, np.ones(3, np.float16), retype=True)
    assert w.dtype == 10
    for name in "xa":
        with pytest.raises(ModelError, match="is no initializer, it cannot be assigned to"):
            graph.assign(graph.values[name], np.ones(1))


def test_a_parameter_is_an_initializer_that_is_no_input(graph: Graph) -> None:
    w, a = graph.values["w"], graph.values["a"]
    for is_parameter, inputs in (
        (True, ["x"]), (False, ["x", "w"]), (False, ["x", "w"]), (True, ["x"]), (True, ["x"]),
    ):  # fmt: skip
        mark_parameter(w, is_parameter)
        assert [value.name for value in graph.inputs] == inputs
    mark_parameter(a, False)
    assert [value.name for value in graph.inputs] == ["x"]
    with pytest.raises(ModelError, match="has no contents, it cannot be a parameter"):
        mark_parameter(a, True)


def test_what_only_a_removed_node_read_goes_with_it() -> None:
    of = small(
        """g (float[2] x, float[2] d) => (float[2] y) <float[2] d = {1,2}, float[2] w = {1,2},
        float[2] k = {1,2}> { a = Clip(w, , k)  b = Add(k, d)  c = Neg(a)  y = Abs(x) }"""
    )
    graph = of.main
    for name, left in (("c", "dwk"), ("a", "dk"), ("b", "d"), ("y", "d")):
        if name == "y":
            graph.remove_output(graph.values["y"])
        graph.delete(graph.values[name].producer)  # type: ignore[arg-type]  # a node makes it
        assert "".join(value.name for value in graph.initializers) == left
    assert [value.name for value in graph.inputs] == ["x", "d"]


def test_nodes_of_one_input_and_output_are_bypassed() -> None:
    of = small(
        """g (float[4] x) => (float[4] y) <float m = {1}> { a = Clip(x, , m)  b, c = Split<num_outputs=2>(a)
        d, = Dropout(a)  y = Neg(d) }"""
    )
    graph = of.main
    with pytest.raises(
        ModelError, match="node 'node_b' has 1 input and 2 outputs; only a node with"
    ):
        graph.bypass(graph.values["b"].producer)  # type: ignore[arg-type]  # a node makes it
    graph.bypass(graph.values["d"].producer)  # type: ignore[arg-type]  # a node makes it
    graph.bypass(graph.values["a"].producer)  # type: ignore[arg-type]  # a node makes it
    assert lines(graph) == ["b, c = Split(x)", "y = Neg(x)"]
    assert graph.initializers == ()
    of.check_view()


def test_values_are_removed_from_where_they_are(graph: Graph) -> None:
    clip, w = graph.nodes_of("Clip")[0], graph.values["w"]
    graph.mark_input(graph.constant(np.array(1, np.float32), "limit"))
    limit = graph.values["limit"]
    graph.set_input(clip, 1, limit)
    graph.delete_value(limit)
    assert (clip.inputs[1], limit.graph) == (None, None)
    assert [value.name for value in graph.inputs] == ["x"]
    late = graph.add_input("late", TensorType(1, ()))
    graph.join(w, late)
    graph.join(w, late)
    assert late.graph is None
    dead = graph.add_node("Split", (graph.values["a"],), 2)
    graph.delete_value(dead.outputs[0])  # type: ignore[arg-type]  # it is there
    assert [value and value.index for value in dead.outputs] == [None, 1]
