import numpy as np
import pytest

from tests.analysis.legalization.compared import run_both
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fast_exp"
LEAST_NORMAL = np.finfo(np.float32).tiny
TEXT = "(float[N] x) => (float[N] y) { y = Exp(x) }"
POWERS = ",".join(str(number) for number in np.ldexp(0.5, np.arange(-150, 129)).astype(np.float32))
CONSTANTS = f"""float lo = {{-104}}, float hi = {{89}}, float log2e = {{1.4426950408889634}},
    float half = {{0.5}}, float ln2 = {{0.6931471805599453}}, float c5 = {{1.9875691500e-4}},
    float c4 = {{1.3981999507e-3}}, float c3 = {{8.3334519073e-3}}, float c2 = {{4.1665795894e-2}},
    float c1 = {{1.6666665459e-1}}, float c0 = {{5.0000001201e-1}}, float one = {{1}},
    float zero = {{0}}, float first = {{150}}, float[279] powers = {{{POWERS}}}"""


def exponential(x: str, y: str) -> str:
    """Return the nodes of y = Exp(x)."""
    return f"""c = Clip({x}, lo, hi)  l = Mul(c, log2e)  h = Add(l, half)  n = Floor(h)
        nl = Mul(n, ln2)  r = Sub(c, nl)
        p5 = Mul(r, c5)  p4 = Add(p5, c4)  q4 = Mul(r, p4)  p3 = Add(q4, c3)  q3 = Mul(r, p3)
        p2 = Add(q3, c2)  q2 = Mul(r, p2)  p1 = Add(q2, c1)  q1 = Mul(r, p1)  p0 = Add(q1, c0)
        rr = Mul(r, r)  curve = Mul(p0, rr)  sum = Add(curve, r)  fraction = Add(sum, one)
        nan = IsNaN(n)  known = Where(nan, zero, n)  shifted = Add(known, first)
        index = Cast<to=6>(shifted)  power = Gather(powers, index)
        twice = Add(fraction, fraction)  {y} = Mul(twice, power)"""


def test_it_is_a_power_of_two_and_a_polynomial() -> None:
    assert_rewrites(
        PASS,
        "(float[3] x) => (float[3] y) { y = Exp(x) }",
        f"(float[3] x) => (float[3] y) <{CONSTANTS}> {{ {exponential('x', 'y')} }}",
        runtime="none",
    )


@pytest.mark.parametrize("opset", [9, 13, 21])
def test_its_error_is_as_documented(opset: int) -> None:
    x = np.linspace(-110, 88.7, 400_001, dtype=np.float32)
    _, after, operators = run_both(PASS, TEXT, {"x": x}, opset=opset)
    assert "Exp" not in operators
    assert len(operators) == 27
    exact, y = np.exp(x.astype(np.float64)), after["y"]
    is_normal = exact > LEAST_NORMAL
    assert 3e-6 < np.abs(y / exact - 1)[is_normal].max() < 4.2e-6
    assert np.abs(y - exact)[~is_normal].max() < 1.5e-45 + 4.2e-6 * LEAST_NORMAL
    near = np.abs(x) < 1
    assert np.abs(y / exact - 1)[near].max() < 1e-7


def test_limits_are_those_of_the_kernel() -> None:
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 88.8, 3e38, -104.5, -3e38]
    before, after, _ = run_both(PASS, TEXT, {"x": np.array(special, np.float32)})
    np.testing.assert_array_equal(after["y"], before["y"])


def test_one_in_a_body_is_rewritten() -> None:
    text = (
        "(bool c, float[2] x) => (float[2] y) { y = If(c) <then_branch = t () => (float[2] a)"
        " { a = Exp(x) }, else_branch = e () => (float[2] b) { b = Neg(x) }> }"
    )
    x = np.array([1, -2], np.float32)
    before, after, _ = run_both(PASS, text, {"c": np.array(True), "x": x})
    np.testing.assert_allclose(after["y"], before["y"], rtol=4.2e-6)


@pytest.mark.parametrize("dtype", ["float16", "double"])
def test_other_dtypes_stay(dtype: str) -> None:
    text = f"({dtype}[3] x) => ({dtype}[3] y) {{ y = Exp(x) }}"
    assert_unchanged(PASS, text, because="the coefficients are for float")


def test_old_opsets_stay() -> None:
    text = "(float[3] x) => (float[3] y) { y = Exp(x) }"
    assert_unchanged(PASS, text, because="the opset has no Where", opset=8)
