"""The ratio with onnxruntime's own optimisations is measured, and a large difference is said."""

import math
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from onnx import numpy_helper

from tests.saturation import products_that
from tiered import Model, QuantizationSettings, quantize_model
from tiered.numerics.precision.budget import budget_of
from tiered.numerics.precision.noise import FloatReference
from tiered.numerics.quantization.deployed import SATURATION, deviation, runs_deployed, scheme_for
from tiered.numerics.quantization.quantization_report import report_of
from tiered.numerics.quantization.quantization_result import QuantizationResult
from tiered.numerics.quantization.scheme import Scheme
from tiered.runtime.byte_products import ByteProducts
from tiered.support.errors import RuntimeFailure
from tiered.testing import parse


def _quantized(**options: Any) -> tuple[QuantizationResult, list[str]]:
    proto = parse("(float[2,8] x) => (float[2,8] y) { a = MatMul(x, w) y = Relu(a) }", opset=17)
    random = np.random.default_rng(0)
    weight = random.standard_normal((8, 8)).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    samples = [{"x": random.standard_normal((2, 8)).astype(np.float32)} for _ in range(4)]
    said: list[str] = []
    settings = QuantizationSettings(**{"inputs": samples, "measures": True, **options})
    return quantize_model(Model.from_proto(proto), settings, said.append), said


@pytest.mark.parametrize("answer", ["exact", "saturate"])
def test_both_ratios_are_measured_and_reported(answer: ByteProducts) -> None:
    with products_that(answer):
        found, said = _quantized(processor="vnni")
    assert found.sqnr is not None
    assert found.deployed is not None
    record = report_of(found, found.shapes).record()
    assert record["sqnr_deployed"] == found.deployed
    is_saturated = answer == "saturate"
    assert (record["saturates"], found.is_saturated) == (is_saturated, is_saturated)
    if is_saturated:
        assert found.deployed < found.sqnr - 1
        assert any(each.endswith(f" dB: {SATURATION}") for each in said)
    else:
        assert found.deployed == pytest.approx(found.sqnr, abs=0.1)
        assert not any("optimisations" in each for each in said)


def test_weights_of_seven_bits_have_no_warning() -> None:
    with products_that("saturate"):
        found, said = _quantized(reduce_range=True)
    assert found.sqnr is not None
    assert found.deployed == pytest.approx(found.sqnr, abs=0.1)
    assert not found.is_saturated
    assert not any("saturate" in each for each in said)


def test_saturation_is_a_finding_without_measurements_too() -> None:
    with products_that("exact"):
        assert SATURATION not in _quantized(measures=False)[1]
    with products_that("saturate"):
        assert SATURATION in _quantized(measures=False, processor="vnni")[1]
        assert SATURATION in _quantized(measures=False, reduce_range=False)[1]
        assert SATURATION not in _quantized(measures=False)[1]


def test_a_budget_is_that_of_the_deployed_model_where_it_saturates() -> None:
    budget = budget_of("sqnr>=20dB")
    with products_that("exact"):
        exact, _ = _quantized(budget=budget)
    with products_that("saturate"):
        saturated, said = _quantized(budget=budget, reduce_range=False)
        others = [_quantized(budget=budget, **each)[0] for each in ({}, {"reduce_range": True})]
    assert (len(exact.returned), len(saturated.returned)) == (0, 1)
    assert [len(each.returned) for each in others] == [0, 0]
    assert SATURATION in said


def test_optimisations_that_do_not_run_the_model_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: FloatReference, proto: object) -> float:
        raise RuntimeFailure("no kernel")

    monkeypatch.setattr(FloatReference, "deployed", refuse)
    found, said = _quantized()
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
        (40.0, None, "onnxruntime does not run the model with its own optimisations"),
    ],
)
def test_a_difference_of_more_than_one_decibel_is_said(
    sqnr: float, deployed: float | None, said: str
) -> None:
    assert deviation(sqnr, deployed) == said


def test_saturation_is_the_cause_of_a_lower_ratio_alone() -> None:
    assert deviation(40.0, 30.0, is_saturated=True).endswith(f"have 30.0 dB: {SATURATION}")
    assert deviation(40.0, 42.0, is_saturated=True).endswith("have 42.0 dB")
    assert deviation(40.0, 39.5, is_saturated=True) == ""
    assert deviation(40.0, 39.5, is_saturated=True, has_returned=True) == SATURATION


def test_pairs_are_kept_where_the_processor_is_asked_and_saturates() -> None:
    for answer, is_here, reduce_range, processor, keeps, is_reduced in (
        ("saturate", True, None, None, True, False),
        ("saturate", False, None, None, False, False),
        ("exact", True, None, None, False, False),
        ("saturate", True, False, None, False, False),
        ("saturate", True, True, None, False, True),
        ("exact", True, None, "avx2", True, False),
        ("exact", True, None, "any", True, False),
        ("saturate", True, None, "vnni", False, False),
        ("saturate", True, False, "avx2", True, False),
    ):
        with products_that(cast("ByteProducts", answer)):
            found = scheme_for(
                Scheme(), cast("Any", processor), reduce_range=reduce_range, is_here=is_here
            )
        assert (found.keeps_pairs, found.reduce_range) == (keeps, is_reduced)


def test_what_optimisations_do_is_said_beyond_a_decibel() -> None:
    worse = "with onnxruntime's own optimisations the outputs have"
    for deployed, is_saturated, has_returned, said in (
        (20, True, False, ""), (19, True, False, ""), (21, False, True, ""),
        (19, True, True, SATURATION), (18.9, False, True, f"{worse} 18.9 dB"),
        (18.9, True, True, f"{worse} 18.9 dB: {SATURATION}"),
        (21.1, True, True, f"{worse} 21.1 dB"),
        (None, True, True, "onnxruntime does not run the model with its own optimisations"),
    ):  # fmt: skip
        made = deviation(20, deployed, is_saturated=is_saturated, has_returned=has_returned)
        assert made == said, deployed


def test_a_model_runs_deployed_or_does_not() -> None:
    def fail(_: object) -> None:
        raise RuntimeFailure("no kernel")

    for deployed, runs in ((lambda _: 20.0, True), (lambda _: None, True), (fail, False)):
        reference = cast("Any", SimpleNamespace(deployed=deployed))
        assert runs_deployed(cast("Any", None), reference) is runs
