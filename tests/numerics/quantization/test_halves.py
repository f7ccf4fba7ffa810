"""Models that compute in 16 bits, and weights that are inputs: quantised, or refused by name."""

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, PassContext, get_pass
from tiered.runtime import run, run_reference
from tiered.testing import parse

Array = np.ndarray[Any, Any]

BODY = "{ e = Gather(t, p) s = MatMul(e, w) r = Relu(s) m = MatMul(r, v) y = Add(m, x) }"
NAMES = ["quantize", "quantize_dynamic"]


def drawn(*shape: int, seed: int = 0) -> Array:
    numbers: Array = np.random.default_rng(seed).standard_normal(shape) / 4
    return numbers


def halved(dtype: str, numpy_dtype: Any) -> onnx.ModelProto:
    text = f"({dtype}[N,16] x, int64[N] p) => ({dtype}[N,16] y) {BODY}"
    proto = parse(text, opset=17)
    weights = {"t": drawn(40, 16), "w": drawn(16, 32, seed=1), "v": drawn(32, 16, seed=2)}
    proto.graph.initializer.extend(
        numpy_helper.from_array(array.astype(numpy_dtype), name) for name, array in weights.items()
    )
    return proto


def quantized(proto: onnx.ModelProto, name: str) -> tuple[onnx.ModelProto, list[str]]:
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(name).apply(model, ctx)
    made = model.to_proto()
    onnx.checker.check_model(made, full_check=True)
    get_pass(name).apply(model)
    assert model.to_proto() == made
    return made, [str(remark) for remark in ctx.remarks]


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_halves_is_quantised(name: str) -> None:
    proto = halved("float16", np.float16)
    made, remarks = quantized(proto, name)
    assert any("4 nodes compute in float instead of float16" in each for each in remarks)
    assert made.graph.input[0] == proto.graph.input[0]
    assert made.graph.output[0] == proto.graph.output[0]
    feeds = {"x": drawn(64, 16, seed=3).astype(np.float16), "p": np.arange(64) % 40}
    exact, found = (run(each, feeds)["y"].astype(np.float64) for each in (proto, made))
    assert np.linalg.norm(exact - found) < 0.1 * np.linalg.norm(exact)


def test_a_table_stays_in_halves() -> None:
    made, _ = quantized(halved("float16", np.float16), "quantize")
    dtypes = {each.name: each.data_type for each in made.graph.initializer}
    assert dtypes["t"] == onnx.TensorProto.FLOAT16
    assert sum(dtype == onnx.TensorProto.INT8 for dtype in dtypes.values()) >= 2


def test_a_model_of_bfloat16_is_quantised() -> None:
    text = "(bfloat16[N,16] x) => (bfloat16[N,16] y) { s = MatMul(x, w) y = Relu(s) }"
    proto = parse(text, opset=17)
    weight = drawn(16, 16).astype(ml_dtypes.bfloat16)
    proto.graph.initializer.append(
        onnx.helper.make_tensor("w", 16, (16, 16), weight.tobytes(), raw=True)
    )
    made, _ = quantized(proto, "quantize_dynamic")
    assert "MatMulInteger" in [node.op_type for node in made.graph.node]
    feeds = {"x": drawn(8, 16, seed=3).astype(ml_dtypes.bfloat16)}
    exact, found = (run_reference(each, feeds)["y"].astype(np.float64) for each in (proto, made))
    assert np.linalg.norm(exact - found) < 0.03 * np.linalg.norm(exact)


@pytest.mark.parametrize("name", NAMES)
def test_halves_without_a_product_stay(name: str) -> None:
    proto = parse("(float16[N] x, float[2,2] z) => (float16[N] y, float[2,2] u) "
                  "{ y = Exp(x) u = Exp(z) }", opset=17)  # fmt: skip
    model = Model.from_proto(proto)
    get_pass(name).apply(model)
    assert model.to_proto() == proto


@pytest.mark.parametrize(
    "name",
    [*NAMES, "weights_to_int8", "weights_to_int4", "fp8_weight", "float_to_half", "float_to_mixed"],
)
def test_weights_that_are_inputs_before_ir_4(name: str) -> None:
    text = "(float[N,32] x, float[32,32] w) => (float[N,32] y) { y = MatMul(x, w) }"
    proto = parse(text, opset=21)
    proto.ir_version = 3
    proto.graph.initializer.append(numpy_helper.from_array(drawn(32, 32).astype("f4"), "w"))
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(name).apply(model, ctx)
    if name not in ("float_to_half", "float_to_mixed"):
        assert model.to_proto() == proto
    hint = "an input, as all are before IR 4: `tiered optimize --require remove_initializer_from"
    assert any(hint in str(remark) for remark in ctx.remarks)
    get_pass("remove_initializer_from_input").apply(Model.from_proto(proto))


def test_weights_that_callers_may_feed_have_no_few_bits() -> None:
    text = "(float[N,32] x, float[32,32] w) => (float[N,32] y) { y = MatMul(x, w) }"
    proto = parse(text, opset=21)
    proto.graph.initializer.append(numpy_helper.from_array(drawn(32, 32).astype("f4"), "w"))
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass("weights_to_int8").apply(model, ctx)
    assert any("an input, which callers may feed" in str(remark) for remark in ctx.remarks)
