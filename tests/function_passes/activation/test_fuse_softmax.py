import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_softmax"
NODES = "m = ReduceMax(x, a) d = Sub(x, m) e = Exp(d) s = ReduceSum(e, {b}) y = Div(e, s)"


@pytest.mark.parametrize(("axes", "axis"), [("-1", ""), ("2", ""), ("1", "<axis=1>")])
def test_the_chain_over_one_axis_is_a_softmax(axes: str, axis: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[N,3,4] x) => (float[N,3,4] y) <int64[1] a = {{{axes}}}>"
        f" {{ {NODES.format(b='a')} }}",
        f"(float[N,3,4] x) => (float[N,3,4] y) {{ y = Softmax{axis}(x) }}",
    )


def test_old_opsets_have_axes_as_attributes() -> None:
    assert_rewrites(
        PASS,
        "(float[2,4] x) => (float[2,4] y) { m = ReduceMax<axes=[1]>(x) d = Sub(x, m) e = Exp(d)"
        " s = ReduceSum<axes=[1]>(e) y = Div(e, s) }",
        "(float[2,4] x) => (float[2,4] y) { y = Softmax<axis=1>(x) }",
        opset=11,
    )


def test_two_axes_are_no_softmax() -> None:
    assert_unchanged(
        PASS,
        f"(float[2,3,4] x) => (float[2,3,4] y) <int64[2] a = {{1,2}}> {{ {NODES.format(b='a')} }}",
        because="it is not over one axis that is known",
    )


def test_sum_and_maximum_are_over_the_same_axis() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3,4] x) => (float[2,3,4] y) <int64[1] a = {1}, int64[1] b = {2}>"
        f" {{ {NODES.format(b='b')} }}",
        because="the sum and the maximum are over other axes",
    )


def test_axes_that_callers_feed_are_no_constants() -> None:
    assert_unchanged(
        PASS,
        f"(float[2,3,4] x, int64[1] a) => (float[2,3,4] y) {{ {NODES.format(b='a')} }}",
        because="the axes are not constant",
    )


def test_without_the_dims_it_does_not_broadcast_as_it_should() -> None:
    text = "(float[4,4] x) => (float[4,4] y) <int64[1] a = {1}>"
    nodes = NODES.format(b="a").replace("ReduceSum(", "ReduceSum<keepdims=0>(")
    assert_unchanged(PASS, f"{text} {{ {nodes} }}")
