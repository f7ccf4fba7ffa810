import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_unsqueeze_into_reduce"

KINDS = ["L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_dims_stay_at_once(kind: str) -> None:
    assert_rewrites(
        PASS,
        "(float[2,N,4] x) => (float[2,1,1] y) <int64[2] a = {1,2}, int64[2] b = {-1,1}>"
        f" {{ h = Reduce{kind}<keepdims=0>(x, a)  y = Unsqueeze(h, b) }}",
        f"(float[2,N,4] x) => (float[2,1,1] y) <int64[2] a = {{1,2}}> {{ y = Reduce{kind}(x, a) }}",
    )


def test_negative_axes_count_in_the_same_tensor() -> None:
    # onnxruntime gives an empty tensor that is reduced over negative axes a wrong shape.
    assert_rewrites(
        PASS,
        "(float[2,N,4] x) => (float[2,N,1] y) <int64[1] a = {-1}, int64[1] b = {2}>"
        " { h = ReduceMax<keepdims=0>(x, a)  y = Unsqueeze(h, b) }",
        "(float[2,N,4] x) => (float[2,N,1] y) <int64[1] a = {-1}> { y = ReduceMax(x, a) }",
        runtime="reference",
    )


def test_no_axes_are_all_axes() -> None:
    assert_rewrites(
        PASS,
        "(float[2,N] x) => (float[1,1] y) <int64[2] b = {0,1}>"
        " { h = ReduceMax<keepdims=0>(x)  y = Unsqueeze(h, b) }",
        "(float[2,N] x) => (float[1,1] y) { y = ReduceMax(x) }",
    )


def test_old_opsets_have_attributes() -> None:
    for opset in (7, 11):
        assert_rewrites(
            PASS,
            "(float[2,N] x) => (float[2,1] y)"
            " { h = ReduceMean<axes=[1], keepdims=0>(x)  y = Unsqueeze<axes=[1]>(h) }",
            "(float[2,N] x) => (float[2,1] y) { y = ReduceMean<axes=[1]>(x) }",
            opset=opset,
        )


def test_one_of_them_may_have_attributes() -> None:
    assert_rewrites(
        PASS,
        "(float[2,N] x) => (float[2,1] y) <int64[1] b = {1}>"
        " { h = ReduceMean<axes=[1], keepdims=0>(x)  y = Unsqueeze(h, b) }",
        "(float[2,N] x) => (float[2,1] y) { y = ReduceMean<axes=[1]>(x) }",
        opset=13,
    )


def test_other_axes_are_left_alone() -> None:
    for axes in ("[1] b = {0}", "[2] b = {0,1}"):
        assert_unchanged(
            PASS,
            f"(float[2,N] x) => (float[A,B] y) <int64[1] a = {{1}}, int64{axes}>"
            " { h = ReduceMax<keepdims=0>(x, a)  i = Unsqueeze(h, b)  y = Relu(i) }",
            because="the axes may differ",
        )


def test_axes_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[2,N] x, int64[1] a) => (float[2,1] y)"
        " { h = ReduceMax<keepdims=0>(x, a)  y = Unsqueeze(h, a) }",
        because="axes is not a constant",
    )


def test_what_reduces_nothing_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x) => (float[1,N] y) <int64[1] b = {0}>"
        " { h = ReduceMax<keepdims=0, noop_with_empty_axes=1>(x)  y = Unsqueeze(h, b) }",
        because="it reduces nothing",
    )


def test_all_of_an_unknown_rank_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x, int64[K] s) => (float[1] y) <int64[1] b = {0}>"
        " { r = Reshape(x, s)  h = ReduceMax<keepdims=0>(r)  y = Unsqueeze(h, b) }",
        because="it reduces all of an unknown rank",
    )


def test_a_result_that_others_read_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,N] x) => (float[2] h, float[2,1] y) <int64[1] a = {1}>"
        " { h = ReduceMax<keepdims=0>(x, a)  y = Unsqueeze(h, a) }",
        because="an inner value is a graph output",
    )


def test_an_axis_that_is_not_there_fails_when_the_model_runs() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x) => (float[A,B] y) <int64[1] a = {1}>"
        " { h = ReduceMax<keepdims=0>(x, a)  y = Unsqueeze(h, a) }",
        because="an axis is out of range",
    )
