from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_consecutive_reshape"


def test_last_shape_wins() -> None:
    assert_rewrites(
        PASS,
        "(float[2,6] x) => (float[3,4] y) <int64[1] s = {12}, int64[2] t = {3,4}>"
        " { h = Reshape(x, s)  y = Reshape(h, t) }",
        "(float[2,6] x) => (float[3,4] y) <int64[2] t = {3,4}> { y = Reshape(x, t) }",
    )


def test_a_zero_is_the_dim_of_the_middle_tensor() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3,4] x) => (float[6,4] y) <int64[2] s = {6,4}, int64[2] t = {0,-1}>"
        " { a = Reshape(x, s) y = Reshape(a, t) }",
        "(float[2,3,4] x) => (float[6,4] y) <int64[2] t = {6,-1}> { y = Reshape(x, t) }",
    )


def test_a_shared_middle_tensor_stays_for_its_other_users() -> None:
    assert_rewrites(
        PASS,
        "(float[2,6] x) => (float[3,4] y, float[12] z) <int64[1] s = {12}, int64[2] t = {3,4}>"
        " { h = Reshape(x, s)  y = Reshape(h, t) z = Relu(h) }",
        "(float[2,6] x) => (float[3,4] y, float[12] z) <int64[1] s = {12}, int64[2] t = {3,4}>"
        " { h = Reshape(x, s)  y = Reshape(x, t) z = Relu(h) }",
    )


def test_flatten_squeeze_and_unsqueeze_are_reshapes_too() -> None:
    after = (
        "(float[1,6] x) => (float[3,2] y) <int64[2] t = {3,2}> { y = Reshape(x, t) }"
    )
    for inner, axes in (
        ("Flatten(x)", ""),
        ("Squeeze(x, a)", "int64[1] a = {0}, "),
        ("Unsqueeze(x, a)", "int64[1] a = {0}, "),
    ):
        before = (
            f"(float[1,6] x) => (float[3,2] y) <{axes}int64[2] t = {{3,2}}>"
            f" {{ h = {inner} y = Reshape(h, t) }}"
        )
        assert_rewrites(PASS, before, after)


def test_a_shape_that_is_computed_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[2,6] x, int64[2] t) => (float[N,M] y) <int64[1] s = {12}>"
        " { h = Reshape(x, s)  y = Reshape(h, t) }",
        because="shape is not a constant",
    )


def test_a_zero_that_copies_an_unknown_dim_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N,6] x) => (float[M,3] y) <int64[2] s = {-1,12}, int64[2] t = {0,-1}>"
        " { h = Reshape(x, s)  y = Reshape(h, t) }",
        because="a 0 in shape copies a dim of the inner result, which is not known",
    )


def test_a_zero_that_copies_a_dim_of_an_unknown_rank_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N,6] x, int64[K] s) => (float[M,3] y) <int64[2] t = {0,-1}>"
        " { h = Reshape(x, s)  y = Reshape(h, t) }",
        because="whose rank is not known",
    )
