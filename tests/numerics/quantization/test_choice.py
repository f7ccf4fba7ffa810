"""--method auto: the method of the calibration with the least noise on samples held back."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tiered import Model, PassContext, QuantizationSettings, get_pass, quantize_model
from tiered.numerics.calibration.observers import METHODS, Method
from tiered.numerics.quantization.choice import chosen
from tiered.testing import parse

Array = np.ndarray[Any, Any]


def drawn(*shape: int, seed: int = 0) -> Array:
    numbers: Array = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    return numbers


def test_the_largest_ratio_is_taken() -> None:
    ratios: dict[Method, float | None] = {
        "mse": 30.0, "minmax": 31.5, "percentile": 31.5, "entropy": None
    }  # fmt: skip
    found = chosen("auto", lambda method: ratios[method])
    assert found.method == "minmax"
    assert found.ratios == {"mse": 30.0, "minmax": 31.5, "percentile": 31.5}
    assert str(found) == (
        "ranges by minmax, the best on samples held back: "
        "mse 30.0 dB, minmax 31.5 dB, percentile 31.5 dB"
    )


def test_without_an_output_of_floats_it_is_the_default() -> None:
    assert chosen("auto", lambda method: None) == ("mse", {})
    infinite = chosen("auto", lambda method: np.inf)
    assert infinite.method == "mse"
    assert infinite.record()["ratios"]["mse"] == "inf"


def test_one_method_is_not_measured() -> None:
    def never(method: Method) -> float | None:
        raise AssertionError(method)

    assert chosen("entropy", never) == ("entropy", {})


def model_of(text: str) -> onnx.ModelProto:
    proto = parse(text, opset=17)
    proto.graph.initializer.append(numpy_helper.from_array(drawn(16, 16), "w"))
    return proto


TWO = "(float[N,16] x) => (float[N,16] y) { a = MatMul(x, w) b = Relu(a) y = MatMul(b, w) }"


def outlying(seed: int) -> dict[str, Array]:
    """Return data of which one number in 400 is fifty times as large as the others."""
    x = drawn(50, 16, seed=seed)
    x.reshape(-1)[::400] = 50
    return {"x": x}


@pytest.mark.parametrize("held", [True, False])
def test_the_choice_is_that_of_each_method_alone(*, held: bool) -> None:
    samples = [outlying(seed) for seed in range(8 if held else 3)]
    ratios = {}
    for method in METHODS:
        settings = QuantizationSettings(inputs=samples, method=method, measures=True)
        ratios[method] = quantize_model(Model.from_proto(model_of(TWO)), settings).sqnr
    model = Model.from_proto(model_of(TWO))
    found = quantize_model(model, QuantizationSettings(inputs=samples, method="auto"))
    assert found.method is not None
    best = max(value for value in ratios.values() if value is not None)
    assert ratios[found.method.method] == pytest.approx(best)
    assert found.sqnr == pytest.approx(best)
    if not held:
        assert found.method.ratios == pytest.approx(ratios)


def test_the_pass_reports_what_it_tried() -> None:
    model, ctx = Model.from_proto(model_of(TWO)), PassContext.isolated()
    get_pass("quantize").with_options(method="auto", samples=2).apply(model, ctx)
    (text,) = [str(each) for each in ctx.remarks if "the best on samples held back" in str(each)]
    assert all(f"{method} " in text for method in METHODS)
