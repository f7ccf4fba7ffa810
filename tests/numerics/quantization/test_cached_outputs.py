"""Outputs that products read behind a movement, as keys of a cache, stay float in onnxruntime."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, QuantizationSettings, quantize_model
from tiered.runtime import Session
from tiered.testing import parse

Array = np.ndarray[Any, Any]

MOVES = {
    "Transpose": "t = Transpose<perm = [0,1,3,2]>(k)",
    "two": "s = Reshape(k, flat) t = Transpose<perm = [0,2,1]>(s)",
    "Slice": "s = Slice(k, zero, one, two) t = Transpose<perm = [0,1,3,2]>(s)",
}


def model_of(move: str, product: str = "y = MatMul(q, t)") -> onnx.ModelProto:
    shape = "float[B,N,A] y" if "flat" in move else "float[B,H,N,A] y"
    text = (
        f"(float[B,2,N,16] x, float[B,2,P,16] past) => ({shape}, float[B,2,A,16] k) "
        "<int64[3] flat = {0,-1,16}, int64[1] zero = {0}, int64[1] one = {1}, int64[1] two = {1}> "
        f"{{ m = MatMul(x, w) k = Concat<axis = 2>(past, m) {move} q = "
        + ("Reshape(x, flat) " if "flat" in move else "Relu(x) ")
        + product
        + " }"
    )
    proto = parse(text, opset=17)
    weight = np.random.default_rng(0).standard_normal((16, 16)).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return proto


def drawn(seed: int) -> dict[str, Array]:
    source = np.random.default_rng(seed)
    return {
        "x": source.standard_normal((2, 2, 5, 16)).astype(np.float32),
        "past": source.standard_normal((2, 2, 3, 16)).astype(np.float32),
    }


def quantised(proto: onnx.ModelProto) -> onnx.ModelProto:
    model = Model.from_proto(proto)
    found = quantize_model(model, QuantizationSettings(inputs=[drawn(seed) for seed in range(4)]))
    assert len(found.plan.units) == 2
    made = model.to_proto()
    onnx.checker.check_model(made, full_check=True)
    return made


@pytest.mark.parametrize("move", MOVES)
def test_an_output_is_the_same_with_optimisations(move: str) -> None:
    made, feeds = quantised(model_of(MOVES[move])), drawn(9)
    found = Session(made, setting="default").run(feeds)["k"]
    assert np.array_equal(found[:, :, :3], feeds["past"])


def test_a_movement_that_another_node_reads_stays_float() -> None:
    product = "z = MatMul(q, t) u = ReduceMax<keepdims = 1>(t) y = Add(z, u)"
    made = quantised(model_of(MOVES["Transpose"], product))
    (transpose,) = (node for node in made.graph.node if node.op_type == "Transpose")
    assert transpose.input[0] == "k"
