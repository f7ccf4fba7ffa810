import pytest

from tests.analysis.legalization.compared import assert_close, floats
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_groupnorm"


def test_groups_are_normalised() -> None:
    head = "(float[N,4,3] x, float[4] s, float[4] b) => (float[N,4,3] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = GroupNormalization<epsilon=1.0, num_groups=2>(x, s, b) }}",
        f"{head} <int64[3] g = {{0,2,6}}, int64[1] a = {{2}}, float e = {{1}}, "
        "int64[3] o = {0,4,3}, int64[2] c = {-1,1}> { z = Reshape(x, g) "
        "m = ReduceMean(z, a) d = Sub(z, m) q = Mul(d, d) "
        "v = ReduceMean(q, a) w = Add(v, e) r = Sqrt(w) n = Div(d, r) "
        "u = Reshape(n, o) k = Reshape(s, c) t = Mul(u, k) h = Reshape(b, c) y = Add(t, h) }",
    )


def test_before_opset_21_a_group_has_one_scale() -> None:
    text = (
        "(float[N,4,2,3] x, float[2] s, float[2] b) => (float[N,4,2,3] y) "
        "{ y = GroupNormalization<num_groups=2>(x, s, b) }"
    )
    feeds = {"x": floats(2, 4, 2, 3), "s": floats(2), "b": floats(2, seed=1)}
    assert_close(PASS, text, feeds, opset=18)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float[N,4,L] x, float[4] s) => (float[N,4,L] y) "
            "{ y = GroupNormalization<num_groups=2>(x, s, s) }",
            "channels and image size are not known",
        ),
        (
            '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[1,4,4] x, float[4] s) => '
            "(float[1,4,4] y) { a = own.A(x) y = GroupNormalization<num_groups=2>(a, s, s) }",
            "the dtype of x is not known",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
