"""Ranges of QONNX's quantisers hold all numbers that numpy computes, and little more."""

import math

import numpy as np
import pytest

from tests import qonnx
from tests.qonnx import floats
from tests.small import named, parsed
from tiered import Interval, ranges

STOCK = """float s = {0.5}, float z = {0}, float b = {4}, float b1 = {1}, float b2 = {2},
    float b6 = {6}, float part = {2.5}, float wide = {65}, float b64 = {64}, float low = {-2.1},
    float high = {3.25}, float two = {2}, float near = {0.575}, float far = {40}, float minus = {-2},
    float[2] bits = {2,3}, float[2,3] t = {1,2,3,4,5,6}, float[3] flat = {1,2,3}"""


def of(call: str, inputs: str = "float[5] x, float u") -> Interval:
    """Return the interval of a call; c is x between -2.1 and 3.25."""
    model = parsed(
        f"""<ir_version: 8, opset_import: ["": 17, "qonnx.custom_op.general": 1, "onnx.brevitas": 1]>
        g ({inputs}) => (float[5] y) <{STOCK}> {{ c = Clip(x, low, high) y = {call} }}"""
    )
    return model.analysis(ranges)[named(model, "y")]


def q(call: str, inputs: str = "float[5] x, float u") -> Interval:
    return of(f"qonnx.custom_op.general.{call}", inputs)


def assert_near(found: Interval, low: float, high: float) -> None:
    assert found.low <= low
    assert found.high >= high
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-3, abs=1e-3)


@pytest.mark.parametrize(
    ("call", "low", "high"),
    [
        ("Quant(x, s, z, b)", -3.5, 3.5),  # narrow: -7 to 7
        ("Quant<narrow=0>(x, s, z, b)", -4, 3.5),
        ("Quant<signed=0>(x, s, z, b)", 0, 7),  # narrow: 0 to 14
        ("Quant<signed=0, narrow=0>(x, s, z, b)", 0, 7.5),
        ("Quant(c, s, z, b6)", -2.5, 3.5),  # -4.2 to 6.5, rounded in any mode
        ("Quant(c, s, far, b6)", -4.5, -4.5),  # 35.8 to 46.5, clipped to 31, less 40
        ("Quant<narrow=0>(x, s, z, b1)", -0.5, 0.5),
        ("Quant<signed=0, narrow=0>(x, s, z, b1)", 0, 0.5),
        ("Quant(x, minus, z, b2)", -2, 2),
        ("BipolarQuant(x, s)", -0.5, 0.5),
        ("BipolarQuant(x, minus)", -2, 2),
        ("Trunc(c, s, z, b, b2)", -1, 1),  # integers -5 to 7, over 4, in any mode
        ("Trunc(c, s, z, b2, b)", -10, 14),  # bits are added
        ("Trunc(x, s, z, b, two, z, b2)", -4, 2),
        ("Trunc<narrow=1>(x, s, z, b, two, z, b2)", -2, 2),
        ("Trunc<signed=0>(x, s, z, b, two, z, b2)", 0, 6),
        # The zero point 40 over a step of 4: -2 to 1 less 10, times 2.
        ("Trunc(x, s, far, b, two, z, b2)", -24, -18),
        # The step is the nearest power of two, 1, though the scales differ by 1.15.
        ("Trunc(x, s, far, b, near, z, b2)", -42 * 0.575, -39 * 0.575),
        ("MultiThreshold(x, t)", 0, 3),
        ("MultiThreshold<out_scale=2.0, out_bias=-1.0>(x, t)", -1, 5),
        ("MultiThreshold<out_scale=-2.0>(x, t)", -6, 0),
        ("MultiThreshold(x, flat)", 0, 3),
    ],
)
def test_the_bounds_of_a_quantiser(call: str, low: float, high: float) -> None:
    assert_near(q(call), low, high)


@pytest.mark.parametrize(
    "call",
    [
        "Quant(x, s, z, u)", "Quant(x, s, z, part)", "Quant(x, s, z, wide)", "Quant(x, s, z, z)",
        "Quant(x, s, z, bits)", "Quant(x, s, z)", "Trunc(x, s, z, u, b)", "Trunc(x, s, z, b, u)",
        "Trunc(x, s, z, b, two, z, u)", "Trunc(x, s, z, b, two, b)", "Quant(x, u, z, b)",
        "BipolarQuant(x, u)", "BipolarQuant(x, s, z)", "Trunc(x, u, far, b, two, z, b2)",
        "Trunc(x, minus, far, b, two, z, b2)", "Quant(x, s, , b)", "BipolarQuant(, s)",
    ],
)  # fmt: skip
def test_what_is_not_known_may_be_any_number(call: str) -> None:
    found = q(call)
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_other_numbers_than_float32_may_be_any_number() -> None:
    found = q("BipolarQuant(x, v)", "double[5] x, double v")
    assert (found.low, found.high) == (-math.inf, math.inf)


def test_thresholds_of_unknown_number_are_counted() -> None:
    for call, inputs in (
        ("MultiThreshold(x, u)", "float[5] x, float[] u"),
        ("MultiThreshold(x, u)", "float[5] x, float u"),
        ("MultiThreshold(x, u)", "float[5] x, float[1,N] u"),
        ("MultiThreshold(x)", "float[5] x"),  # no runtime takes it
    ):
        found = q(call, inputs)
        assert found.low == pytest.approx(0, abs=1e-4)
        assert 2**31 - 1 <= found.high < 2**32


def test_up_to_64_bits_are_known() -> None:
    assert_near(q("Quant<signed=0, narrow=0>(c, s, z, b64)"), 0, 3.5)


def test_nan_stays_where_the_operator_keeps_it() -> None:
    assert q("Quant(x, s, z, b)").may_be_nan
    assert not q("Quant(x, s, z, b1)").may_be_nan  # its sign is negative
    assert not q("BipolarQuant(x, s)").may_be_nan
    assert not q("MultiThreshold(x, t)").may_be_nan


def test_the_older_domain_has_the_same_operators() -> None:
    assert_near(of("onnx.brevitas.Quant(x, s, z, b)"), -3.5, 3.5)


@pytest.mark.parametrize("out_scale", [0.575, 0.44, 1.0, 8.0])
def test_all_numbers_of_a_trunc_with_two_scales_are_inside(out_scale: float) -> None:
    x = np.linspace(-40, 40, 201, dtype=np.float32)
    made = qonnx.trunc_by_scale(x, floats(0.5), np.float32(40), floats(out_scale), 2)
    model = parsed(
        f"""<ir_version: 8, opset_import: ["": 17, "qonnx.custom_op.general": 1]>
        g (float[5] x) => (float[5] y) <{STOCK}, float o = {{{out_scale}}}> {{
        y = qonnx.custom_op.general.Trunc(x, s, far, b, o, z, b2) }}"""
    )
    assert model.analysis(ranges)[named(model, "y")].holds(made)
