import pytest

from tests.analysis.legalization.compared import assert_close, floats
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_rmsnorm"


def test_it_is_the_root_of_the_mean_square() -> None:
    head = "(float[N,3] x, float[3] s) => (float[N,3] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = RMSNormalization<epsilon=1.0>(x, s) }}",
        f"{head} <int64[1] a = {{1}}, float e = {{1}}> {{ q = Mul(x, x) "
        "v = ReduceMean(q, a) w = Add(v, e) r = Sqrt(w) n = Div(x, r) y = Mul(n, s) }",
        opset=23,
    )


def test_several_axes() -> None:
    text = (
        "(float[N,3,4] x, float[3,4] s) => (float[N,3,4] y) { y = RMSNormalization<axis=1>(x, s) }"
    )
    assert_close(PASS, text, {"x": floats(2, 3, 4), "s": floats(3, 4)}, opset=23)


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(float16[2,3] x, float[3] s) => (float[2,3] y) { y = RMSNormalization(x, s) }",
            "scale and x differ in dtype",
        ),
        (
            '<ir_version: 11, opset_import: ["" : 23, "own" : 1]> g (float[2,3] x, float[3] s) => '
            "(float[2,3] y) { a = own.A(x) y = RMSNormalization(a, s) }",
            "the dtype or the rank of x is not known",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because, opset=23)
