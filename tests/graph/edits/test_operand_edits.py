"""Operands, outputs, attributes, operator and name of a node."""

from collections.abc import Callable, Iterator

import onnx
import pytest

from tests.graph.editor import wound_back
from tests.small import model as small
from tiered.graph import Graph, Model
from tiered.support.errors import ModelError

CHAIN = """g (float[2,3] x) => (float[2,3] y, float[2,3] z) <float[3] w = {1, 2, 3}>
{ a = Relu(x)  b = Add(a, w)  c = Clip(b, , )  y = Abs(b)  z = Neg(c) }"""
SPLIT = """g (float[4] x) => (float[2] y, float[2] z)
{ p, q = Split<axis=0, num_outputs=2>(x)  y = Abs(p)  z = Neg(x) }"""


@pytest.fixture
def graph(request: pytest.FixtureRequest) -> Iterator[Graph]:
    yield from wound_back(small(getattr(request, "param", CHAIN)))


on_split = pytest.mark.parametrize("graph", [SPLIT], indirect=True)


def test_an_input_reads_another_value_or_none(graph: Graph) -> None:
    a, x, clip = graph.values["a"], graph.inputs[0], graph.nodes_of("Clip")[0]
    node = graph.values["b"].producer
    assert node is not None
    graph.set_input(node, 0, x)
    assert node.inputs[0] is x
    assert (a.users, list(node.proto.input)) == ([], ["x", "w"])
    graph.set_input(clip, 1, graph.values["w"])
    graph.set_input(clip, 0, None)
    assert list(clip.proto.input) == ["", "w"]
    length = len(graph.model.journal)
    graph.set_input(clip, 0, None)
    assert len(graph.model.journal) == length  # it was absent already


@pytest.mark.parametrize("index", [-1, 2])
def test_a_place_that_no_input_has_is_refused(graph: Graph, index: int) -> None:
    node = graph.values["b"].producer
    assert node is not None
    with pytest.raises(ModelError, match=f"node 'node_b' has no input {index}; it has 2"):
        graph.set_input(node, index, graph.inputs[0])
    assert not graph.model.changed_since(0)


@on_split
@pytest.mark.parametrize("index", [-1, 2])
def test_a_place_that_no_output_has_is_refused(graph: Graph, index: int) -> None:
    split, negated = graph.nodes[0], graph.nodes_of("Neg")[0]
    edits: list[Callable[[], object]] = [
        lambda: graph.exchange_outputs(split, index, negated, 0),
        lambda: graph.exchange_outputs(negated, 0, split, index),
        lambda: graph.drop_outputs(split, [index]),
    ]
    for edit in edits:
        with pytest.raises(ModelError, match=f"has no output {index}; it has 2"):
            edit()
    assert not graph.model.changed_since(0)


def test_an_input_is_visible(graph: Graph) -> None:
    foreign = small(CHAIN).main.values["a"]
    node = graph.nodes[0]
    with pytest.raises(ModelError, match="which it does not see"):
        graph.set_input(node, 0, foreign)
    with pytest.raises(ModelError, match="which it does not see"):
        graph.set_inputs(node, [graph.inputs[0], foreign])


def test_the_number_of_inputs_may_change(graph: Graph) -> None:
    clip, w = graph.nodes_of("Clip")[0], graph.values["w"]
    graph.set_inputs(clip, [w, None, w])
    assert list(clip.proto.input) == ["w", "", "w"]
    assert [slot for user, slot in w.users if user is clip] == [0, 2]
    graph.set_inputs(clip, [])
    assert (clip.inputs, list(clip.proto.input)) == ((), [])


@on_split
def test_outputs_are_dropped_if_nothing_reads_them(graph: Graph) -> None:
    split = graph.nodes[0]
    graph.drop_outputs(split, [1])
    assert [value and value.name for value in split.outputs] == ["p"]
    assert "q" not in graph.values
    with pytest.raises(ModelError, match="output 'p' of node 'node_p' is used"):
        graph.drop_outputs(split, [0])


