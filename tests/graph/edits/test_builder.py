"""`graph.op.like` and `graph.op.named`: operators that are known only at run time."""

import pytest
from onnx import parser

from tiered import Graph, Model, OperatorError

MODEL = """<ir_version: 10, opset_import: ["" : 21, "com.microsoft" : 1]>
main (float[2,3,8,8] x, float[4,3,3,3] w) => (float[2,4,8,8] y, float[2,3,8,8] g, float[2,3,4,8] s)
{
    y = Conv <pads = [1, 1, 1, 1], auto_pad = "NOTSET"> (x, w)
    g = com.microsoft.QuickGelu <alpha = 1.5> (x)
    s, rest = Split <axis = 2, num_outputs = 2> (x)
}
"""


@pytest.fixture
def graph() -> Graph:
    return Model.from_proto(parser.parse_model(MODEL)).main


def test_operator_and_attributes_are_those_of_the_node(graph: Graph) -> None:
    conv, x = graph.nodes_of("Conv")[0], graph.inputs[0]
    made = graph.op.like(conv, graph.op.Relu(x), graph.inputs[1]).producer
    assert made is not None
    assert made.is_op("Conv")
    assert made.attributes == {"pads": (1, 1, 1, 1)}


def test_attributes_change_or_are_left_out(graph: Graph) -> None:
    conv, (x, w) = graph.nodes_of("Conv")[0], graph.inputs
    made = graph.op.like(conv, x, w, pads=None, strides=[2, 2], name="late").producer
    assert made is not None
    assert (made.attributes, made.name) == ({"strides": (2, 2)}, "late")


def test_domain_is_that_of_the_node(graph: Graph) -> None:
    gelu = graph.nodes_of("QuickGelu", "com.microsoft")[0]
    made = graph.op.like(gelu, graph.inputs[0]).producer
    assert made is not None
    assert (made.domain, made.attr("alpha")) == ("com.microsoft", 1.5)


def test_several_outputs_are_a_tuple(graph: Graph) -> None:
    split = graph.nodes_of("Split")[0]
    parts = graph.op.like(split, graph.inputs[0], axis=3, outputs=2)
    assert [part.shape for part in parts] == [(2, 3, 8, 4)] * 2


def test_attributes_are_checked_as_in_every_call(graph: Graph) -> None:
    conv, x = graph.nodes_of("Conv")[0], graph.inputs[0]
    with pytest.raises(OperatorError, match="it has no attribute 'padding'"):
        graph.op.like(conv, x, graph.inputs[1], padding=[1, 1])


def test_an_operator_that_is_known_at_run_time_is_named(graph: Graph) -> None:
    made = graph.op.named("Relu")(graph.inputs[0]).producer
    assert made is not None
    assert made.is_op("Relu")
    with pytest.raises(OperatorError, match="Reluu"):
        graph.op.named("Reluu")(graph.inputs[0])
