import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_reshape_into_reduce"


@pytest.mark.parametrize("kind", ["Max", "Mean", "Sum", "L2"])
def test_reduced_dims_are_dropped_at_once(kind: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[2,3] x) => (float[2] y) <int64[1] a = {{-1}}, int64[1] s = {{2}}>"
        f" {{ h = Reduce{kind}(x, a)  y = Reshape(h, s) }}",
        f"(float[2,3] x) => (float[2] y) <int64[1] a = {{-1}}>"
        f" {{ y = Reduce{kind}<keepdims=0>(x, a) }}",
    )


def test_reduced_dims_are_kept_at_once() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x) => (float[N,1] y) <int64[1] a = {1}, int64[2] s = {-1,1}>"
        " { h = ReduceMax<keepdims=0>(x, a)  y = Reshape(h, s) }",
        "(float[N,3] x) => (float[N,1] y) <int64[1] a = {1}> { y = ReduceMax<keepdims=1>(x, a) }",
    )


def test_all_dims_may_be_reduced() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float y) <int64[0] s = {}> { h = ReduceMax(x)  y = Reshape(h, s) }",
        "(float[2,3] x) => (float y) { y = ReduceMax<keepdims=0>(x) }",
    )


def test_a_flatten_drops_them_too() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3,4,4] x) => (float[N,3] y) <int64[2] a = {2,3}>"
        " { h = ReduceMean(x, a)  y = Flatten(h) }",
        "(float[N,3,4,4] x) => (float[N,3] y) <int64[2] a = {2,3}>"
        " { y = ReduceMean<keepdims=0>(x, a) }",
    )


def test_axes_are_attributes_in_old_opsets() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2] y) <int64[1] s = {2}>"
        " { h = ReduceMax<axes=[1]>(x)  y = Reshape(h, s) }",
        "(float[2,3] x) => (float[2] y) { y = ReduceMax<axes=[1], keepdims=0>(x) }",
        opset=13,
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[2,3] x, int64[1] a) => (float[2] y) <int64[1] s = {2}>"
         " { h = ReduceMax(x, a)  y = Reshape(h, s) }", "axes is not a constant"),
        ("(float[2,3] x) => (float[6] y) <int64[0] a = {}, int64[1] s = {6}>"
         " { h = ReduceMax<noop_with_empty_axes=1>(x, a)  y = Reshape(h, s) }",
         "empty axes reduce nothing"),
        ("(float[] x, int64[1] s) => (float[] y) { h = ReduceMax(x)  y = Reshape(h, s) }",
         "the shape of x or of the result is not known"),
        ("(float[2,3,4] x) => (float[8] y) <int64[1] a = {1}, int64[1] s = {8}>"
         " { h = ReduceMax(x, a)  y = Reshape(h, s) }",
         "the Reshape does more than to drop or add reduced dims"),
    ],
)  # fmt: skip
def test_what_does_more_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_a_squeeze_of_all_axes_is_known_by_its_shape() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float y) <int64[2] s = {0,1}> { h = ReduceMax(x)  y = Squeeze(h, s) }",
        "(float[2,3] x) => (float y) { y = ReduceMax<keepdims=0>(x) }",
    )
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[1,1] y) <int64[2] s = {0,1}>"
        " { h = ReduceMax<keepdims=0>(x)  y = Unsqueeze(h, s) }",
        "(float[2,3] x) => (float[1,1] y) { y = ReduceMax<keepdims=1>(x) }",
    )
