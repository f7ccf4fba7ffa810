from tiered.testing import assert_rewrites, assert_unchanged

NAME = "replace_expand_with_tile"


def test_axes_of_size_1_are_repeated() -> None:
    assert_rewrites(
        NAME,
        "(float[2,1,3] x) => (float[2,4,3] y) <int64[3] s = {2,4,3}> { y = Expand(x, s) }",
        "(float[2,1,3] x) => (float[2,4,3] y) <int64[3] r = {1,4,1}> { y = Tile(x, r) }",
    )


def test_a_size_of_1_keeps_the_dim_of_x() -> None:
    assert_rewrites(
        NAME,
        "(bool[2,1] x) => (bool[2,5] y) <int64[2] s = {1,5}> { y = Expand(x, s) }",
        "(bool[2,1] x) => (bool[2,5] y) <int64[2] r = {1,5}> { y = Tile(x, r) }",
    )


def test_new_axes_are_made_by_a_reshape() -> None:
    assert_rewrites(
        NAME,
        "(float[3] x) => (float[2,3] y) <int64[2] s = {2,1}> { y = Expand(x, s) }",
        "(float[3] x) => (float[2,3] y) <int64[2] s = {1,3}, int64[2] r = {2,1}>"
        " { w = Reshape(x, s) y = Tile(w, r) }",
    )


def test_an_axis_may_become_empty() -> None:
    assert_rewrites(
        NAME,
        "(float[1,3] x) => (float[0,3] y) <int64[2] s = {0,3}> { y = Expand(x, s) }",
        "(float[1,3] x) => (float[0,3] y) <int64[2] r = {0,1}> { y = Tile(x, r) }",
    )


def test_a_computed_shape_stays() -> None:
    assert_unchanged(
        NAME,
        "(float[1,3] x, int64[2] s) => (float[M,N] y) { y = Expand(x, s) }",
        because="shape is not a constant",
    )


def test_an_unknown_rank_stays() -> None:
    assert_unchanged(
        NAME,
        "(float[1,3] x, int64[M] t) => (float[A,B] y) <int64[2] s = {2,3}>"
        " { r = Reshape(x, t) y = Expand(r, s) }",
        because="the rank of x is not known",
    )


def test_a_symbolic_dim_stays() -> None:
    assert_unchanged(
        NAME,
        "(float[N,3] x) => (float[M,3] y) <int64[2] s = {2,3}> { y = Expand(x, s) }",
        because="the dims of x are not numbers",
    )


def test_a_scalar_stays() -> None:
    assert_unchanged(
        NAME,
        "(float x) => (float y) <int64[0] s = {}> { y = Expand(x, s) }",
        because="x and its result are scalars",
    )


def test_an_empty_x_stays() -> None:
    assert_unchanged(
        NAME,
        "(float[0,3] x) => (float[2,0,3] y) <int64[3] s = {2,0,3}> { y = Expand(x, s) }",
        because="x is empty",
    )
