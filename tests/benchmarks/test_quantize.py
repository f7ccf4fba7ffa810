"""The benchmark of quantisation judges what it says, on models that take no time."""

import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from benchmarks import quantize
from tiered.testing import parse

TEXT = "(float[2,8] x) => (float[2,8] y) { a = MatMul(x, w) b = Relu(a) y = MatMul(b, w) }"


def _model() -> onnx.ModelProto:
    proto = parse(TEXT)
    weight = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    return proto


def test_it_prints_a_row_for_each_tool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onnx.save(_model(), tmp_path / "small.onnx")
    result = quantize.main(tmp_path, ["tiered"], sys.executable)["small"]["tiered"]
    assert (result.failure, result.quantized, result.products) == ("", 2, 2)
    assert result.decibels > 20
    assert result.calibration > 0
    assert "| small | 2 of 2 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("scale", "failure"), [(1e5, "a scale is 100000"), (np.inf, "a scale is inf"), (0.1, "")]
)
def test_a_wrong_scale_is_not_valid(tmp_path: Path, scale: float, failure: str) -> None:
    text = """
    (float[2,8] x) => (float[2,8] y) <uint8 z = {128}>
    { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z) a = MatMul(d, d_t) y = Add(a, x) }
    """.replace("MatMul(d, d_t)", "Relu(d)")
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    onnx.save(parse("(float[2,8] x) => (float[2,8] y) { a = Relu(x) y = Add(a, x) }"), before)
    made = parse(text)
    made.graph.initializer.append(numpy_helper.from_array(np.array(scale, np.float32), "s"))
    onnx.save(made, after)
    feeds = [{"x": np.ones((2, 8), np.float32)}]
    assert quantize.judged(before, after, feeds, {"seconds": 0.0}).failure == failure


def test_a_result_that_a_second_run_changes_is_not_valid(tmp_path: Path) -> None:
    file = tmp_path / "small.onnx"
    onnx.save(_model(), file)
    noted = {"seconds": 0.0, "is_fixed": False}
    assert quantize.judged(file, file, [], noted).failure == "a second run changes it"


def test_dynamic_quantisation_has_a_table_too(tmp_path: Path) -> None:
    onnx.save(_model(), tmp_path / "small.onnx")
    found = quantize.main(tmp_path, ["tiered"], sys.executable, dynamic=True)
    result = found["small"]["tiered"]
    assert (result.failure, result.quantized, result.products) == ("", 2, 2)


def test_data_that_is_quantised_twice_in_a_run_is_not_valid(tmp_path: Path) -> None:
    text = """
    (float[2,8] x) => (float[2,8] y)
    { a, s, z = DynamicQuantizeLinear(x) b, t, o = DynamicQuantizeLinear(x)
      c = DequantizeLinear(a, s, z) d = DequantizeLinear(b, t, o) y = Add(c, d) }
    """
    before, after = tmp_path / "before.onnx", tmp_path / "after.onnx"
    onnx.save(parse("(float[2,8] x) => (float[2,8] y) { y = Add(x, x) }"), before)
    onnx.save(parse(text), after)
    found = quantize.judged(before, after, [], {"seconds": 0.0})
    assert found.failure == "x is quantised twice in a run"


def test_products_in_bodies_count() -> None:
    text = """
    (bool c, float[2,2] x) => (float[2,2] y) <float s = {0.1}, uint8 z = {1}>
    { q = QuantizeLinear(x, s, z) d = DequantizeLinear(q, s, z)
      y = If(c) <then_branch = g () => (float[2,2] a) { a = MatMul(d, d) },
                 else_branch = h () => (float[2,2] b) { b = MatMul(x, d) }> }
    """
    assert quantize.coverage(parse(text).graph) == (1, 2)
