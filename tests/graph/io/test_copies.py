"""Copies of nodes for the view: bodies stay out, and what onnx does not know survives."""

import onnx
import pytest

from tiered.graph.io.copies import own_copies, without

TEXT = """<ir_version: 10, opset_import: ["" : 21]> g (float[2] x, bool c) => (float[2] y) {
    a = LeakyRelu<alpha = 0.5>(x)
    y = If(c) <then_branch = t () => (float[2] p) { p = Neg(a) },
               else_branch = e () => (float[2] q) { q = Abs(a) }> }"""


def nodes() -> list[onnx.NodeProto]:
    made = onnx.parser.parse_model(TEXT)
    made.graph.node[1].attribute.add(name="k", type=onnx.AttributeProto.INT, i=3)
    return list(made.graph.node)


def test_a_node_is_copied_and_its_bodies_are_left_out() -> None:
    given = nodes()
    (leaky, none), (branch, bodies) = own_copies(given)
    assert leaky == given[0]
    assert leaky is not given[0]
    assert none == []
    assert [attribute.name for attribute in bodies] == ["then_branch", "else_branch"]
    assert bodies[0].g.node[0].op_type == "Neg"
    assert [attribute.name for attribute in branch.attribute] == ["then_branch", "else_branch", "k"]
    assert not any(attribute.HasField("g") for attribute in branch.attribute)
    assert branch.attribute[0].type == onnx.AttributeProto.GRAPH
    assert branch.attribute[2].i == 3
    assert (list(branch.input), list(branch.output), branch.op_type) == (["c"], ["y"], "If")


def test_nodes_without_bodies_are_copied_in_order() -> None:
    given = [onnx.helper.make_node("Neg", [f"x{at}"], [f"y{at}"]) for at in range(5)]
    copies = [copy for copy, bodies in own_copies(given) if not bodies]
    assert copies == given
    copies[0].op_type = "Abs"
    assert given[0].op_type == "Neg"


def test_nodes_around_one_with_bodies_keep_their_order() -> None:
    leaky, branch = nodes()
    last = onnx.helper.make_node("Neg", ["y"], ["z"])
    found = [copy.op_type for copy, _ in own_copies([leaky, branch, last])]
    assert found == ["LeakyRelu", "If", "Neg"]


@pytest.mark.parametrize(
    ("op_type", "domain", "expected"),
    [("If", "", 1), ("Mine", "my.domain", 1), ("Neg", "", 0)],
)
def test_bodies_are_those_of_operators_that_may_have_some(
    op_type: str, domain: str, expected: int
) -> None:
    node = onnx.helper.make_node(op_type, [], ["y"], domain=domain)
    node.attribute.add(name="b", type=onnx.AttributeProto.GRAPH).g.name = "g"
    ((_, bodies),) = own_copies([node])
    assert len(bodies) == expected


def test_lists_of_graphs_are_bodies_too() -> None:
    node = onnx.helper.make_node("Mine", [], ["y"], domain="d")
    entry = node.attribute.add(name="b", type=onnx.AttributeProto.GRAPHS)
    entry.graphs.add(name="one")
    ((copy, bodies),) = own_copies([node])
    assert bodies[0].graphs[0].name == "one"
    assert not copy.attribute[0].graphs
    assert len(entry.graphs) == 1


def test_a_message_is_copied_without_some_fields() -> None:
    proto = onnx.helper.make_node("Neg", ["x"], ["y"], name="n", doc_string="text")
    proto.metadata_props.add(key="k", value="v")
    made = without(proto, frozenset({"input", "name"}), onnx.NodeProto())
    assert (list(made.input), made.HasField("name")) == ([], False)
    assert (list(made.output), made.doc_string, made.metadata_props[0].key) == (["y"], "text", "k")
    attribute = onnx.helper.make_attribute("t", onnx.helper.make_tensor("t", 1, [1], [2.0]))
    copied = without(attribute, frozenset({"g"}), onnx.AttributeProto())
    assert copied == attribute


def test_fields_that_onnx_does_not_know_survive() -> None:
    text = onnx.helper.make_node("Neg", ["x"], ["y"], name="n").SerializeToString()
    proto = onnx.NodeProto.FromString(text + b"\xba\x3e\x03new")  # field 999
    made = without(proto, frozenset({"name"}), onnx.NodeProto())
    assert not made.HasField("name")
    assert made.SerializeToString().endswith(b"\xba\x3e\x03new")