@on_split
def test_an_inner_output_that_is_dropped_leaves_its_place(graph: Graph) -> None:
    split = graph.nodes[0]
    graph.set_input(graph.nodes_of("Abs")[0], 0, graph.values["q"])
    graph.drop_outputs(split, [0])
    assert list(split.proto.output) == ["", "q"]
    assert graph.values["q"].index == 1


@on_split
def test_outputs_may_be_detached_values(graph: Graph) -> None:
    split, new = graph.nodes[0], graph.new_value("n")
    graph.set_outputs(split, [split.outputs[0], new])
    assert (new.producer, new.index, new.graph) == (split, 1, graph)
    length = len(graph.model.journal)
    graph.set_outputs(split, list(split.outputs))
    assert len(graph.model.journal) == length
    for wrong, because in (
        ([split.outputs[0], graph.values["y"]], "has a source already"),
        ([split.outputs[1], split.outputs[0]], "has a source already"),
        ([split.outputs[0], graph.new_value("m"), None], None),
    ):
        if because is None:
            graph.set_outputs(split, wrong)
            assert len(split.outputs) == 3
        else:
            with pytest.raises(ModelError, match=because):
                graph.set_outputs(split, wrong)


@on_split
def test_an_absent_output_may_get_a_value_and_more_may_follow(graph: Graph) -> None:
    split = graph.nodes[0]
    graph.set_input(graph.nodes_of("Abs")[0], 0, graph.inputs[0])
    graph.drop_outputs(split, [0])
    with pytest.raises(ModelError, match="'node_p' has no output 0 to exchange"):
        graph.exchange_outputs(split, 0, graph.nodes_of("Neg")[0], 0)
    graph.set_outputs(split, [graph.new_value("m"), split.outputs[1], graph.new_value("n")])
    assert list(split.proto.output) == ["m", "q", "n"]
    assert [value and value.index for value in split.outputs] == [0, 1, 2]


@on_split
def test_outputs_of_two_nodes_change_places(graph: Graph) -> None:
    split, negated = graph.nodes[0], graph.nodes_of("Neg")[0]
    q, z = split.outputs[1], negated.outputs[0]
    assert q is not None
    assert z is not None
    graph.exchange_outputs(split, 1, negated, 0)
    assert (split.outputs[1], negated.outputs[0]) == (z, q)
    assert (z.producer, z.index, q.producer, q.index) == (split, 1, negated, 0)
    assert list(split.proto.output) == ["p", "z"]
    length = len(graph.model.journal)
    graph.exchange_outputs(split, 1, split, 1)
    assert len(graph.model.journal) == length
    with pytest.raises(ModelError, match="'node_p' has no output 0 to exchange"):
        small(SPLIT).main.exchange_outputs(split, 0, negated, 0)


def test_an_attribute_is_written_replaced_and_removed(graph: Graph) -> None:
    node = graph.nodes[0]
    before = node.proto
    graph.set_attribute(node, "k", 1)
    graph.set_attribute(node, "tag", "t")
    graph.set_attribute(node, "k", 2.5)
    assert dict(node.attributes) == {"tag": "t", "k": 2.5}
    graph.set_attribute(node, "tag", None)
    graph.set_attribute(node, "absent", None)
    assert dict(node.attributes) == {"k": 2.5}
    assert not before.attribute  # the proto of the file is not changed


def test_metadata_is_replaced_as_a_whole(graph: Graph) -> None:
    node = graph.nodes[0]
    graph.set_metadata(node, {"a": "1", "b": "2"})
    graph.set_metadata(node, {"b": "3"})
    assert [(entry.key, entry.value) for entry in node.proto.metadata_props] == [("b", "3")]


