from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.analysis.legalization.compared import assert_equal, floats, run_both
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_qdq_pair"
PAIR = "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)"
SPECIAL = np.array(
    [np.nan, np.inf, -np.inf, -0.0, 1e30, -1e30, 1e-40, -1e-40, 0.5, 1.5, 2.5, -0.5], np.float32
)


def test_numbers_are_rounded_in_float() -> None:
    head = "(float[N] x) => (float[N] y)"
    assert_rewrites(
        PASS,
        f"{head} <float s = {{0.5}}, int8 z = {{0}}> {{ {PAIR} }}",
        f"{head} <float s = {{0.5}}, float l = {{-128}}, float m = {{127}}, float o = {{0}}> "
        "{ d = Div(x, s) r = Round(d) g = Greater(r, l) w = Where(g, r, l) c = Min(w, m) "
        "a = Add(c, o) y = Mul(a, s) }",
    )


@pytest.mark.parametrize(
    ("dtype", "zero"), [("int8", -5), ("uint8", 0), ("uint8", 255), ("int16", -300)]
)
@pytest.mark.parametrize("scale", [1, 0.37, 1e-3])
def test_every_bit_of_ties_limits_and_special_values(dtype: str, zero: int, scale: float) -> None:
    x = np.concatenate([SPECIAL, floats(500) * 40])
    text = (
        f"(float[N] x) => (float[N] y) <float s = {{{scale}}}, {dtype} z = {{{zero}}}> {{ {PAIR} }}"
    )
    before, after, operators = run_both(PASS, text, {"x": x})
    assert "QuantizeLinear" not in operators
    assert before["y"].tobytes() == after["y"].tobytes()


def test_parameters_along_an_axis() -> None:
    text = (
        "(float[2,3] x, float[3] s, uint8[3] z) => (float[2,3] y) "
        "{ q = QuantizeLinear<axis=1>(x, s, z) y = DequantizeLinear<axis=1>(q, s, z) }"
    )
    feeds: dict[str, NDArray[Any]] = {
        "x": floats(2, 3) * 100,
        "s": np.array([0.1, 1, 10], np.float32),
        "z": np.array([1, 0, 255], np.uint8),
    }
    assert_equal(PASS, text, feeds)
    assert_unchanged(PASS, text, because="the zero points differ", numerics="approximate")


def test_the_clip_of_the_option_differs_for_nan_alone() -> None:
    """The integer of NaN is the least one; a Clip returns NaN."""
    text = f"(float[N] x) => (float[N] y) <float s = {{0.37}}, int8 z = {{-5}}> {{ {PAIR} }}"
    x = np.concatenate([SPECIAL, floats(500) * 40])
    before, after, operators = run_both(PASS, text, {"x": x}, numerics="approximate")
    assert "Clip" in operators
    assert np.isnan(after["y"][0])
    assert before["y"][0] == np.float32(0.37) * -123
    assert before["y"][1:].tobytes() == after["y"][1:].tobytes()


KNOWN = (
    "(int32[N] i) => (float[N] y) <float s = {{{scale}}}, {dtype} z = {{{zero}}}, float k = {{{k}}}> "
    "{{ f = Cast<to=1>(i) x = Mul(f, k) "
    "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }}"
)


@pytest.mark.parametrize(("dtype", "zero"), [("int8", -5), ("uint8", 255), ("uint16", 9)])
@pytest.mark.parametrize("scale", [1, 0.37, 1e-3])
def test_a_clip_clamps_what_ranges_prove_to_be_numbers(dtype: str, zero: int, scale: float) -> None:
    text = KNOWN.format(dtype=dtype, zero=zero, scale=scale, k=0.5)
    numbers = np.array([0, -1, 1, 3, 1 << 30, -(1 << 30), *range(-300, 300, 7)], np.int32)
    for comparisons in (True, False):
        before, after, operators = run_both(PASS, text, {"i": numbers}, comparisons=comparisons)
        assert "Clip" in operators
        assert not {"Where", "Greater", "QuantizeLinear"} & set(operators)
        assert before["y"].tobytes() == after["y"].tobytes()


