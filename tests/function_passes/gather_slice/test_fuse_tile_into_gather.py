import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_tile_into_gather"
R = "int64[2] r = {3,1}"


@pytest.mark.parametrize(("i", "index"), [(0, 0), (3, 1), (-1, 1)])
def test_an_index_of_a_copy_is_one_of_x(i: int, index: int) -> None:
    assert_rewrites(
        PASS,
        f"(float[2,N] x) => (float[N] y) <{R}, int64 i = {{{i}}}>"
        " { h = Tile(x, r)  y = Gather(h, i) }",
        f"(float[2,N] x) => (float[N] y) <int64 i = {{{index}}}> {{ y = Gather<axis=0>(x, i) }}",
    )


def test_a_slice_of_one_copy_is_one_of_x() -> None:
    assert_rewrites(
        PASS,
        f"(float[2,N] x) => (float[1,N] y) <{R}, int64[1] b = {{3}}, int64[1] e = {{4}}>"
        " { h = Tile(x, r)  y = Slice(h, b, e) }",
        "(float[2,N] x) => (float[1,N] y) <int64[1] b = {1}, int64[1] e = {2}, int64[1] a = {0}>"
        " { y = Slice(x, b, e, a) }",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[] x) => (float[] y) <int64[2] r = {3,1}, int64 i = {0}>"
         " { h = Tile(x, r)  y = Gather(h, i) }", "the rank of x is not known"),
        (f"(float[2,2] x, int64[1] a) => (float[A,B] y) <{R}, int64[1] b = {{0}},"
         " int64[1] e = {1}> { h = Tile(x, r)  y = Slice(h, b, e, a) }",
         "axes or steps is not a constant"),
        (f"(float[2,2] x) => (float[1,1] y) <{R}, int64[2] b = {{0,0}}, int64[2] e = {{1,1}}>"
         " { h = Tile(x, r)  y = Slice(h, b, e) }",
         "the Slice cuts several axes, or its step is not 1"),
        ("(float[2,2] x) => (float[4] y) <int64[2] r = {2,2}, int64 i = {0}>"
         " { h = Tile(x, r)  y = Gather(h, i) }", "another axis is repeated, too"),
        (f"(float[N,2] x) => (float[2] y) <{R}, int64 i = {{0}}>"
         " { h = Tile(x, r)  y = Gather(h, i) }", "the size of the axis is not known"),
        (f"(float[2,2] x) => (float[2] y) <{R}, int64 i = {{6}}>"
         " { h = Tile(x, r)  y = Gather(h, i) }", "an index is out of range"),
        (f"(float[2,2] x) => (float[2,2] y) <{R}, int64[1] b = {{1}}, int64[1] e = {{3}}>"
         " { h = Tile(x, r)  y = Slice(h, b, e) }",
         "it takes elements of several copies, or none"),
    ],
)  # fmt: skip
def test_others_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
