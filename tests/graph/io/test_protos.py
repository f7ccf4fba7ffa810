"""Walking over protos: each node once, at any depth."""

from onnx import ModelProto, parser

from tiered.graph.io.protos import nodes_of

TEXT = """<ir_version: 10, opset_import: ["": 21, "f": 1]>
    g (bool c, float[1] x) => (float[1] y) {
      h = Neg(x)
      y = If(c) <then_branch = t () => (float[1] a) { a = f.own(h) },
                 else_branch = e () => (float[1] b) {
                   b = If(c) <then_branch = u () => (float[1] d) { d = Abs(h) },
                              else_branch = v () => (float[1] e) { e = Exp(h) }> }> }
    <domain: "f", opset_import: ["": 21]> own (x) => (y) { y = Sin(x) }"""


def _walked(model: ModelProto) -> list[str]:
    return sorted(node.op_type for node in nodes_of(model))


def test_nodes_of_bodies_and_local_functions_are_walked_once() -> None:
    assert _walked(parser.parse_model(TEXT)) == ["Abs", "Exp", "If", "If", "Neg", "Sin", "own"]


def test_training_graphs_are_left_out() -> None:
    model = parser.parse_model(TEXT)
    model.training_info.add().algorithm.node.add(op_type="Adam")
    assert "Adam" not in _walked(model)


def test_a_node_may_be_edited_where_it_is_met() -> None:
    model = parser.parse_model(TEXT)
    for node in nodes_of(model):
        if node.op_type == "If":
            node.op_type = "Not"
            del node.attribute[:]
    assert _walked(model) == ["Neg", "Not", "Sin"]
