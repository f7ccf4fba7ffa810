import numpy as np
import pytest

from tests.analysis.legalization.compared import assert_equal, floats
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_dequantize"


def test_it_is_converted_and_scaled() -> None:
    head = "(int8[N] x, int8 z) => (float[N] y)"
    assert_rewrites(
        PASS,
        f"{head} <float s = {{0.5}}> {{ y = DequantizeLinear(x, s, z) }}",
        f"{head} <float s = {{0.5}}> {{ c = Cast<to=1>(x) o = Cast<to=1>(z) d = Sub(c, o) "
        "y = Mul(d, s) }",
    )


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scales_along_an_axis(dtype: str, axis: int) -> None:
    numpy = np.dtype(dtype)
    limits = np.iinfo(numpy)
    random = np.random.default_rng(0)
    feeds = {
        "x": random.integers(limits.min, limits.max + 1, (3, 3, 3)).astype(numpy),
        "s": floats(3),
        "z": np.array([limits.min, 1, limits.max], numpy),
    }
    text = (
        f"({dtype}[3,3,3] x, float[3] s, {dtype}[3] z) => (float[3,3,3] y) "
        f"{{ y = DequantizeLinear<axis={axis}>(x, s, z) }}"
    )
    assert_equal(PASS, text, feeds)


def test_a_bias() -> None:
    text = "(int32[4] x) => (float[4] y) <float s = {0.1}> { y = DequantizeLinear(x, s) }"
    assert_equal(PASS, text, {"x": np.array([2**31 - 1, -(2**31), 2**24 + 1, 7], np.int32)})


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(int4[4] x, float s) => (float[4] y) { y = DequantizeLinear(x, s) }",
            "x is not an integer of 8, 16 or 32 bits",
        ),
        (
            "(int8[4] x, float16 s) => (float16[4] y) { y = DequantizeLinear(x, s) }",
            "the scale is not float",
        ),
        (
            "(int8[4,4] x, float[2,4] s) => (float[4,4] y) "
            "{ y = DequantizeLinear<axis=0,block_size=2>(x, s) }",
            "the scales are those of blocks",
        ),
        (
            "(int32[4] x, int32 z) => (float[4] y) <float s = {1}> "
            "{ y = DequantizeLinear(x, s, z) }",
            "int32 has a zero point",
        ),
        (
            "(int8[1] x, int64[R] shape, float s) => (float[1] y) "
            "{ a = Reshape(x, shape) y = DequantizeLinear(a, s) }",
            "the rank of x or scale is not known",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_the_operator_of_onnxruntime_with_16_bits() -> None:
    assert_rewrites(
        PASS,
        "(int16[N] x) => (float[N] y) <float s = {0.5}, int16 z = {300}>"
        " { y = com.microsoft.DequantizeLinear(x, s, z) }",
        "(int16[N] x) => (float[N] y) <float s = {0.5}, float z = {300}>"
        " { a = Cast<to=1>(x) b = Cast<to=1>(z0) c = Sub(a, b) y = Mul(c, s) }".replace(
            "float z = {300}", "int16 z0 = {300}"
        ),
        opset=17,
    )


def test_zero_points_of_zero_are_not_subtracted() -> None:
    assert_rewrites(
        PASS,
        "(int32[N] x) => (float[N] y) <float s = {0.5}, int32 z = {0}>"
        " { y = DequantizeLinear(x, s, z) }",
        "(int32[N] x) => (float[N] y) <float s = {0.5}> { c = Cast<to=1>(x)  y = Mul(c, s) }",
    )
