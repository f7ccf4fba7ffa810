import numpy as np

from tests.analysis.legalization.compared import assert_close, assert_equal
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_lpnormalization"


def test_it_is_divided_by_its_norm() -> None:
    head = "(float[N,3] x) => (float[N,3] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = LpNormalization<axis=0>(x) }}",
        f"{head} <int64[1] a = {{0}}, float z = {{0}}, float o = {{1}}> "
        "{ n = ReduceL2(x, a) e = Equal(n, z) d = Where(e, o, n) y = Div(x, d) }",
    )


def test_zeros_stay_zeros() -> None:
    text = "(float[N,3] x) => (float[N,3] y) { y = LpNormalization(x) }"
    assert_equal(PASS, text, {"x": np.zeros((2, 3), np.float32)})


def test_sums_of_magnitudes() -> None:
    text = "(float[N,3] x) => (float[N,3] y) { y = LpNormalization<p=1>(x) }"
    assert "ReduceL1" in assert_close(PASS, text, {"x": np.array([[1, -2, 4]], np.float32)})


def test_half_floats_stay() -> None:
    text = "(float16[N,3] x) => (float16[N,3] y) { y = LpNormalization(x) }"
    assert_unchanged(PASS, text, because="x is not known to be float or double", opset=22)