def test_results_of_integers_stay_numbers() -> None:
    """The products of a Conv of bounded data are bounded; so are the sums of several of them."""
    text = (
        "(int8[1,2,4,4] i) => (float[1,2,4,4] y) <float s = {0.1}, uint8 z = {3}, "
        "float[2,2,1,1] w = {1,-2,3,4}> { d = DequantizeLinear(i, s) c = Conv(d, w) "
        "r = Relu(c) p = QuantizeLinear(r, s, z) e = DequantizeLinear(p, s, z) a = Add(e, c) "
        "q = QuantizeLinear(a, s, z) y = DequantizeLinear(q, s, z) }"
    )
    feeds = {"i": np.arange(-16, 16, dtype=np.int8).reshape(1, 2, 4, 4)}
    before, after, operators = run_both(PASS, text, feeds)
    assert (operators.count("Clip"), operators.count("Where")) == (2, 0)
    assert before["y"].tobytes() == after["y"].tobytes()


def test_zero_points_along_an_axis_are_compared_with() -> None:
    text = (
        "(int32[2,3] i) => (float[2,3] y) <float[3] s = {0.1,1,10}, uint8[3] z = {1,0,255}> "
        "{ x = Cast<to=1>(i) q = QuantizeLinear<axis=1>(x, s, z) "
        "y = DequantizeLinear<axis=1>(q, s, z) }"
    )
    feeds = {"i": np.array([[5, -5, 500], [300, 256, -9000]], np.int32)}
    assert "Where" in assert_equal(PASS, text, feeds)


@pytest.mark.parametrize(
    "text",
    [
        f"(float[4] x) => (float[4] y) <float s = {{1}}, int8 z = {{0}}> {{ {PAIR} }}",
        # 0 / 0 is NaN, and so is Inf - Inf.
        KNOWN.format(dtype="int8", zero=0, scale=0, k=1),
        f"(int32[4] i, float s) => (float[4] y) <int8 z = {{0}}> {{ x = Cast<to=1>(i) {PAIR} }}",
        "(int32[4] i) => (float[4] y) <float s = {1}, int8 z = {0}, float k = {3e38}> "
        f"{{ f = Cast<to=1>(i) g = Mul(f, k) h = Neg(g) x = Add(g, h) {PAIR} }}",
    ],
    ids=["input", "scale of 0", "unknown scale", "difference of Inf"],
)
def test_without_comparisons_data_that_may_be_nan_stays(text: str) -> None:
    assert_unchanged(PASS, text, because="the data may be NaN", comparisons=False)


def test_integers_with_other_users_stay_for_them() -> None:
    text = f"(float[4] x) => (float[4] y, int8[4] q) <float s = {{1}}, int8 z = {{0}}> {{ {PAIR} }}"
    assert "QuantizeLinear" in assert_equal(PASS, text, {"x": floats(4)})


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            f"(float[4] x) => (float[4] y) <float s = {{1}}, int4 z = {{0}}> {{ {PAIR} }}",
            "the quantised dtype is not 8 or 16 bits",
        ),
        (
            f"(float16[4] x) => (float16[4] y) <float16 s = {{1}}, int8 z = {{0}}> {{ {PAIR} }}",
            "x or scale is not float",
        ),
        (
            "(float[4,4] x, float[2,4] s) => (float[4,4] y) "
            "{ q = QuantizeLinear<axis=0,block_size=2>(x, s) "
            "y = DequantizeLinear<axis=0,block_size=2>(q, s) }",
            "the scales are those of blocks",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_other_parameters_of_the_dequantize_stay() -> None:
    assert_unchanged(
        PASS,
        "(float[4] x, float t) => (float[4] y) <float s = {1}, int8 z = {0}> "
        "{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, t, z) }",
    )
