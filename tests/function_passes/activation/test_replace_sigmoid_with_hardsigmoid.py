import numpy as np

from tests.analysis.legalization.compared import run_both
from tiered.testing import assert_rewrites

PASS = "replace_sigmoid_with_hardsigmoid"


def test_a_sigmoid_is_piecewise_linear() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y) { y = Sigmoid(x) }",
        "(float[N] x) => (float[N] y) { y = HardSigmoid<alpha=0.16666667, beta=0.5>(x) }",
        runtime="none",
    )


def test_it_is_off_by_seven_hundredths_at_most() -> None:
    x = np.concatenate([np.linspace(-8, 8, 2001), [np.inf, -np.inf, np.nan]]).astype(np.float32)
    text = "(float[N] x) => (float[N] y) { y = Sigmoid(x) }"
    before, after, _ = run_both(PASS, text, {"x": x})
    assert 0.069 < np.nanmax(np.abs(before["y"] - after["y"])) < 0.0695
    np.testing.assert_array_equal(after["y"][-3:], before["y"][-3:])
