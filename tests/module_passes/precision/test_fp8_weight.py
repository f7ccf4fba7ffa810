"""fp8_weight: at least 30 dB in E4M3, and Graphcore's formats."""

import re

import numpy as np
import pytest

from tests.module_passes.precision.weights import apply, noise_of, with_weight
from tiered.testing import assert_rewrites

MATMUL = "(float[N,64] x) => (float[N,32] y) { y = MatMul(x, w) }"


def test_a_weight_is_dequantized_where_it_is_read() -> None:
    model = "(float[N,2] x) => (float[N,2] y) <{}> {{ {} y = MatMul(x, w) }}"
    assert_rewrites(
        "fp8_weight",
        model.format("float[2,2] w = {4,1,-2,0.5}", ""),
        # The numbers of q are the bits of 448, 448, -224 and 224.
        model.format(
            "float8e4m3fn[2,2] q = {126,126,246,118}, float[2] s = {0.008928572,0.002232143}",
            "w = DequantizeLinear(q, s)",
        ),
        min_elements=1,
    )


@pytest.mark.parametrize(
    ("format", "dtype", "least"),
    [
        *(("E4M3FN", 17, 30), ("E4M3FNUZ", 18, 30), ("F143", 18, 30)),
        *(("E5M2", 19, 24), ("E5M2FNUZ", 20, 24), ("F152", 20, 24)),
    ],
)
def test_formats(format: str, dtype: int, least: float) -> None:
    proto = with_weight(MATMUL, (64, 32))
    model, found = apply("fp8_weight", proto, {"format": format})
    (node,) = model.main.nodes_of("DequantizeLinear")
    assert node.inputs[0] is not None
    assert node.inputs[0].dtype == dtype
    quality = re.search(r"of a weight: ([\d.]+) dB", " ".join(found))
    assert quality is not None
    assert float(quality[1]) >= least
    assert 0 < noise_of(proto, model) < 0.07


def test_a_power_of_two_for_all() -> None:
    proto = with_weight(MATMUL, (64, 32))
    model, _ = apply("fp8_weight", proto, {"format": "F143", "exponent": -5})
    (node,) = model.main.nodes_of("DequantizeLinear")
    assert node.inputs[1] is not None
    assert node.inputs[1].const is not None
    assert set(node.inputs[1].const.tolist()) == {2.0**-5}


def test_numbers_beyond_the_scale_saturate() -> None:
    proto = with_weight(MATMUL, (64, 32))
    weight = np.full((64, 32), 1e4, np.float32)
    proto.graph.initializer[0].raw_data = weight.tobytes()
    model, _ = apply("fp8_weight", proto, {"format": "E4M3FN", "exponent": 0})
    (node,) = model.main.nodes_of("DequantizeLinear")
    assert node.inputs[0] is not None
    assert node.inputs[0].const is not None
    assert set(node.inputs[0].const.astype(np.float32).ravel().tolist()) == {448.0}


def test_an_older_opset_has_no_float8() -> None:
    _, found = apply("fp8_weight", with_weight(MATMUL, (64, 32), opset=18))
    assert any("needs opset 19, the model has 18" in each for each in found)
