import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_consecutive_flatten"


@pytest.mark.parametrize(
    ("first", "constants"),
    [("Reshape(x, c)", "<int64[1] c = {6}>"), ("Flatten<axis=2>(x)", ""),
     ("Unsqueeze(x, c)", "<int64[1] c = {1}>")],
)  # fmt: skip
def test_a_flatten_behind_a_view_is_one_reshape(first: str, constants: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[2,3] x) => (float[1,6] y) {constants} {{ h = {first}  y = Flatten<axis=0>(h) }}",
        "(float[2,3] x) => (float[1,6] y) <int64[2] s = {1,6}> { y = Reshape(x, s) }",
    )


def test_a_flatten_behind_a_squeeze_is_one() -> None:
    assert_rewrites(
        PASS,
        "(float[N,1,3,2] x) => (float[N,6] y) <int64[1] a = {1}>"
        " { h = Squeeze(x, a)  y = Flatten(h) }",
        "(float[N,1,3,2] x) => (float[N,6] y) <int64[2] s = {-1,6}> { y = Reshape(x, s) }",
    )


@pytest.mark.parametrize(("op", "after"), [("Squeeze", "6"), ("Unsqueeze", "1,1,6")])
def test_a_view_behind_a_flatten_is_one(op: str, after: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[2,3] x) => (float[{after}] y) <int64[1] a = {{0}}>"
        f" {{ h = Flatten<axis=0>(x)  y = {op}(h, a) }}",
        f"(float[2,3] x) => (float[{after}] y) <int64[{after.count(',') + 1}] s = {{{after}}}>"
        " { y = Reshape(x, s) }",
    )


def test_views_that_end_in_the_first_shape_are_none() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2,3] y) <int64[3] c = {1,2,3}>"
        " { g = Relu(x)  h = Reshape(g, c)  y = Flatten<axis=2>(h) }",
        "(float[2,3] x) => (float[2,3] y) { y = Relu(x) }",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[] x, int64[1] c) => (float[] y) { h = Flatten(x)  y = Unsqueeze(h, c) }",
         "the rank of the result is not known"),
        ("(float[N,M,3] x) => (float[N,A] y) { h = Flatten<axis=1>(x)  y = Flatten(h) }",
         "several dims have no size"),
        ("(float[0,3] x) => (float[1,0] y) <int64[1] c = {0}>"
         " { h = Unsqueeze(x, c)  y = Flatten<axis=0>(h) }", "a 0 in shape copies a dim of x"),
    ],
)  # fmt: skip
def test_sizes_that_are_not_known_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
