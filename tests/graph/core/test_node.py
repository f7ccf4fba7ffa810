"""Properties of a Node."""

import pytest
from onnx import parser

from tiered.graph import Model, Node
from tiered.testing import parse

TEXT = """<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1, "ai.onnx": 21]>
    g (float[2] x) => (float[2] a, float[2] b, float[2] c) {
      a = Gelu(x)  b = com.microsoft.Gelu(x)  c = ai.onnx.Gelu(x) }"""


def _nodes() -> list[Node]:
    return list(Model.from_proto(parser.parse_model(TEXT)).main.nodes)


def test_a_node_is_an_operator_of_its_domain_alone() -> None:
    own, contrib, _ = _nodes()
    assert own.is_op("Gelu")
    assert not own.is_op("Gelu", "com.microsoft")
    assert not own.is_op("Relu")
    assert contrib.is_op("Gelu", "com.microsoft")
    assert not contrib.is_op("Gelu")
    assert not contrib.is_op("FastGelu", "com.microsoft")


def test_both_spellings_of_the_default_domain_are_one() -> None:
    assert _nodes()[2].is_op("Gelu")


def test_a_removed_node_is_still_the_operator_that_it_was() -> None:
    model = Model.from_proto(parser.parse_model(TEXT))
    node = model.main.add_node("Neg", model.main.inputs, 1)
    model.main.remove_node(node)
    assert node.is_op("Neg")


def test_an_attribute_that_a_call_decides_is_a_function_parameter() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2,3] x) => (float[6] y) { y = d.f <a = 0>(x) }
    <domain: "d", opset_import: ["" : 21]>
    f <a>(v) => (w) { u = Flatten<axis: int = @a>(v) w = Flatten<axis = 0>(u) }"""
    model = Model.from_proto(parser.parse_model(text))
    flatten, other = next(iter(model.functions)).nodes
    assert flatten.has_references
    assert flatten.parameter_reason == "attribute 'axis' is a function parameter"
    assert not other.has_references
    assert other.parameter_reason is None
    flatten.owner.set_attribute(flatten, "axis", 0)
    assert flatten.parameter_reason is None


def test_a_value_has_the_rank_of_another_only_if_both_are_known() -> None:
    text = """<ir_version: 10, opset_import: ["" : 21, "d" : 1]>
    g (float[2] x, float[1,2] z) => (float[2] a, float[1,2] b, float[2] c) {
      a = Neg(x) b = Add(x, z) u = d.Unknown(x) c = Neg(u) }"""
    graph = Model.from_proto(parser.parse_model(text)).main
    x, unknown = graph.inputs[0], graph.nodes_of("Unknown", "d")[0].output
    a, b, _ = graph.outputs
    assert x.has_rank_of(a)
    assert not x.has_rank_of(b)
    assert not unknown.has_rank_of(x)
    assert not x.has_rank_of(unknown)
    assert not unknown.has_rank_of(unknown)


def test_inputs_are_asked_for_as_they_are_known() -> None:
    text = "(float[2] x) => (float[2] y) <float c = {1}> { h = Neg(x) y = Clip(h, , c) }"
    graph = Model.from_proto(parse(text)).main
    node = graph.outputs[0].producer
    assert node is not None
    assert node.given(0) is node.inputs[0]
    with pytest.raises(AssertionError, match="Clip 'y'> has no input 1"):
        node.given(1)
    assert [node.const(at) is None for at in range(4)] == [True, True, False, True]
    makers = [node.producer(at) for at in range(4)]
    assert [None if each is None else each.op_type for each in makers] == ["Neg", None, None, None]


def test_an_operator_is_named_with_its_domain() -> None:
    header = '<ir_version: 10, opset_import: ["": 21, "com.microsoft": 1]> g '
    text = "(float[2] x) => (float[2] y) { h = Neg(x) y = com.microsoft.Gelu(h) }"
    graph = Model.from_proto(parser.parse_model(header + text)).main
    assert [node.operator for node in graph.nodes] == ["Neg", "com.microsoft::Gelu"]


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float", True), ("float16", True), ("double", True), ("int64", False), ("bool", False)],
)
def test_a_value_is_known_to_be_a_float(dtype: str, expected: bool) -> None:
    graph = Model.from_proto(parse(f"({dtype}[2] x) => ({dtype}[2] y) {{ y = Identity(x) }}")).main
    assert graph.inputs[0].is_float is expected
