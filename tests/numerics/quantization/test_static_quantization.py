"""Static quantisation of a model: its samples, its findings, and where the budget is measured."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.saturation import products_that
from tests.small import made_by, ops, parsed
from tiered import Backend, Model, QuantizationSettings, get_backend, quantize_model
from tiered.numerics.precision.budget import budget_of
from tiered.numerics.precision.noise import FloatReference
from tiered.numerics.quantization.quantization_plan import QuantizationPlan, Unit
from tiered.numerics.quantization.quantization_result import QuantizationResult
from tiered.numerics.quantization.scheme import Scheme
from tiered.numerics.quantization.static_quantization import _names, _Quantization
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


# --- on results that are given --------------------------------------------------------------------


def test_findings_are_those_of_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    model = Model.from_proto(product())
    a, y = model.main.nodes
    unit, plan = Unit(a, {0: "data", 1: "weight"}), QuantizationPlan
    rows: list[tuple[QuantizationPlan, dict[str, Any], list[str], list[str]]] = [
        (plan([unit], []), {}, ["1 of 1 products are quantised"], []),
        (plan([unit], [(y, "why")]), {}, ["1 of 2 products are quantised"], ["y: why"]),
        (plan([], []), {}, [], ["no Conv, ConvTranspose, Gemm or MatMul"]),
        (plan([], [], others={y: []}), {}, ["1 other operator is quantised"], []),
        (plan([unit], [], floating=[(y, "no kernel")]), {},
         ["1 of 1 products are quantised", "1 other operator stays float"], ["y: no kernel"]),
        (plan([unit], []),
         {"returned": [(y, 5.04)], "method": "a method", "sqnr": 20.26, "warning": "a warning"},
         ["returned to float: y, 5.0 dB alone", "1 of 1 products are quantised", "a method",
          "signal to noise of the outputs: 20.3 dB", "a warning"], []),
        (plan([unit], []), {"differing": 0.125},
         ["1 of 1 products are quantised",
          "no output is of floats; 12.50% of the elements differ"], []),
    ]  # fmt: skip
    for given, more, findings, skips in rows:
        held: dict[str, Any] = {
            "returned": [],
            "method": None,
            "sqnr": None,
            "differing": None,
            "warning": "",
        }
        result: Any = SimpleNamespace(plan=given, **held | more)
        fake = SimpleNamespace(run=lambda it=result: it)
        monkeypatch.setattr(f"{QUANTIZE}._Quantization", lambda *_, it=fake, **__: it)
        said, skipped = list[str](), list[str]()

        def on_skip(node: Any, reason: object, to: list[str] = skipped) -> None:
            to.append(str(reason) if node is None else f"{node.output.name}: {reason}")

        assert quantize_model(model, QuantizationSettings(), said.append, on_skip) is result
        assert (said, skipped) == (findings, skips)


def test_samples_are_those_of_ranges_of_trials_and_unseen_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = "no samples are given: ranges are those of generated inputs"
    for given, measures, count, asked, whole, part, unseen in (
        (0, False, 4, 4, [0, 1, 2, 3], [0, 1, 2, 3], []),
        (0, True, 4, 6, [0, 1, 2, 3], [0, 1, 2, 3], [4, 5]),
        (0, True, 1, 2, [0], [0], [1]),
        (5, False, 4, 4, [0, 1, 2, 3, 4], [0, 1, 2, 3, 4], [0, 1, 2, 3, 4]),
        (3, True, 4, 6, [0, 1, 2], [0, 1, 2], [0, 1, 2]),
        (4, True, 4, 6, [0, 1, 2, 3], [1, 2, 3], [0]),
        (6, True, 4, 6, [0, 1, 2, 3, 4, 5], [1, 2, 3, 5], [0, 4]),
    ):
        counts, said = list[int](), list[str]()

        class Running:
            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None:
                pass

            def samples(self, inputs: Any, seed: int, count: int, to: Any = counts) -> Any:
                to.append(count)
                return list(range(len(inputs) or count))

        monkeypatch.setattr(
            f"{QUANTIZE}.SampledModel", SimpleNamespace(of=lambda _, it=Running: it())
        )
        found: Any = object.__new__(_Quantization)
        found.settings = QuantizationSettings(samples=count, measures=measures)
        found.given, found.model, found.on_found = [*range(given)], None, said.append
        assert found._samples() == (whole, part, unseen), (given, measures, count)
        assert (counts, said) == ([asked], [made] * (not given))


def test_what_is_measured_and_where() -> None:
    found: Any = object.__new__(_Quantization)
    for settings, measures in (
        ({}, False), ({"measures": True}, True), ({"budget": budget_of("sqnr>=1")}, True),
        ({"method": "auto"}, True), ({"method": "minmax"}, False),
    ):  # fmt: skip
        found.settings = QuantizationSettings(**settings)
        assert found._measures == measures
    for processor, answer, in_integers, is_here in (
        (None, "saturate", None, True), ("avx2", "saturate", None, True),
        ("vnni", "saturate", None, False), ("vnni", "exact", None, True),
        (None, "exact", lambda node: (), False),
    ):  # fmt: skip
        found.settings = QuantizationSettings(processor=cast("Any", processor))
        found.scheme = Scheme(in_integers=in_integers)
        with products_that(cast("Any", answer)):
            assert found._runs_here() == is_here


def test_products_return_by_the_error_that_reaches_the_outputs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = Model.from_proto(parse(
        "(float[2,2] x) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> "
        "{ a = MatMul(x, w)  b = MatMul(a, w)  y = MatMul(b, w) }"
    ))  # fmt: skip
    units = [Unit(node, {0: "data", 1: "weight"}) for node in model.main.nodes]
    plan = QuantizationPlan(units, [(model.main.nodes[0], "why")])
    effects = {units[0].node: 1.0, units[1].node: 100.0}
    monkeypatch.setattr(f"{QUANTIZE}.effects_for", lambda *_: effects)
    alone, reference = {"a": 20.0, "b": 30.0}, cast("Any", SimpleNamespace(feeds=()))
    for budget, order in ((None, "aby"), (budget_of("sqnr>=1"), "bay")):
        found: Any = object.__new__(_Quantization)
        found.settings, found.model = QuantizationSettings(budget=budget), model
        found.on_step, found.scheme = lambda _: None, Scheme()
        ranked = found._ranked(plan, alone, reference)
        assert "".join(unit.node.output.name for unit in ranked) == order
    assert _names(plan) == ["x", "w", "a", "a", "w", "b", "b", "w", "y", "x", "w", "a"]
    left = found._less(plan, units[:2], budget_of("sqnr>=1"))
    assert [reason for _, reason in left.kept] == ["why", *["the budget sqnr>=1"] * 2]


def test_shapes_are_those_of_values_of_the_main_graph() -> None:
    model = parsed(
        """(float[2,2] x, bool c) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> {
        a = Gemm(x, w, "")  y = If(c) <then_branch = t () => (float[2,2] p) { p = MatMul(a, w) },
                                     else_branch = e () => (float[2,2] q) { q = Neg(a) }> }"""
    )
    inner = model.main.nodes_of("If")[0].bodies[0].nodes[0]
    plan = QuantizationPlan([], [(node, "why") for node in (made_by(model, "a"), inner)])
    assert _names(plan) == ["x", "w", "a", "a", "w"]


def test_a_model_of_masked_products_is_not_calibrated() -> None:
    text = """(float[2,2] x, float[2,2] m) => (float[2,2] y) <float[2,2] w = {1,2,3,4}> {
        a = Add(x, m)  s = Softmax(a)  p = MatMul(a, w)  y = Add(s, p) }"""
    feeds: Any = {"m": np.full((2, 2), -1e9, np.float32), "x": np.zeros((2, 2), np.float32)}
    found = quantize_model(parsed(text), QuantizationSettings(inputs=[feeds]))
    assert [reason for _, reason in found.plan.kept] == ["mask: an operand has masks"]
    assert found.calibration is None
