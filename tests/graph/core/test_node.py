"""What a Node says of itself."""

from onnx import parser

from tiered.graph import Model, Node

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
