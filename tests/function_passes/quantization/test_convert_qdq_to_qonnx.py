"""convert_qdq_to_qonnx: quantised constants, and why Q/DQ stays; the round trips are beside it."""

import numpy as np
import pytest

from tests import qonnx
from tiered import optimize_model
from tiered.runtime import run

TO_QDQ, TO_QONNX = "convert_qonnx_to_qdq", "convert_qdq_to_qonnx"


INTEGERS = (
    "<float s = {0.5}, float t = {0.25}, uint8 z = {0}, uint8 three = {3}, "
    "uint8 u = {5}, uint8[2] us = {5, 6}, int32[2] wide = {5, 2147483647}>"
)


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("a = QuantizeLinear(x, s, z) y = DequantizeLinear(a, t, z)",
         "the scales or zero points differ"),
        ("a = QuantizeLinear(x, s, three) y = DequantizeLinear(a, s, three)",
         "the zero point is not zero"),
        ("a = QuantizeLinear(x, s, z) c = Clip(a, z, u) y = DequantizeLinear(c, s, z)",
         "no number of bits has these limits"),
        ("a = QuantizeLinear(x, s, z) c = Clip(a, z, v) y = DequantizeLinear(c, s, z)",
         "a limit is not constant"),
        ("a = QuantizeLinear(x, s, z) c = Clip(a, z, us) y = DequantizeLinear(c, s, z)",
         "a limit is not one number"),
        ("a = QuantizeLinear(x, r, z) y = DequantizeLinear(a, r, z)",
         "a scale or zero point is not a constant"),
        ("a = QuantizeLinear(n, s, z) y = DequantizeLinear(a, s, z)", "x is not float32"),
        ("v1 = DequantizeLinear(wide, s) y = Add(v1, x)", "Quant rounds to other integers"),
    ],
)  # fmt: skip
def test_why_q_dq_stays(nodes: str, reason: str) -> None:
    text = f"(float[N] x, float r, uint8 v, int32[N] n) => (float[N] y) {INTEGERS} {{ {nodes} }}"
    made, left = qonnx.applied(TO_QONNX, qonnx.parsed(text))
    assert "Quant" not in qonnx.operators(made)
    assert left == [reason]


@pytest.mark.parametrize(
    ("dtype", "axis", "zero"),
    [
        (np.int8, None, 0),
        (np.uint8, None, 128),
        (np.int8, 0, 0),
        (np.int8, 1, -3),
        (np.uint8, -1, 7),
        (np.int8, None, None),
    ],
)
def test_quantised_constants_become_numbers(
    dtype: type[np.int8], axis: int | None, zero: int | None
) -> None:
    limits = np.iinfo(dtype)
    codes = np.arange(limits.min, limits.max + 1).astype(dtype).reshape(2, 4, 32)
    count = 1 if axis is None else codes.shape[axis]
    scale = np.random.default_rng(0).uniform(1e-3, 5, count).astype(np.float32)
    written = "" if axis is None else f"<axis = {axis}>"
    last = "" if zero is None else ", z"
    text = f"() => (float[2,4,32] y) {{ y = DequantizeLinear{written}(w, s{last}) }}"
    dims = () if axis is None else (count,)
    weights: dict[str, np.ndarray] = {"w": codes, "s": scale.reshape(dims)}
    if zero is not None:
        weights["z"] = np.full(dims, zero, dtype)
    proto = qonnx.parsed(text, 17, **weights)
    made, left = qonnx.applied(TO_QONNX, proto)
    assert (qonnx.operators(made), left) == (["Quant"], [])
    runnable = optimize_model(made, passes=["import_qonnx"]).model.to_proto()
    assert qonnx.same_bits(run(runnable, {})["y"], run(proto, {})["y"])
    if not zero:
        back, _ = qonnx.applied(TO_QDQ, made)
        assert qonnx.operators(back) == ["QuantizeLinear", "DequantizeLinear"]
        folded = optimize_model(back, passes=["fold_quantize"]).model
        (node,) = folded.main.nodes
        assert node.inputs[0] is not None
        assert np.array_equal(np.asarray(node.inputs[0].const), codes)


def test_q_dq_of_a_model_that_defines_quant_stays() -> None:
    nodes = "a = QuantizeLinear(x, s, z) w = DequantizeLinear(a, s, z) y = q.Quant(w, s, t, s)"
    proto = qonnx.defining(qonnx.parsed(f"(float[N] x) => (float[N] y) {INTEGERS} {{ {nodes} }}"))
    assert qonnx.applied(TO_QONNX, proto)[1] == ["the model defines Quant"]


def test_a_bias_of_32_bits_goes_and_comes_back() -> None:
    scale = qonnx.floats([1e-3, 0.37, 3e-7])
    codes = np.array([-(1 << 21), 12345, (1 << 21) + 7], np.int32)
    text = "(float[N,3] x) => (float[N,3] y) { b = DequantizeLinear<axis=0>(q, s) y = Add(x, b) }"
    before = qonnx.parsed(text, 17, q=codes, s=scale)
    made, left = qonnx.applied(TO_QONNX, before)
    assert (qonnx.operators(made), left) == (["Quant", "Add"], [])
    runnable = optimize_model(made, passes=["import_qonnx"]).model.to_proto()
    back, left = qonnx.applied(TO_QDQ, made)
    assert (qonnx.operators(back), left) == (["DequantizeLinear", "Add"], [])
    x = {"x": qonnx.floats([[0, 0, 0], [1, 2, 3]])}
    expected = run(before, x)["y"]
    assert qonnx.same_bits(run(runnable, x)["y"], expected)
    assert qonnx.same_bits(run(back, x)["y"], expected)


def test_a_number_that_overflows_stays() -> None:
    text = "(float[2] x) => (float[2] y) { b = DequantizeLinear(q, s) y = Add(x, b) }"
    codes = np.array([1, 1 << 30], np.int32)
    proto = qonnx.parsed(text, 17, q=codes, s=qonnx.floats(1e33))
    assert qonnx.applied(TO_QONNX, proto)[1] == ["Quant rounds to other integers"]
