"""The ratio with onnxruntime's own optimisations is measured, and a large difference is said."""

import math

import numpy as np
import pytest
from onnx import numpy_helper

from tiered import Model, QuantisationSettings, quantise_model
from tiered.errors import RuntimeFailure
from tiered.precision.noise import Reference
from tiered.quantization.quantize import Quantised, deviation
from tiered.quantization.report import report_of
from tiered.testing import parse


def _quantised() -> tuple[Quantised, list[str]]:
    proto = parse("(float[2,8] x) => (float[2,8] y) { a = MatMul(x, w) y = Relu(a) }", opset=17)
    random = np.random.default_rng(0)
    weight = random.standard_normal((8, 8)).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    samples = [{"x": random.standard_normal((2, 8)).astype(np.float32)} for _ in range(4)]
    said: list[str] = []
    settings = QuantisationSettings(inputs=samples, measures=True)
    return quantise_model(Model.from_proto(proto), settings, said.append), said


def test_both_ratios_are_measured_and_reported() -> None:
    found, said = _quantised()
    assert found.sqnr is not None
    assert found.deployed == pytest.approx(found.sqnr, abs=1.0)
    record = report_of(found, found.shapes).record()
    assert record["sqnr_deployed"] == found.deployed
    assert not any("optimisations" in each for each in said)


def test_optimisations_that_do_not_run_the_model_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Reference, proto: object) -> float:
        raise RuntimeFailure("no kernel")

    monkeypatch.setattr(Reference, "deployed", refuse)
    found, said = _quantised()
    assert found.deployed is None
    assert "onnxruntime does not run the model with its own optimisations" in said
    assert report_of(found, found.shapes).record()["sqnr_deployed"] is None


@pytest.mark.parametrize(
    ("sqnr", "deployed", "said"),
    [
        (40.0, 39.1, ""),
        (40.0, 38.0, "with onnxruntime's own optimisations the outputs have 38.0 dB"),
        (40.0, 42.0, "with onnxruntime's own optimisations the outputs have 42.0 dB"),
        (math.inf, math.inf, ""),
        (math.inf, 30.0, "with onnxruntime's own optimisations the outputs have 30.0 dB"),
    ],
)
def test_a_difference_of_more_than_one_decibel_is_said(
    sqnr: float, deployed: float, said: str
) -> None:
    assert deviation(sqnr, deployed) == said
