"""weights_to_int8: a scale for each channel, or for each block."""

import numpy as np
import pytest

from tests.module_passes.precision.weights import apply, noise_of, with_weight
from tiered.testing import assert_rewrites

CASES = [
    ("(float[N,64] x) => (float[N,32] y) { y = MatMul(x, w) }", (64, 32), 1),
    ("(float[N,64] x) => (float[N,32] y) { y = Gemm<transB = 1>(x, w) }", (32, 64), 0),
    ("(int64[N] x) => (float[N,64] y) { y = Gather(w, x) }", (32, 64), 0),
    ("(float[1,8,5,5] x) => (float[1,16,3,3] y) { y = Conv(x, w) }", (16, 8, 3, 3), 0),
    ("(float[1,8,5,5] x) => (float[1,16,7,7] y) { y = ConvTranspose(x, w) }", (8, 16, 3, 3), 1),
]


def test_a_weight_is_dequantized_where_it_is_read() -> None:
    model = "(float[N,2] x) => (float[N,2] y) <{}> {{ {} y = MatMul(x, w) }}"
    assert_rewrites(
        "weights_to_int8",
        model.format("float[2,2] w = {127,1,-127,0.5}", ""),
        model.format(
            "int8[2,2] q = {127,127,-127,64}, float[2] s = {1,0.007874015718698502}",
            "w = DequantizeLinear<axis=1>(q, s)",
        ),
        min_elements=1,
    )


@pytest.mark.parametrize(("text", "shape", "axis"), CASES)
@pytest.mark.parametrize("opset", [13, 21])
def test_each_channel_has_a_scale(text: str, shape: tuple[int, ...], axis: int, opset: int) -> None:
    proto = with_weight(text, shape, opset=opset)
    model, found = apply("weights_to_int8", proto)
    (node,) = model.main.nodes_of("DequantizeLinear")
    scale = node.inputs[1]
    assert scale is not None
    assert (node.attr("axis"), scale.shape) == (axis, (shape[axis],))
    assert 0 < noise_of(proto, model) < 0.01
    assert any("1 weight in int8" in each for each in found)


def test_blocks_are_more_exact() -> None:
    proto = with_weight(*CASES[0][:2])
    whole, _ = apply("weights_to_int8", proto)
    blocks, _ = apply("weights_to_int8", proto, {"block_size": 16})
    assert noise_of(proto, blocks) < noise_of(proto, whole)


def test_a_channel_of_zeros_stays_zero() -> None:
    proto = with_weight(*CASES[0][:2])
    weight = np.zeros((64, 32), np.float32)
    weight[:, 1] = 1e-45
    weight[:, 2] = -3
    proto.graph.initializer[0].raw_data = weight.tobytes()
    model, _ = apply("weights_to_int8", proto)
    assert noise_of(proto, model) < 1e-6


def test_weights_of_halves() -> None:
    text = "(float16[N,64] x) => (float16[N,32] y) { y = MatMul(x, w) }"
    proto = with_weight(text, (64, 32), dtype=np.float16)
    model, _ = apply("weights_to_int8", proto)
    (node,) = model.main.nodes_of("DequantizeLinear")
    assert node.output.dtype == 10
    old = with_weight(text, (64, 32), opset=17, dtype=np.float16)
    _, found = apply("weights_to_int8", old)
    assert any("scales of float16 need opset 19" in each for each in found)


def test_an_old_opset_has_no_scale_for_each_channel() -> None:
    _, found = apply("weights_to_int8", with_weight(*CASES[0][:2], opset=12))
    assert any("int8 needs opset 13, the model has 12" in each for each in found)
