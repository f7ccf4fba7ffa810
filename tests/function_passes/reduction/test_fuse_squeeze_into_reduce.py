import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_squeeze_into_reduce"


@pytest.mark.parametrize("kind", ["L1", "LogSumExp", "Max", "Mean", "Prod", "Sum"])
def test_the_dims_go_at_once(kind: str) -> None:
    assert_rewrites(
        PASS,
        "(float[2,N,4] x) => (float[2] y) <int64[2] a = {1,-1}, int64[2] b = {2,1}>"
        f" {{ h = Reduce{kind}(x, a)  y = Squeeze(h, b) }}",
        "(float[2,N,4] x) => (float[2] y) <int64[2] a = {1,-1}>"
        f" {{ y = Reduce{kind}<keepdims=0>(x, a) }}",
    )


def test_old_opsets_have_attributes() -> None:
    assert_rewrites(
        PASS,
        "(float[2,N] x) => (float[2] y) { h = ReduceMean<axes=[1]>(x)  y = Squeeze<axes=[-1]>(h) }",
        "(float[2,N] x) => (float[2] y) { y = ReduceMean<axes=[1], keepdims=0>(x) }",
        opset=11,
    )


def test_other_axes_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[1,N,4] x) => (float[N,1] y) <int64[1] a = {2}, int64[1] b = {0}>"
        " { h = ReduceMax(x, a)  y = Squeeze(h, b) }",
        because="the axes may differ",
    )


def test_axes_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[2,N] x, int64[1] a) => (float[2] y) { h = ReduceMax(x, a)  y = Squeeze(h, a) }",
        because="axes is not a constant",
    )


def test_a_squeeze_without_axes_may_take_more() -> None:
    assert_unchanged(
        PASS,
        "(float[M,N] x) => (float[K] y) <int64[1] a = {1}> { h = ReduceMax(x, a)  y = Squeeze(h) }",
    )
