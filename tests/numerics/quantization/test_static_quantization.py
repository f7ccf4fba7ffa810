"""Static quantisation of a model: its samples, its findings, and where the budget is measured."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.small import ops
from tiered import Backend, Model, QuantizationSettings, get_backend, quantize_model
from tiered.numerics.precision.budget import budget_of
from tiered.numerics.precision.noise import FloatReference
from tiered.numerics.quantization.quantization_result import QuantizationResult
from tiered.testing import parse

QUANTIZE = "tiered.numerics.quantization.static_quantization"
SAMPLES = np.random.default_rng(0).standard_normal((8, 2, 8)).astype(np.float32)


def product() -> onnx.ModelProto:
    proto = parse("(float[2,8] x) => (float[2,8] y) { a = MatMul(x, w) y = Relu(a) }", opset=18)
    weight = np.random.default_rng(1).standard_normal((8, 8)).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return proto


def quantized(
    count: int = 8, backend: Backend | None = None, **settings: Any
) -> tuple[Model, QuantizationResult, Sequence[str]]:
    """Return the quantised model, the result and the findings, of some samples."""
    model, said = Model.from_proto(product()), list[str]()
    given = [{"x": each} for each in SAMPLES[:count]]
    options = QuantizationSettings(inputs=given, **settings)
    return model, quantize_model(model, options, said.append, backend=backend), said


def test_what_was_quantised_is_said_and_nothing_else() -> None:
    model, found, said = quantized()
    assert ops(model)[:2] == ["QuantizeLinear", "DequantizeLinear"]
    assert len(found.plan.units) == 1
    assert said[0] == "1 of 1 products are quantised"
    assert not any("samples" in each or "float" in each for each in said)
    assert found.sqnr is None


def test_made_samples_are_said() -> None:
    _, _, said = quantized(0, samples=2)
    assert said[0] == "no samples are given: ranges are those of generated inputs"


def test_a_quantised_model_stays_as_it_is() -> None:
    model, _, _ = quantized()
    before = model.to_proto()
    found = quantize_model(model, QuantizationSettings(inputs=[{"x": SAMPLES[0]}]))
    assert model.to_proto() == before
    assert not found.plan.units


@pytest.mark.parametrize("backend", [None, "int8_npu"])
def test_a_budget_is_measured_as_deployed_only_where_floats_are(
    backend: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[bool]()
    monkeypatch.setattr(f"{QUANTIZE}.runs_deployed", lambda *args: asked.append(True))
    target = None if backend is None else get_backend(backend)
    _, found, _ = quantized(backend=target, budget=budget_of("sqnr>=1"))
    assert len(found.plan.units) == 1
    assert found.sqnr is not None
    assert found.sqnr > 20
    assert asked == ([True] if backend is None else [])


@pytest.mark.parametrize(("answer", "asked"), [("exact", 1), ("saturate", 0), ("unknown", 0)])
def test_products_for_another_processor_are_not_measured_here(
    answer: str, asked: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = list[str]()
    monkeypatch.setattr(f"{QUANTIZE}.byte_products", lambda: answer)
    monkeypatch.setattr(f"{QUANTIZE}.runs_deployed", lambda *args: calls.append("run"))
    quantized(budget=budget_of("sqnr>=1"), processor="vnni")
    assert len(calls) == asked


@pytest.mark.parametrize(("count", "unseen"), [(3, 3), (4, 1), (8, 2)])
def test_one_of_four_samples_is_kept_for_measuring(
    count: int, unseen: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = list[int]()

    class Counting(FloatReference):
        def __init__(self, proto: Any, folder: str, feeds: Any) -> None:
            kept.append(len(feeds))
            super().__init__(proto, folder, feeds)

    monkeypatch.setattr(f"{QUANTIZE}.FloatReference", Counting)
    quantized(count, measures=True)
    assert kept == [unseen]
