import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_squeeze_into_reshape"


@pytest.mark.parametrize(
    ("x", "shape", "axes", "y", "target"),
    [
        ("2,6", "3,4", "0", "1,3,4", "1,3,4"),
        ("2,6", "3,4", "-1,1", "3,1,4,1", "3,1,4,1"),
        # One -1 moves along.
        ("2,N", "-1,4", "0", "1,M,4", "1,-1,4"),
        # A 0 before the new dim stays.
        ("N,6", "0,2,3", "3", "N,2,3,1", "0,2,3,1"),
        ("N,6,K", "0,-1", "1", "N,1,M", "0,1,-1"),
        # A 0 behind it is the number that it copies, another 0, or the one -1.
        ("2,6", "0,3,2", "0", "1,2,3,2", "1,2,3,2"),
        ("2,N,N", "2,0,-1", "0", "1,2,N,M", "1,2,0,-1"),
        ("N,6", "0,3,2", "0", "1,N,3,2", "1,-1,3,2"),
    ],
)
def test_new_dims_are_a_part_of_the_shape(
    x: str, shape: str, axes: str, y: str, target: str
) -> None:
    rank, more, after = shape.count(",") + 1, axes.count(",") + 1, target.count(",") + 1
    assert_rewrites(
        PASS,
        f"(float[{x}] x) => (float[{y}] y) <int64[{rank}] s = {{{shape}}},"
        f" int64[{more}] a = {{{axes}}}> {{ r = Reshape(x, s)  y = Unsqueeze(r, a) }}",
        f"(float[{x}] x) => (float[{y}] y) <int64[{after}] s = {{{target}}}>"
        " { y = Reshape(x, s) }",
    )


@pytest.mark.parametrize(
    ("x", "shape", "axes", "y", "target"),
    [
        ("2,6", "3,1,4", "1", "3,4", "3,4"),
        ("2,6", "1,3,4,1", "-1,0", "3,4", "3,4"),
        ("N,4", "-1,1,4", "1", "M,4", "-1,4"),
        ("N,4", "0,1,4", "-2", "N,4", "0,4"),
        # The squeezed dim may be copied or what remains, if it is known to be 1.
        ("1,N", "0,-1", "0", "N", "-1"),
        ("2,6", "3,-1,4", "1", "3,4", "3,4"),
        # A 0 behind it copies from another place.
        ("1,N,4", "1,0,4", "0", "N,4", "-1,4"),
        ("1,6,4", "1,0,2,2", "0", "6,2,2", "6,2,2"),
    ],
)
def test_dims_that_go_are_left_out_of_the_shape(
    x: str, shape: str, axes: str, y: str, target: str
) -> None:
    rank, less, after = shape.count(",") + 1, axes.count(",") + 1, target.count(",") + 1
    assert_rewrites(
        PASS,
        f"(float[{x}] x) => (float[{y}] y) <int64[{rank}] s = {{{shape}}},"
        f" int64[{less}] a = {{{axes}}}> {{ r = Reshape(x, s)  y = Squeeze(r, a) }}",
        f"(float[{x}] x) => (float[{y}] y) <int64[{after}] s = {{{target}}}>"
        " { y = Reshape(x, s) }",
    )


def test_a_squeeze_without_axes_takes_all_dims_of_1() -> None:
    assert_rewrites(
        PASS,
        "(float[6] x) => (float[2,3] y) <int64[4] s = {1,2,1,-1}>"
        " { r = Reshape(x, s)  y = Squeeze(r) }",
        "(float[6] x) => (float[2,3] y) <int64[2] s = {2,-1}> { y = Reshape(x, s) }",
    )
    assert_rewrites(
        PASS,
        "(float[1,1] x) => (float y) <int64[1] s = {-1}> { r = Reshape(x, s)  y = Squeeze(r) }",
        "(float[1,1] x) => (float y) <int64[0] s = {}> { y = Reshape(x, s) }",
    )


