"""Which operators have orders of their axes, and why the others have none."""

from tests.analysis.layout.rules.writing import node_of
from tiered import Model, Skip
from tiered.analysis.layout.rules import propagation_of
from tiered.testing import parse


def test_why_an_operator_has_no_other_order() -> None:
    for text, expected in (
        ("(float[2,3,4] x) => (y) { y = acme.Relu(x) }", "the operator fixes its axis order"),
        ("(float[2,3] x) => (y) { y = Det(x) }", "the operator fixes its axis order"),
        ("(float[2,3] x) => (y) { y = RandomNormalLike(x) }", "the operator fixes its axis order"),
        ("(float[2,3] x, int64[1] k) => (i) { , i = TopK(x, k) }", "an output is absent"),
        ("(float[] x) => (y) { y = Relu(x) }", "its rank is not known"),
        ("(float[] x) => (y) { y = Shape(x) }", "its rank is not known"),
        ("(float[] x) => (y) { y = Flatten(x) }", "its rank is not known"),
        ("(float[2,3] x) => (y) { y = Relu(x) }", None),
        ("(float[2,3] x) => (y) { y = Softmax(x) }", None),
    ):
        found = propagation_of(node_of(text))
        assert (str(found) if isinstance(found, Skip) else None) == expected, text


def test_what_a_call_decides_and_what_a_function_redefines_has_none() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "acme": 1]> g (float[2,3] x) => (float[2,3] y)
        { y = acme.F<at = 1>(x) } <domain: "acme", opset_import: ["": 21]>
        F <at> (a) => (b) { b = Softmax<axis: int = @at>(a) }"""
    (function,) = Model.from_proto(parse(text)).functions
    assert str(propagation_of(function.nodes[0])) == "attribute 'axis' is a function parameter"


def test_a_node_whose_output_an_annotation_names_has_none() -> None:
    proto = parse("(float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
    annotation = proto.graph.quantization_annotation.add(tensor_name="x")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="y")
    (node,) = Model.from_proto(proto).main.nodes
    assert str(propagation_of(node)) == "training info or an annotation names its output"
