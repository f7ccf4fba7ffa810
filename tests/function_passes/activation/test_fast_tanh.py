import numpy as np
import pytest

from tests.analysis.legalization.compared import run_both
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fast_tanh"
TEXT = "(float[N] x) => (float[N] y) { y = Tanh(x) }"


def test_it_is_a_quotient_of_polynomials() -> None:
    assert_rewrites(
        PASS,
        "(float[3] x) => (float[3] y) { y = Tanh(x) }",
        """(float[3] x) => (float[3] y)
        <float lo = {-9}, float hi = {9}, float a6 = {-2.76076847742355e-16},
        float a5 = {2.00018790482477e-13}, float a4 = {-8.60467152213735e-11},
        float a3 = {5.12229709037114e-08}, float a2 = {1.48572235717979e-05},
        float a1 = {6.37261928875436e-04}, float a0 = {4.89352455891786e-03},
        float b3 = {1.19825839466702e-06}, float b2 = {1.18534705686654e-04},
        float b1 = {2.26843463243900e-03}, float b0 = {4.89352518554385e-03},
        float least = {-1}, float most = {1}> {
            c = Clip(x, lo, hi)  s = Mul(c, c)
            p6 = Mul(s, a6)  p5 = Add(p6, a5)  q5 = Mul(s, p5)  p4 = Add(q5, a4)
            q4 = Mul(s, p4)  p3 = Add(q4, a3)  q3 = Mul(s, p3)  p2 = Add(q3, a2)
            q2 = Mul(s, p2)  p1 = Add(q2, a1)  q1 = Mul(s, p1)  p0 = Add(q1, a0)
            above = Mul(c, p0)
            d3 = Mul(s, b3)  d2 = Add(d3, b2)  e2 = Mul(s, d2)  d1 = Add(e2, b1)
            e1 = Mul(s, d1)  d0 = Add(e1, b0)
            quotient = Div(above, d0)  y = Clip(quotient, least, most)
        }""",
        runtime="none",
    )


@pytest.mark.parametrize("opset", [8, 13, 21])
def test_its_error_is_as_documented(opset: int) -> None:
    x = np.linspace(-12, 12, 400_001, dtype=np.float32)
    _, after, operators = run_both(PASS, TEXT, {"x": x}, opset=opset)
    assert "Tanh" not in operators
    assert len(operators) == 23
    exact, y = np.tanh(x.astype(np.float64)), after["y"]
    assert 2e-7 < np.abs(y - exact).max() < 4e-7
    assert np.abs(y).max() == 1


def test_limits_are_those_of_the_kernel() -> None:
    special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38], np.float32)
    before, after, _ = run_both(PASS, TEXT, {"x": special})
    np.testing.assert_array_equal(after["y"], before["y"])
    np.testing.assert_array_equal(np.signbit(after["y"][1:]), np.signbit(before["y"][1:]))


@pytest.mark.parametrize("dtype", ["float16", "double"])
def test_other_dtypes_stay(dtype: str) -> None:
    text = f"({dtype}[3] x) => ({dtype}[3] y) {{ y = Tanh(x) }}"
    assert_unchanged(PASS, text, because="the coefficients are those of float")
