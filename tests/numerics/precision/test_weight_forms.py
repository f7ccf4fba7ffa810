"""Weights that are not the right matrix of a product: experts, left operands, tied tables."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, PassContext, get_pass
from tiered.runtime import run
from tiered.testing import parse

FORMS = {
    "experts": ("(float[4,5,64] x) => (float[4,5,32] y) { y = MatMul(x, w) }", (4, 64, 32)),
    "one block of experts": (
        "(float[2,3,5,40] x) => (float[2,3,5,32] y) { y = MatMul(x, w) }", (2, 3, 40, 32)
    ),
    "left": ("(float[64,5] x) => (float[32,5] y) { y = MatMul(w, x) }", (32, 64)),
    "columns of a table": (
        "(int64[5] i) => (float[32,5] y) { y = Gather<axis=-1>(w, i) }", (32, 64)
    ),
    "tied": (
        "(int64[5] i) => (float[5,64] y) "
        "{ h = Gather(w, i) t = Transpose<perm=[1,0]>(w) y = MatMul(h, t) }", (64, 32)
    ),
    "tied, without perm": (
        "(int64[5] i) => (float[5,64] y) { h = Gather(w, i) t = Transpose(w) y = Gemm(h, t) }",
        (64, 32),
    ),
}  # fmt: skip


def _model(text: str, shape: tuple[int, ...], dtype: type = np.float32) -> onnx.ModelProto:
    proto = parse(text, opset=21)
    weight: np.ndarray[Any, Any] = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return proto


def _stored(proto: onnx.ModelProto, name: str, **options: object) -> tuple[Model, list[str]]:
    model, ctx = Model.from_proto(proto), PassContext.isolated()
    get_pass(name).with_options(**options).apply(model, ctx)
    model.check_view(types=True)
    onnx.checker.check_model(model.to_proto(), full_check=True)
    return model, [str(each) for each in ctx.remarks]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("name", "least"), [("weights_to_int8", 38), ("weights_to_int4", 16), ("fp8_weight", 25)]
)
def test_forms_of_weights(form: str, name: str, least: float) -> None:
    proto = _model(*FORMS[form])
    model, _ = _stored(proto, name)
    assert model.nbytes < 0.4 * Model.from_proto(proto).nbytes
    random = np.random.default_rng(1)
    shape = [dim.dim_value for dim in proto.graph.input[0].type.tensor_type.shape.dim]
    feed = random.standard_normal(shape).astype(np.float32)
    is_index = proto.graph.input[0].name == "i"
    feeds = {"i": np.array([3, 0, 31, 7, 3])} if is_index else {"x": feed}
    exact, found = (run(each, feeds)["y"] for each in (proto, model.to_proto()))
    ratio = 20 * np.log10(np.linalg.norm(exact) / np.linalg.norm(found - exact))
    assert ratio > least


@pytest.mark.parametrize(
    ("text", "shape", "dtype", "reason"),
    [
        (FORMS["left"][0].replace("float", "double"), (32, 64), np.float64,
         "a weight of double has no form in few bits"),
        ("(float[5,2048] x) => (float[5] y) { y = MatMul(x, w) }", (2048,), np.float32,
         "a weight of 1 dim has no form in few bits"),
        ("(int64[5] i) => (float[5,64,32] y) { y = Gather(w, i) }", (64, 64, 32), np.float32,
         "a weight of 3 dims has no form in few bits"),
    ],
)  # fmt: skip
def test_the_reason_of_a_weight_that_stays_is_true(
    text: str, shape: tuple[int, ...], dtype: type, reason: str
) -> None:
    proto = _model(text, shape, dtype)
    model, said = _stored(proto, "weights_to_int8")
    assert model.to_proto() == proto
    assert any(reason in each for each in said)
    assert not any("no constant weight" in each for each in said)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("z = Relu(t)", "another node reads the weight as it is"),
        ("z = MatMul(t, t)", "another node reads the weight as it is"),
    ],
)
def test_a_transpose_that_others_read_keeps_the_table(change: str, reason: str) -> None:
    head = "(int64[5] i) => (float[5,64] y, float[A,B] z) { h = Gather(w, i) t = Transpose(w) "
    shape = (64, 64) if "t, t" in change else (64, 32)
    proto = _model(f"{head} y = MatMul(h, t) {change} }}", shape)
    model, said = _stored(proto, "weights_to_int8")
    assert model.to_proto() == proto
    assert any(reason in each for each in said)


def test_products_behind_a_transpose_keep_their_table() -> None:
    proto = _model(*FORMS["tied"])
    model, said = _stored(proto, "weights_to_int8", skip_op_types=["MatMul"])
    assert model.to_proto() == proto
    assert any("MatMul is skipped" in each for each in said)
