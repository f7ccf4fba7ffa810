"""Roles in 8 bits and fewer: positions, indices and masks stay float, and the report says so."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, PassContext, get_pass
from tiered.runtime import run
from tiered.testing import parse

Array = np.ndarray[Any, Any]
ONE_ELEMENT: dict[str, object] = {"min_elements": 1}
PASSES: dict[str, dict[str, object]] = {
    "quantize": {},
    "quantize_dynamic": {},
    "float_to_fp8": ONE_ELEMENT,
    "fp8_weight": ONE_ELEMENT,
    "weights_to_int8": ONE_ELEMENT,
    "weights_to_int4": {**ONE_ELEMENT, "block_size": 16},
}


def drawn(*shape: int, seed: int = 0) -> Array:
    numbers: Array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return numbers


def model_of(text: str, **weights: Array) -> onnx.ModelProto:
    proto = parse(text, opset=21)
    proto.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in weights.items()
    )
    return proto


def converted(proto: onnx.ModelProto, name: str) -> tuple[onnx.ModelProto, list[str]]:
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(name).with_options(**PASSES[name]).apply(model, ctx)
    made = model.to_proto()
    onnx.checker.check_model(made, full_check=True)
    return made, [str(remark) for remark in ctx.remarks if "unchanged" in str(remark)]


@pytest.mark.parametrize("name", PASSES)
def test_products_of_positions_stay_float(name: str) -> None:
    """Angles of rotary positions: a step of 8 bits at position 3,000 is twelve radians."""
    proto = model_of(
        "(float[1,N,32] x, int64[N] p) => (float[1,N,32] y) <int64[1] axis = {1}> "
        "{ f = Cast<to = 1>(p) g = Unsqueeze(f, axis) a = MatMul(g, k) c = Cos(a) y = Mul(x, c) }",
        k=(1e4 ** -(np.arange(32) / 32)).astype(np.float32)[None],
    )
    made, kept = converted(proto, name)
    assert any("MatMul unchanged: position: " in each for each in kept), kept
    feeds = {"x": drawn(1, 3000, 32), "p": np.arange(3000)}
    assert np.array_equal(run(made, feeds)["y"], run(proto, feeds)["y"])


INDEX = (
    "(float[N,32] x, float[32,32] t) => (float[N,32] y) <int64[1] axis = {1}, int64 l = {0}, "
    "int64 h = {31}> { a = MatMul(x, v) b = Relu(a) s = MatMul(b, w) "
    "m = ReduceMax<keepdims = 0>(s, axis) f = Floor(m) i = Cast<to = 7>(f) j = Clip(i, l, h) "
    "y = Gather(t, j) }"
)


@pytest.mark.parametrize("name", PASSES)
def test_the_product_that_an_index_is_computed_of_stays_float(name: str) -> None:
    """What it reads in turn is data: a backbone is quantised although boxes are cast."""
    made, kept = converted(model_of(INDEX, v=drawn(32, 32), w=drawn(32, 32, seed=1)), name)
    assert sum("index or shape: it decides where elements are (s)" in each for each in kept) == 1
    (last,) = (node for node in made.graph.node if node.output[0] == "s")
    assert last.op_type == "MatMul"
    first = next(each for each in made.graph.initializer if each.name.startswith("v_"))
    assert first.name != "v"
    assert any(each.name == "w" for each in made.graph.initializer)


@pytest.mark.parametrize("name", ["weights_to_int8", "weights_to_int4", "fp8_weight"])
def test_a_table_of_indices_stays_float(name: str) -> None:
    proto = model_of(
        "(float[32,16] x, int64[N] p) => (float[A,B,C] y) { f = Gather(t, p) i = Cast<to = 7>(f) "
        "y = Gather(x, i) }",
        t=np.arange(64, dtype=np.float32).reshape(4, 16) % 32,
    )
    made, kept = converted(proto, name)
    assert made == proto
    assert any("Gather unchanged: index or shape: " in each for each in kept)


@pytest.mark.parametrize("name", ["weights_to_int8", "weights_to_int4"])
def test_a_table_with_masks_stays_float(name: str) -> None:
    """A scale that reaches to -1e9 would leave 0 of the biases beside it."""
    table = drawn(32, 16)
    table[:, ::3] = -1e9
    proto = model_of(
        "(float[N,16] x, int64[N] p) => (float[N,16] y) "
        "{ b = Gather(t, p) s = Add(x, b) y = Softmax(s) }",
        t=table,
    )
    made, kept = converted(proto, name)
    assert made == proto
    assert any("Gather unchanged: mask: an operand has masks" in each for each in kept)


@pytest.mark.parametrize("name", ["quantize", "quantize_dynamic", "float_to_fp8"])
def test_data_with_masks_stays_float(name: str) -> None:
    proto = model_of(
        "(float[N,16] x, bool[N,16] k) => (float[N,16] y) <float l = {-3.4e38}> "
        "{ m = Where(k, x, l) p = Softmax(m) z = MatMul(m, w) y = Add(p, z) }",
        w=drawn(16, 16),
    )
    _, kept = converted(proto, name)
    assert any("MatMul unchanged: mask: an operand has masks" in each for each in kept)