def test_an_operator_is_held_against_its_schema(graph: Graph) -> None:
    node = graph.values["b"].producer
    assert node is not None
    graph.set_attribute(node, "axis", 0)
    for op_type, message in [
        ("Where", "has 2 inputs"),
        ("Relu", "has 2 inputs"),
        ("Sub", "has 'axis'"),
        ("Transpose", "has 2 inputs"),
    ]:
        with pytest.raises(ModelError, match=message):
            graph.set_operator(node, op_type)
    graph.set_operator(node, "Gather")
    assert str(graph.values["b"].type) == "float[3,3]"
    graph.set_attribute(node, "axis", None)
    with pytest.raises(ModelError, match="has no 'to'"):
        graph.set_operator(graph.nodes_of("Relu")[0], "Cast")
    graph.set_operator(node, "Mul")
    assert str(graph.values["b"].type) == "float[2,3]"
    graph.set_operator(node, "Anything", "my.domain")
    assert (node.domain, node.callee) == ("my.domain", ("my.domain", "Anything", ""))


def test_another_operator_drops_the_types_and_imports_its_domain(graph: Graph) -> None:
    node = graph.nodes[0]
    assert graph.values["a"].shape == (2, 3)
    graph.set_operator(node, "Relu")
    assert not graph.model.changed_since(0)
    graph.set_operator(node, "Gelu", "com.microsoft")
    assert graph.model.opset("com.microsoft") == 1
    assert list(graph.nodes_of("Gelu", "com.microsoft")) == [node]
    assert not graph.nodes_of("Relu")
    graph.set_operator(node, "Shape")
    assert str(graph.values["a"].type) == "int64[2]"


def test_a_node_that_is_not_connected_may_become_any_operator(graph: Graph) -> None:
    bare = graph.add_node("Neg", (), 0)
    graph.set_operator(bare, "Add")
    two = graph.add_node("Split", (graph.inputs[0],), 2)
    with pytest.raises(ModelError, match="cannot be Neg: it has 2 outputs"):
        graph.set_operator(two, "Neg")
    with pytest.raises(ModelError, match="cannot be Add: it has 1 input"):
        graph.set_operator(graph.nodes_of("Relu")[0], "Add")


def test_an_operator_takes_the_attribute_that_it_requires(graph: Graph) -> None:
    node = graph.nodes_of("Relu")[0]
    graph.set_attribute(node, "to", 1)
    graph.set_operator(node, "Cast")
    assert (node.op_type, dict(node.attributes)) == ("Cast", {"to": 1})


@pytest.mark.parametrize(
    "graph", ["g (float[4] x) => (float[N] y) { y, m = Dropout(x) z = Neg(m) }"], indirect=True
)
def test_another_operator_leaves_the_types_of_outputs_of_the_graph(graph: Graph) -> None:
    node = graph.nodes[0]
    graph.remove_node(graph.nodes[1])
    graph.set_outputs(node, [node.outputs[0], None])
    graph.set_operator(node, "Anything", "my.domain")
    assert list(node.proto.output) == ["y", ""]
    assert str(graph.outputs[0].type) == "float[N]"


def test_a_function_may_not_call_itself() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21, "l": 1]>
        g (float[2] x) => (float[2] y) { y = l.F(x) }
        <opset_import: ["": 21, "l": 1], domain: "l"> F (a) => (b) { b = Neg(a) }"""
    )
    (function,) = Model.from_proto(model).functions
    with pytest.raises(ModelError, match="itself"):
        function.set_operator(function.nodes[0], "F", "l")


def test_names_of_nodes_are_their_own(graph: Graph) -> None:
    node = graph.nodes[0]
    graph.rename_node(node, "mine")
    graph.rename_node(node, "mine")
    with pytest.raises(ModelError, match="'mine' cannot be named 'node_b': another node"):
        graph.rename_node(node, "node_b")
    graph.rename_node(node, "")
    assert not node.proto.HasField("name")
    graph.rename_node(graph.nodes[1], "")  # several may have none
    assert "mine" not in graph.model.node_names


def test_a_node_of_a_body_may_have_the_name_of_an_outer_one() -> None:
    model = small(
        """g (float[2] x, bool c) => (float[2] y) { a = Neg(x)
        y = If (c) <then_branch = t () => (float[2] u) { u = Neg(a) },
                    else_branch = f () => (float[2] v) { v = Abs(a) }> }"""
    )
    body = model.main.nodes[1].bodies[0]
    model.main.rename_node(body.nodes[0], "node_a")
    assert body.nodes[0].name == "node_a"
