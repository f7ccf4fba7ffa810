from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_squeeze"


def test_a_squeeze_that_finds_no_1_is_dropped() -> None:
    for opset in (7, 21):
        assert_rewrites(
            PASS,
            "(float[2,3] x) => (float[2,3] y) { h = Squeeze(x)  y = Relu(h) }",
            "(float[2,3] x) => (float[2,3] y) { y = Relu(x) }",
            opset=opset,
        )


def test_a_dim_that_may_be_1_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N,3] x) => (float[K,M] y) { y = Squeeze(x) }",
        because="a dim of x is not known, and may be 1",
    )


def test_a_dim_of_1_goes() -> None:
    assert_unchanged(
        PASS,
        "(float[1,3] x) => (float[3] y) { y = Squeeze(x) }",
        because="a dim of size 1 is removed",
    )


def test_named_axes_go() -> None:
    assert_unchanged(
        PASS,
        "(float[1,3] x) => (float[3] y) <int64[1] a = {0}> { y = Squeeze(x, a) }",
        because="the Squeeze names its axes",
    )
