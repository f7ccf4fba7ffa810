import math

import numpy as np

from tiered import optimize
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_erf_with_erfv2"


def test_erf_becomes_a_hyperbolic_tangent() -> None:
    assert_rewrites(
        PASS,
        "(float[3] x) => (float[3] y) { y = Erf(x) }",
        "(float[3] x) => (float[3] y) <float a = {1.1283791671}, float b = {0.1009109},"
        " float lo = {-4}, float hi = {4}> { c = Clip(x, lo, hi) q = Mul(c, c) t = Mul(q, b)"
        " k = Add(t, a) u = Mul(c, k) y = Tanh(u) }",
        runtime="none",
    )


def test_its_error_is_as_documented() -> None:
    model = optimize(parse("(float[N] x) => (float[N] y) { y = Erf(x) }"), passes=PASS)
    x = np.linspace(-6, 6, 100_001, dtype=np.float32)
    y = run(model, {"x": x})["y"]
    exact = np.array([math.erf(number) for number in x])
    assert 1e-4 < np.abs(y - exact).max() <= 3.7e-4
    ends = run(model, {"x": np.array([np.nan, np.inf, -np.inf, 0], np.float32)})["y"]
    np.testing.assert_array_equal(ends, np.array([np.nan, 1, -1, 0], np.float32))


def test_narrow_floats_lose_more() -> None:
    assert_unchanged(
        PASS,
        "(float16[3] x) => (float16[3] y) { y = Erf(x) }",
        because="x may be neither float nor double",
    )