def test_with_allowzero_a_0_is_a_size() -> None:
    assert_rewrites(
        PASS,
        "(float[2,0] x) => (float[1,0,3] y) <int64[2] s = {0,3}, int64[1] a = {0}>"
        " { r = Reshape<allowzero=1>(x, s)  y = Unsqueeze(r, a) }",
        "(float[2,0] x) => (float[1,0,3] y) <int64[3] s = {1,0,3}>"
        " { y = Reshape<allowzero=1>(x, s) }",
    )


def test_old_opsets_have_axes_as_attributes() -> None:
    assert_rewrites(
        PASS,
        "(float[2,N] x) => (float[1,M] y) <int64[1] s = {-1}>"
        " { r = Reshape(x, s)  y = Unsqueeze<axes=[0]>(r) }",
        "(float[2,N] x) => (float[1,M] y) <int64[2] s = {1,-1}> { y = Reshape(x, s) }",
        opset=7,
    )


def test_what_others_read_stays() -> None:
    for other in ("z = Relu(r)", "z = Identity(r)"):
        assert_unchanged(
            PASS,
            "(float[2,6] x) => (float[1,12] y, float[12] z) <int64[1] s = {12}, int64[1] a = {0}>"
            f" {{ r = Reshape(x, s)  y = Unsqueeze(r, a)  {other} }}",
        )


@pytest.mark.parametrize("x", ["N,M", "N,N,6"])
def test_a_0_that_moves_beside_another_0_is_left_alone(x: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[{x}] x) => (float[A,B,C,D] y) <int64[3] s = {{0,0,-1}}, int64[1] a = {{1}}>"
        " { r = Reshape(x, s)  y = Unsqueeze(r, a) }",
        because="a 0 in shape would copy another dim",
    )


def test_a_dim_that_may_not_be_1_is_left_alone() -> None:
    for shape in ("-1,4", "0,4", "2,-1"):
        assert_unchanged(
            PASS,
            f"(float[N,M] x) => (float[K] y) <int64[2] s = {{{shape}}}, int64[1] a = {{0}}>"
            " { r = Reshape(x, s)  y = Squeeze(r, a) }",
            because="a squeezed dim may not be 1",
        )


def test_without_axes_an_unknown_dim_may_be_1() -> None:
    assert_unchanged(
        PASS,
        "(float[N,M] x) => (float[K] y) <int64[2] s = {-1,4}> { r = Reshape(x, s)  y = Squeeze(r) }",
        because="an unknown dim may be 1",
    )


def test_axes_that_are_fed_or_empty_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[4] x, int64[1] a) => (float[K,L,M] y) <int64[2] s = {2,2}>"
        " { r = Reshape(x, s)  y = Unsqueeze(r, a) }",
        because="axes is not a constant",
    )
    assert_unchanged(
        PASS,
        "(float[4] x) => (float[1,4] y) <int64[2] s = {1,4}, int64[0] a = {}>"
        " { r = Reshape(x, s)  y = Squeeze(r, a) }",
        because="empty axes mean none or all",
    )


def test_axes_out_of_range_still_fail() -> None:
    for axes in ("0,0", "4,0", "-5,0"):
        assert_unchanged(
            PASS,
            f"(float[4] x) => (float[A,B,C,D] y) <int64[2] s = {{2,2}}, int64[2] a = {{{axes}}}>"
            " { r = Reshape(x, s)  y = Unsqueeze(r, a) }",
            because="a new axis is out of range or repeated",
        )
    for axis in (2, -3):
        assert_unchanged(
            PASS,
            f"(float[4] x) => (float[4] y) <int64[2] s = {{1,4}}, int64[1] a = {{{axis}}}>"
            " { r = Reshape(x, s)  y = Squeeze(r, a) }",
            because="a squeezed axis is out of range",
        )


def test_a_shape_that_is_fed_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[4] x, int64[2] s) => (float[A,B,C] y) <int64[1] a = {0}>"
        " { r = Reshape(x, s)  y = Unsqueeze(r, a) }",
    )
