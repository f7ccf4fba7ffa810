import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_q_dq_pair"


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
def test_integers_come_back_unchanged(dtype: str) -> None:
    zero = f"{dtype} z = {{3}}"
    assert_rewrites(
        PASS,
        f"({dtype}[N] x) => ({dtype}[N] y, float[N] w) <float s = {{0.1}}, {zero}>"
        " { h = DequantizeLinear(x, s, z)  y = QuantizeLinear(h, s, z)  w = DequantizeLinear(y, s, z) }",
        f"({dtype}[N] x) => ({dtype}[N] y, float[N] w) <float s = {{0.1}}, {zero}>"
        " { y = Identity(x)  w = DequantizeLinear(x, s, z) }",
    )


def test_two_pairs_in_a_row_are_one() -> None:
    assert_rewrites(
        PASS,
        "(float[2,N] x) => (float[2,N] y) <float[2] s = {0.5,-2}, int8[2] z = {0,3}, float[2] t = {0.5,-2}>"
        " { a = QuantizeLinear<axis=0>(x, s, z)  b = DequantizeLinear<axis=0>(a, s, z)"
        " c = QuantizeLinear<axis=0>(b, t, z)  y = DequantizeLinear<axis=0>(c, s, z) }",
        "(float[2,N] x) => (float[2,N] y) <float[2] s = {0.5,-2}, int8[2] z = {0,3}>"
        " { a = QuantizeLinear<axis=0>(x, s, z)  y = DequantizeLinear<axis=0>(a, s, z) }",
    )


def test_an_absent_zero_point_is_zero() -> None:
    assert_rewrites(
        PASS,
        "(uint8[N] x) => (float[N] y) <float s = {3}, uint8 z = {0}>"
        " { a = DequantizeLinear(x, s)  b = QuantizeLinear(a, s, z)  y = DequantizeLinear(b, s) }",
        "(uint8[N] x) => (float[N] y) <float s = {3}> { y = DequantizeLinear(x, s) }",
        opset=10,
    )


def test_scales_that_differ_requantize() -> None:
    for constants in ("float t = {0.2}, uint8 w = {3}", "float t = {0.1}, uint8 w = {4}"):
        assert_unchanged(
            PASS,
            f"(uint8[N] x) => (uint8[N] y) <float s = {{0.1}}, uint8 z = {{3}}, {constants}>"
            " { h = DequantizeLinear(x, s, z)  y = QuantizeLinear(h, t, w) }",
            because="the scales or zero points may differ",
        )


def test_another_dtype_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(uint8[N] x) => (int8[N] y) <float s = {0.1}, int8 z = {0}>"
        " { h = DequantizeLinear(x, s)  y = QuantizeLinear(h, s, z) }",
        because="integers are neither 8 nor 16 bits",
    )
    assert_unchanged(
        PASS,
        "(int4[N] x) => (int4[N] y) <float s = {0.1}>"
        " { h = DequantizeLinear(x, s)  y = QuantizeLinear<output_dtype=22>(h, s) }",
        because="integers are neither 8 nor 16 bits",
    )
    assert_unchanged(
        PASS,
        "(float8e4m3fn[N] x) => (float8e4m3fn[N] y) <float s = {0.1}>"
        " { h = DequantizeLinear(x, s)  y = QuantizeLinear<output_dtype=17>(h, s) }",
        because="integers are neither 8 nor 16 bits",
    )


def test_scales_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(uint8[N] x, float s) => (uint8[N] y) { h = DequantizeLinear(x, s)  y = QuantizeLinear(h, s) }",
        because="a scale is not a constant",
    )


def test_a_half_scale_rounds_too_coarsely() -> None:
    assert_unchanged(
        PASS,
        "(uint8[N] x) => (uint8[N] y) <float16 s = {11878}>"
        " { h = DequantizeLinear(x, s)  y = QuantizeLinear(h, s) }",
        because="the scale is not float32",
    )


def test_a_scale_out_of_range_is_left_alone() -> None:
    for scale in ("0", "1e36"):
        assert_unchanged(
            PASS,
            f"(uint8[N] x) => (uint8[N] y) <float s = {{{scale}}}>"
            " { h = DequantizeLinear(x, s)  y = QuantizeLinear(h, s) }",
            because="a scale is zero, NaN or too large",
        )


def test_other_axes_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(uint8[2,2] x) => (uint8[2,2] y) <float[2] s = {1,2}>"
        " { h = DequantizeLinear<axis=0>(x, s)  y = QuantizeLinear<axis=1>(h, s) }",
        because="the axes differ",
    )


def test_operators_of_onnxruntime_with_16_bits() -> None:
    q, d = "com.microsoft.QuantizeLinear", "com.microsoft.DequantizeLinear"
    header = "(uint16[2,N] x) => (uint16[2,N] y, float[2,N] w)"
    for axis, s, z in (("", "float s = {0.1}", "uint16 z = {3}"), (
        "<axis=0>", "float[2] s = {0.1,2}", "uint16[2] z = {3,0}"
    )):  # fmt: skip
        assert_rewrites(
            PASS,
            f"{header} <{s}, {z}> {{ h = {d}{axis}(x, s, z) y = {q}{axis}(h, s, z)"
            f" w = {d}{axis}(y, s, z) }}",
            f"{header} <{s}, {z}> {{ y = Identity(x) w = {d}{axis}(x, s, z) }}",
            opset=17,
        )


@pytest.mark.parametrize(("scale", "zero"), [("s", "one"), ("t", "z"), ("t", "one")])
def test_a_scale_or_zero_point_of_another_rank_stays(scale: str, zero: str) -> None:
    assert_unchanged(
        PASS,
        "(uint8[4] q) => (uint8[4] y)"
        " <float s = {0.5}, float[1] t = {0.5}, uint8 z = {3}, uint8[1] one = {3}>"
        f" {{ d = DequantizeLinear(q, {scale}, {zero})  y = QuantizeLinear(d, s, z) }}",
        because="the scales or zero points may differ",
    )
