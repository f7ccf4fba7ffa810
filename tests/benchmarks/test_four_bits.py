"""The benchmark of four bits measures layers, on a model that takes no time."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from benchmarks import four_bits
from tests.module_passes.precision.weights import with_weight


def test_codes_of_onnxruntime_are_unpacked() -> None:
    weight = np.random.default_rng(0).standard_normal((70, 16)).astype(np.float32)
    for symmetric in (False, True):
        error = np.abs(four_bits.onnxruntime_weight(weight, symmetric=symmetric) - weight)
        assert 0 < error.max() < 0.5


@pytest.mark.parametrize("text", ["y = MatMul(x, w)", "y = Gemm(x, w)"])
def test_it_prints_a_row_for_each_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    model = with_weight(f"(float[N,96] x) => (float[N,64] y) {{ {text} }}", (96, 64))
    onnx.save(model, tmp_path / "layer.onnx")
    (layer,) = four_bits.main(tmp_path)
    assert layer.asymmetric < 1
    assert layer.symmetric < 1
    assert "| layer | 1 | 100% | 100% |" in capsys.readouterr().out
