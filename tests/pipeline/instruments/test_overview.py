"""The contents of a model in a few lines."""

import numpy as np
from onnx import numpy_helper

from tiered import Model
from tiered.pipeline.instruments.overview import overview_text
from tiered.testing import parse


def test_a_model_has_its_interface_operators_and_weights() -> None:
    proto = parse(
        """<ir_version: 10, opset_import: ["" : 21, "own" : 2]> g
        (float[2,N] x, float[2] w) => (float[2,N] y) { a = Neg(x)  b = Neg(a)  y = own.F(b) }
        <domain: "own", opset_import: ["" : 21]> F (p) => (q) { q = Abs(p) }"""
    )
    proto.graph.initializer.append(numpy_helper.from_array(np.ones(2, np.float32), "w"))
    *lines, weights, functions = overview_text(Model.from_proto(proto)).splitlines()
    assert lines == [
        "IR 10, opsets ai.onnx 21, own 2",
        "input x: float[2,N]",
        "input w: float[2] with a default",
        "output y: float[2,N]",
        "4 nodes: 2 Neg, 1 Abs, 1 own::F",
    ]
    assert weights.startswith("2 parameters, ")
    assert functions == "functions F"


def test_a_model_without_nodes_and_types_is_short() -> None:
    proto = parse("(float x) => (float x) { }")
    proto.graph.input[0].ClearField("type")
    proto.graph.output[0].ClearField("type")
    assert overview_text(Model.from_proto(proto)).splitlines()[1:4] == [
        "input x: unknown type",
        "output x: unknown type",
        "0 nodes",
    ]
