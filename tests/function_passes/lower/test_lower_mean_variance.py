import numpy as np

from tests.analysis.legalization.compared import assert_close, floats, run_both
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_mean_variance"


def test_it_is_centred_and_divided() -> None:
    head = "(float[N,3] x) => (float[N,3] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = MeanVarianceNormalization<axes=[0]>(x) }}",
        f"{head} <int64[1] a = {{0}}, float e = {{1e-9}}> {{ m = ReduceMean(x, a) "
        "d = Sub(x, m) q = Mul(d, d) v = ReduceMean(q, a) r = Sqrt(v) s = Add(r, e) "
        "y = Div(d, s) }",
    )


def test_images() -> None:
    text = "(float[2,3,4,5] x) => (float[2,3,4,5] y) { y = MeanVarianceNormalization(x) }"
    assert_close(PASS, text, {"x": floats(2, 3, 4, 5)})


def test_a_large_mean_does_not_cancel() -> None:
    text = "(float[64] x) => (float[64] y) { y = MeanVarianceNormalization<axes=[0]>(x) }"
    x = floats(64) + np.float32(3e4)
    _, after, _ = run_both(PASS, text, {"x": x})
    wide = x.astype(np.float64)
    np.testing.assert_allclose(after["y"], (wide - wide.mean()) / wide.std(), atol=3e-3)


def test_half_floats_stay() -> None:
    text = "(float16[N,3] x) => (float16[N,3] y) { y = MeanVarianceNormalization<axes=[0]>(x) }"
    assert_unchanged(PASS, text, because="x is not known to be float or double")
