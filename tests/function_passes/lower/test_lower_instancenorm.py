import numpy as np

from tests.analysis.legalization.compared import assert_close, floats
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_instancenorm"


def test_each_channel_is_normalised() -> None:
    head = "(float[N,2,L] x, float[2] s, float[2] b) => (float[N,2,L] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = InstanceNormalization<epsilon=1.0>(x, s, b) }}",
        f"{head} <int64[1] a = {{2}}, float e = {{1}}, int64[2] c = {{-1,1}}> "
        "{ m = ReduceMean(x, a) d = Sub(x, m) q = Mul(d, d) "
        "v = ReduceMean(q, a) w = Add(v, e) r = Sqrt(w) n = Div(d, r) "
        "k = Reshape(s, c) t = Mul(n, k) h = Reshape(b, c) y = Add(t, h) }",
    )


def test_an_image_of_half_floats() -> None:
    text = (
        "(float16[2,3,H,W] x, float16[3] s, float16[3] b) => (float16[2,3,H,W] y) "
        "{ y = InstanceNormalization(x, s, b) }"
    )
    feeds = {"x": floats(2, 3, 4, 5), "s": floats(3), "b": floats(3)}
    half = {name: array.astype(np.float16) for name, array in feeds.items()}
    assert_close(PASS, text, half)


def test_the_rank_must_be_known() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[1,3,4] x, float[3] s) => '
        "(float[1,3,4] y) { a = own.A(x) y = InstanceNormalization(a, s, s) }"
    )
    assert_unchanged(PASS, text, because="the dtype or the rank of x is not known")
