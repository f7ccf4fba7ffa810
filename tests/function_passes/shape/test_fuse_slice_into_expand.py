import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_slice_into_expand"
CUT = "int64[1] b = {1}, int64[1] e = {3}"


@pytest.mark.parametrize("x", ["3", "1,3"])
def test_fewer_copies_are_made(x: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[{x}] x) => (float[2,3] y) <int64[2] s = {{4,3}}, {CUT}>"
        " { h = Expand(x, s)  y = Slice(h, b, e) }",
        f"(float[{x}] x) => (float[2,3] y) <int64[2] s = {{2,3}}> {{ y = Expand(x, s) }}",
    )


def test_an_index_of_copies_is_the_value() -> None:
    assert_rewrites(
        PASS,
        "(float[3] x) => (float[3] y) <int64[2] s = {4,3}, int64 i = {2}>"
        " { g = Relu(x)  h = Expand(g, s)  y = Gather(h, i) }",
        "(float[3] x) => (float[3] y) { y = Relu(x) }",
    )


def test_a_dim_of_1_is_squeezed() -> None:
    assert_rewrites(
        PASS,
        "(float[1,1,3] x) => (float[2,3] y) <int64[3] s = {4,2,3}, int64 i = {2}>"
        " { h = Expand(x, s)  y = Gather(h, i) }",
        "(float[1,1,3] x) => (float[2,3] y) <int64[1] a = {0}, int64[2] s = {2,3}>"
        " { h = Squeeze(x, a)  y = Expand(h, s) }",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (f"(float[4,1] x) => (float[2,3] y) <int64[2] s = {{4,3}}, {CUT}>"
         " { h = Expand(x, s)  y = Slice(h, b, e) }", "it selects among different elements"),
        (f"(float[N] x) => (float[2,N] y) <int64[2] s = {{4,1}}, {CUT}>"
         " { h = Expand(x, s)  y = Slice(h, b, e) }", "a shape is not known"),
    ],
)  # fmt: skip
def test_others_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
