"""Quantised units: what stands for numbers in a way that no kernel of integers takes."""

import pytest

from tests.constants import spoken_of
from tiered.testing import assert_rewrites, assert_unchanged

ORT = "onnxruntime_cpu"
CONSTANTS = (
    *("int8[2,1,1,1] w = {3,-5}", "float[2] r = {0.25,0.5}", "int8[2] v = {0,0}"),
    *("float s = {0.5}", "float t = {2.0}", "uint8 z = {3}", "uint8 u = {1}"),
    *("int32[2] b = {10,-20}", "int32[3] i = {1,2,3}"),
)
X = "d = DequantizeLinear(x, s, z)"
W = "e = DequantizeLinear<axis=0>(w, r, v)"
Q = "y = QuantizeLinear(c, t, u)"


def graph(nodes: str, inputs: str = "uint8[N,1,4,4] x", *others: str) -> str:
    return f"({inputs}) => (uint8[N,2,4,4] y) {spoken_of(nodes, *CONSTANTS, *others)} {{ {nodes} }}"


@pytest.mark.parametrize(
    ("bias", "inputs", "because"),
    [
        ("", "float[2] f", "the bias is not constant"),
        ("f = DequantizeLinear(a, s)", "int32[2] a", "the bias is not constant"),
        ("f = DequantizeLinear(b, a)", "float a", "the bias is not constant"),
        ("f = DequantizeLinear(b, s, a)", "int32 a", "the bias is not constant"),
        (
            "f = DequantizeLinear<axis=0>(i, q, j)",
            "float a",
            "the bias is not one number a channel",
        ),
    ],
)
def test_a_bias_is_constant_and_one_number_a_channel(bias: str, inputs: str, because: str) -> None:
    text = graph(
        f"{X} {W} {bias} c = Conv(d, e, f) {Q}",
        f"uint8[N,1,4,4] x, {inputs}",
        *("float[2] q = {1,2}", "int32[2] j = {0,0}"),
    )
    assert_unchanged("fuse_qdq_into_conv", text, backend=ORT, because=because)


@pytest.mark.parametrize(
    ("was", "has", "because"),
    [
        ("float s = {0.5}", "float16 s = {14336}", "a scale is no float32"),
        (
            "DequantizeLinear(x, s, z)",
            "DequantizeLinear<axis=2, block_size=2>(x, q, k)",
            "a scale is for a block",
        ),
    ],
)
def test_scales_are_float32_and_of_more_than_a_block(was: str, has: str, because: str) -> None:
    text = (
        "(uint8[1,2,4] x) => (uint8[1,2,4] y) <float s = {0.5}, uint8 z = {3},"
        " float[1,2,2] q = {1,2,3,4}, uint8[1,2,2] k = {0,0,0,0}>"
        " { d = DequantizeLinear(x, s, z) c = Sigmoid(d) y = QuantizeLinear(c, s, z) }"
    )
    assert_unchanged("fuse_qdq_into_unary", text.replace(was, has), backend=ORT, because=because)


def test_an_axis_needs_a_rank_to_count_it_from() -> None:
    text = (
        "(uint8[] x) => (uint8[] y) <float[2] s = {1,2}, uint8[2] z = {3,4}>"
        " { d = DequantizeLinear<axis=-1>(x, s, z) c = Sigmoid(d)"
        " y = QuantizeLinear<axis=-1>(c, s, z) }"
    )
    assert_unchanged(
        "fuse_qdq_into_unary",
        text,
        backend=ORT,
        because="the rank of the quantised tensor is not known",
    )


def test_an_axis_that_a_call_decides_stays() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "local": 1]>
      g (uint8[2,2] x) => (uint8[2,2] y) { y = local.f<axis=1>(x) }
      <domain: "local", opset_import: ["": 21]>
      f <axis> (x) => (y) {
        s = Constant<value = float[2] {0.5, 0.25}>() z = Constant<value = uint8[2] {3, 4}>()
        d = DequantizeLinear<axis: int = @axis>(x, s, z) c = Sigmoid(d)
        y = QuantizeLinear<axis: int = @axis>(c, s, z) }"""
    assert_unchanged(
        "fuse_qdq_into_unary",
        text,
        backend=ORT,
        because="attribute 'axis' is a function parameter",
    )


def test_a_bias_of_numbers_is_one_for_each_scale_of_the_weight() -> None:
    text = graph(f"{X} {W} c = Conv(d, e, f) {Q}", "uint8[N,1,4,4] x", "float[3] f = {1,2,3}")
    because = "the bias is not one number a channel"
    assert_unchanged("fuse_qdq_into_conv", text, backend=ORT, because=because)


def test_what_is_computed_is_a_float32() -> None:
    dequantized = "DequantizeLinear<output_dtype={}>"
    text = (
        "(uint8[2,3] a, uint8[3,4] b) => ({}[2,4] y) <float s = {{0.5}}, uint8 z = {{0}}>"
        " {{ da = {}(a, s, z) db = {}(b, s, z) y = MatMul(da, db) }}"
    )
    halves, floats = dequantized.format(10), dequantized.format(1)
    assert_unchanged(
        "fuse_dequantize_into_matmul",
        text.format("float16", halves, halves),
        opset=23,
        backend=ORT,
        because="DequantizeLinear does not produce float32",
    )
    assert_rewrites(
        "fuse_dequantize_into_matmul",
        text.format("float", floats, floats),
        "(uint8[2,3] a, uint8[3,4] b) => (float[2,4] y) <float s = {0.5}, uint8 z = {0}>"
        " { y = com.microsoft.MatMulIntegerToFloat(a, b, s, s, z, z) }",
        opset=23,
        backend=ORT,
    )


def test_a_division_in_another_precision_stays() -> None:
    assert_unchanged(
        "fuse_qdq_into_move",
        "(uint8[2,3] x) => (uint8[3,2] y) <float s = {0.5}, uint8 z = {0}>"
        " { d = DequantizeLinear(x, s, z) m = Transpose(d)"
        " y = QuantizeLinear<precision=10>(m, s, z) }",
        opset=23,
        backend=ORT,
        because="the precision of QuantizeLinear is not float32",
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_numbers_that_may_be_infinite_stay_numbers(dtype: str) -> None:
    text = (
        f"({dtype}[2,2] x) => ({dtype}[2,2] y) <float s = {{5e33}}, {dtype} z = {{0}}>"
        " { d = DequantizeLinear(x, s, z) m = Transpose<perm=[1,0]>(d)"
        " y = QuantizeLinear(m, s, z) }"
    )
    assert_rewrites(
        "fuse_qdq_into_move",
        text,
        f"({dtype}[2,2] x) => ({dtype}[2,2] y) {{ y = Transpose<perm=[1,0]>(x) }}",
        backend=ORT,
    )
    assert_unchanged(
        "fuse_qdq_into_move",
        text.replace("5e33", "1e37"),
        backend=ORT,
        because="a scale is so large that dequantised numbers may overflow",
    )
