import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_quantized_constant"
HEAD = "(float[N,2] x) => (float[N,2] y)"


def test_a_weight_becomes_its_numbers() -> None:
    assert_rewrites(
        PASS,
        f"{HEAD} <int8[2] q = {{-128, 3}}, float s = {{0.5}}, int8 z = {{1}}> "
        "{ w = DequantizeLinear(q, s, z) y = Add(x, w) }",
        f"{HEAD} <float[2] w = {{-64.5, 1}}> {{ y = Add(x, w) }}",
    )


def test_scales_follow_their_axis() -> None:
    assert_rewrites(
        PASS,
        f"{HEAD} <uint8[1,2] q = {{255, 255}}, float[2] s = {{0.5, 2}}, uint8[2] z = {{0, 254}}> "
        "{ w = DequantizeLinear<axis=-1>(q, s, z) y = Add(x, w) }",
        f"{HEAD} <float[1,2] w = {{127.5, 2}}> {{ y = Add(x, w) }}",
    )


def test_a_bias_of_32_bits_is_rounded_first() -> None:
    assert_rewrites(
        PASS,
        f"{HEAD} <int32[2] q = {{16777217, -5}}, float[2] s = {{1, 2}}> "
        "{ w = DequantizeLinear<axis=0>(q, s) y = Add(x, w) }",
        f"{HEAD} <float[2] w = {{16777216, -10}}> {{ y = Add(x, w) }}",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float[N] x, int8 z) => (float[N] y) <int8 q = {1}, float s = {1}> "
            "{ w = DequantizeLinear(q, s, z) y = Add(x, w) }",
            "the zero point is not constant",
        ),
        (
            "(float16[N] x) => (float16[N] y) <int8 q = {1}, float16 s = {1}> "
            "{ w = DequantizeLinear(q, s) y = Add(x, w) }",
            "the scale is not float",
        ),
        (
            "(float[N] x) => (float[N] y) <int4[1] q = {1}, float s = {1}> "
            "{ w = DequantizeLinear(q, s) y = Add(x, w) }",
            "x is not an integer of 8, 16 or 32 bits",
        ),
        (
            "(float[2,2] x) => (float[2,2] y) <int8[2,2] q = {1,2,3,4}, float[1,2] s = {1,2}> "
            "{ w = DequantizeLinear<axis=0,block_size=2>(q, s) y = Add(x, w) }",
            "the scales are those of blocks",
        ),
        (
            "(float[N] x) => (float[N] y) <int32 q = {5}, float s = {1}, int32 z = {1}> "
            "{ w = DequantizeLinear(q, s, z) y = Add(x, w) }",
            "int32 has a zero point",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
