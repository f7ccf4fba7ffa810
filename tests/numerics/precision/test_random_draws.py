"""Outputs that depend on random draws are not compared: another run has others."""

import numpy as np
import onnx
import pytest

from tiered import Model, PassContext, QuantizationSettings, get_pass, quantize_model
from tiered.numerics.precision.budget import budget_of
from tiered.support.errors import VerificationError
from tiered.testing import parse

TEXT = (
    "(float[4,64] x) => (float[4,64] y, float[4,64] r) "
    "{ a = MatMul(x, w) y = Tanh(a) d = RandomNormalLike(a) r = Add(a, d) }"
)


def drawing(text: str = TEXT) -> onnx.ModelProto:
    proto = parse(text, opset=21)
    weight = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32) / 8
    proto.graph.initializer.append(onnx.numpy_helper.from_array(weight, "w"))
    return proto


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("float_to_mixed", {}),
        ("float_to_mixed", {"to": "bf16"}),
        ("weights_to_int8", {}),
        ("float_to_fp8", {}),
        ("quantize_dynamic", {}),
    ],
)
def test_a_budget_is_about_the_other_outputs(name: str, options: dict[str, str]) -> None:
    model, ctx = Model.from_proto(drawing()), PassContext.isolated()
    lower = get_pass(name).with_options(budget="relative<=0.2", **options)
    lower.apply(model, ctx)
    assert not any("returned for" in str(each) for each in ctx.remarks)
    only = Model.from_proto(drawing(TEXT.replace("float[4,64] y, ", "")))
    with pytest.raises(VerificationError, match="no output"):
        lower.apply(only, ctx)


def test_a_budget_of_quantisation_too() -> None:
    settings = QuantizationSettings(budget=budget_of("sqnr>=20dB"))
    found = quantize_model(Model.from_proto(drawing()), settings)
    assert found.plan.units
    assert not found.returned


def test_the_error_is_that_of_the_other_outputs() -> None:
    model, ctx = Model.from_proto(drawing()), PassContext.isolated()
    get_pass("float_to_half").apply(model, ctx)
    get_pass("measure_error").apply(model, ctx)
    assert any(": cosine 1" in str(each) or ": cosine 0.9999" in str(each) for each in ctx.remarks)
