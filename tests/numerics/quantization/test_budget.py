"""A budget of `quantize` holds, or it is an error; measuring does not change the result."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, PassContext, QuantizationSettings, get_pass, quantize_model
from tiered.numerics.precision.budget import budget_of
from tiered.support.errors import VerificationError
from tiered.testing import parse

EDGE = """
(float[1,3,8,8] x) => (float[1,3,8,8] y)
{ c = Conv<pads=[1,1,1,1]>(x, w) s = Sigmoid(c) a = Add(s, c) y = Mul(a, s) }
"""
CLASSES = "(float[N,64] x) => (int64[N] y) { a = MatMul(x, w) y = ArgMax<axis=1, keepdims=0>(a) }"


def _model(text: str, *shape: int) -> onnx.ModelProto:
    proto = parse(text, opset=17)
    weight = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return proto


def _edge() -> onnx.ModelProto:
    return _model(EDGE, 3, 3, 3, 3)


def _classes(count: int) -> tuple[onnx.ModelProto, list[dict[str, Any]]]:
    random = np.random.default_rng(1)
    samples = [{"x": random.standard_normal((100, 64)).astype(np.float32)} for _ in range(8)]
    return _model(CLASSES, 64, count), samples


def test_other_operators_of_an_integer_target_do_not_return_so_the_budget_fails() -> None:
    model = Model.from_proto(_edge())
    step = get_pass("quantize").with_options(budget="sqnr>=90dB", samples=2)
    said = "the budget sqnr>=90 cannot be met: sqnr is .* with all 1 products in float"
    with PassContext(backend="int8_npu"), pytest.raises(VerificationError, match=said):
        step(model)


def test_classes_that_differ_are_the_error() -> None:
    proto, samples = _classes(1000)
    settings = QuantizationSettings(inputs=samples, budget=budget_of("relative<=0.004"))
    found = quantize_model(Model.from_proto(proto), settings)
    assert (found.sqnr, len(found.returned)) == (None, 1)
    said: list[str] = []
    free = QuantizationSettings(inputs=samples, measures=True)
    found = quantize_model(Model.from_proto(proto), free, said.append)
    assert found.differing is not None
    assert 0 < found.differing < 0.5
    assert f"no output is of floats; {found.differing:.2%} of the elements differ" in said


@pytest.mark.parametrize("name", ["weights_to_int8", "quantize_dynamic", "weights_to_int4"])
def test_the_other_ways_count_classes_too(name: str, tmp_path: Path) -> None:
    proto, samples = _classes(1000)
    for at, sample in enumerate(samples):
        np.savez(tmp_path / f"{at}.npz", **sample)
    model = Model.from_proto(proto)
    budget = "sqnr>=60dB" if name == "quantize_dynamic" else "relative<=1e-3"
    get_pass(name).with_options(budget=budget, inputs=(str(tmp_path),)).apply(model)
    assert [node.op_type for node in model.main.nodes] == ["MatMul", "ArgMax"]


def test_nothing_that_is_measured_meets_no_budget() -> None:
    text = "(float[N,4] x) => (int64[2,M] y) { a = MatMul(x, w) b = Abs(a) c = Neg(b) "
    proto = _model(text + "d = Relu(c) y = NonZero(d) }", 4, 4)
    settings = QuantizationSettings(budget=budget_of("relative<=0.5"), samples=2)
    with pytest.raises(VerificationError, match="no output was measured"):
        quantize_model(Model.from_proto(proto), settings)


@pytest.mark.parametrize("count", [None, 8])
def test_measuring_does_not_change_the_result(count: int | None) -> None:
    proto = _edge()
    random = np.random.default_rng(2)
    samples = [
        {"x": random.standard_normal((1, 3, 8, 8)).astype(np.float32) * (1 if at % 4 else 3)}
        for at in range(count or 0)
    ]
    results = []
    for measures in (False, True):
        model = Model.from_proto(proto)
        settings = QuantizationSettings(
            inputs=samples, method="minmax", samples=2, measures=measures
        )
        quantize_model(model, settings)
        results.append(model.to_proto().SerializeToString())
    assert results[0] == results[1]
