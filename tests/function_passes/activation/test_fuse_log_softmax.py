import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_log_softmax"


@pytest.mark.parametrize("axis", [-1, 1])
def test_the_logarithm_of_a_softmax(axis: int) -> None:
    interface = "(float[N,3,4] x) => (float[N,3,4] y)"
    assert_rewrites(
        PASS,
        f"{interface} {{ s = Softmax<axis={axis}>(x) y = Log(s) }}",
        f"{interface} {{ y = LogSoftmax<axis={axis}>(x) }}",
    )


def test_old_opsets_flatten_alike() -> None:
    assert_rewrites(
        PASS,
        "(float[2,4] x) => (float[2,4] y) { s = Softmax(x) y = Log(s) }",
        "(float[2,4] x) => (float[2,4] y) { y = LogSoftmax<axis=1>(x) }",
        opset=11,
    )


def test_what_flattens_several_dims_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3,4] x) => (float[2,3,4] y) { s = Softmax(x) y = Log(s) }",
        opset=11,
    )


def test_a_softmax_that_others_see_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,4] x) => (float[2,4] y, float[2,4] s) { s = Softmax(x) y = Log(s) }",
        because="an inner value is a graph output",
    )
