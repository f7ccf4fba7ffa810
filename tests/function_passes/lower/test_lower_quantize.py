from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.analysis.legalization.compared import assert_equal, floats
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_quantize"


def test_it_is_rounded_and_clamped() -> None:
    head = "(float[N] x) => (int8[N] y)"
    assert_rewrites(
        PASS,
        f"{head} <float s = {{0.5}}, int8 z = {{0}}> {{ y = QuantizeLinear(x, s, z) }}",
        f"{head} <float s = {{0.5}}, float l = {{-128}}, float m = {{127}}> {{ q = Div(x, s) "
        "r = Round(q) g = Greater(r, l) w = Where(g, r, l) c = Min(w, m) y = Cast<to=3>(c) }",
    )


@pytest.mark.parametrize(
    ("dtype", "zero"),
    [("int8", -5), ("uint8", 7), ("uint8", 255), ("int16", -300), ("uint16", 60000)],
)
def test_every_bit_of_ties_limits_and_special_values(dtype: str, zero: int) -> None:
    special = [np.nan, np.inf, -np.inf, -0.0, 1e30, -1e30, 1e-40, 0.5, 1.5, 2.5, -0.5, -2.5]
    x = np.concatenate([np.array(special, np.float32), floats(500) * 40])
    for scale in (1, 0.37, 1e-3):
        text = (
            f"(float[N] x) => ({dtype}[N] y) <float s = {{{scale}}}, {dtype} z = {{{zero}}}> "
            "{ y = QuantizeLinear(x, s, z) }"
        )
        assert "QuantizeLinear" not in assert_equal(PASS, text, {"x": x})


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scales_along_an_axis(axis: int) -> None:
    text = (
        "(float[3,3,3] x, float[3] s, int8[3] z) => (int8[3,3,3] y) "
        f"{{ y = QuantizeLinear<axis={axis}>(x, s, z) }}"
    )
    feeds: dict[str, NDArray[Any]] = {
        "x": floats(3, 3, 3) * 100,
        "s": np.array([0.1, 1, 10], np.float32),
        "z": np.array([1, -128, 127], np.int8),
    }
    assert_equal(PASS, text, feeds)


def test_a_scalar_with_a_vector_of_one_scale() -> None:
    text = "(float x, float[1] s) => (uint8 y) { y = QuantizeLinear(x, s) }"
    feeds: dict[str, NDArray[Any]] = {
        "x": np.array(3.5, np.float32),
        "s": np.array([1], np.float32),
    }
    assert_equal(PASS, text, feeds)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float[4] x) => (int4[4] y) <float s = {1}, int4 z = {0}> "
            "{ y = QuantizeLinear(x, s, z) }",
            "the quantised dtype is not 8 or 16 bits",
        ),
        (
            "(float16[4] x) => (int8[4] y) <float16 s = {1}, int8 z = {0}> "
            "{ y = QuantizeLinear(x, s, z) }",
            "x or scale is not float",
        ),
        (
            "(float[4,4] x, float[2,4] s) => (uint8[4,4] y) "
            "{ y = QuantizeLinear<axis=0,block_size=2>(x, s) }",
            "the scales are those of blocks",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_the_quotient_may_be_of_another_dtype() -> None:
    text = "(float[4] x, float s) => (uint8[4] y) { y = QuantizeLinear<precision=10>(x, s) }"
    assert_unchanged(PASS, text, because="the quotient has another dtype", opset=23)


def test_the_rank_must_be_known() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> '
        "g (float[1] x, int64[R] shape, float s) => (uint8[1] y) "
        "{ a = Reshape(x, shape) y = QuantizeLinear(a, s) }"
    )
    assert_unchanged(PASS, text, because="the rank of x or scale is not known")


def test_the_operator_of_onnxruntime_with_16_bits() -> None:
    x = np.concatenate(
        [np.array([0.5, 1.5, -2.5, 1e30, -1e30, -0.0], np.float32), floats(94) * 1e4]
    )
    text = (
        '<ir_version: 8, opset_import: ["": 17, "com.microsoft": 1]> g '
        "(float[N] x) => (uint16[N] y) <float s = {0.37}, uint16 z = {300}> "
        "{ y = com.microsoft.QuantizeLinear(x, s, z) }"
    )
    assert "QuantizeLinear" not in assert_equal(PASS, text, {"x": x})
