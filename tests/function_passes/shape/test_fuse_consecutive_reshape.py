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
    after = "(float[1,6] x) => (float[3,2] y) <int64[2] t = {3,2}> { y = Reshape(x, t) }"
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


def test_axes_that_are_attributes_make_no_difference() -> None:
    assert_rewrites(
        PASS,
        "(float[1,6] x) => (float[3,2] y) <int64[2] t = {3,2}>"
        " { h = Squeeze<axes=[0]>(x) y = Reshape(h, t) }",
        "(float[1,6] x) => (float[3,2] y) <int64[2] t = {3,2}> { y = Reshape(x, t) }",
        opset=11,
    )


def test_with_allowzero_any_shape_will_do() -> None:
    interface = "(float[2,6] x, int64[2] t) => (float[A,B] y)"
    assert_rewrites(
        PASS,
        f"{interface} <int64[1] s = {{12}}> {{ h = Reshape(x, s) y = Reshape<allowzero=1>(h, t) }}",
        f"{interface} {{ y = Reshape<allowzero=1>(x, t) }}",
        runtime="none",
    )


def test_a_zero_stays_where_x_has_the_same_dim() -> None:
    assert_rewrites(
        PASS,
        "(float[N,2,3] x) => (float[N,3,2] y) <int64[2] s = {0,-1}, int64[3] t = {0,3,2}>"
        " { h = Reshape(x, s) y = Reshape(h, t) }",
        "(float[N,2,3] x) => (float[N,3,2] y) <int64[3] t = {0,3,2}> { y = Reshape(x, t) }",
    )


def test_a_zero_that_is_not_known_becomes_the_one_dim_that_is_inferred() -> None:
    assert_rewrites(
        PASS,
        "(float[N,6] x) => (float[M,3,4] y) <int64[2] s = {-1,12}, int64[3] t = {0,3,4}>"
        " { h = Reshape(x, s) y = Reshape(h, t) }",
        "(float[N,6] x) => (float[M,3,4] y) <int64[3] t = {-1,3,4}> { y = Reshape(x, t) }",
    )


def test_a_new_minus_1_beside_a_dim_that_may_be_0_is_ambiguous() -> None:
    assert_unchanged(
        PASS,
        "(float[N,M,6] x) => (float[N,A,12] y) <int64[3] s = {0,-1,12}, int64[3] t = {0,0,12}>"
        " { h = Reshape(x, s) y = Reshape(h, t) }",
        because="a 0 in shape copies an unknown dim",
    )


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
        because="a 0 in shape copies an unknown dim",
    )


def test_a_zero_that_copies_a_dim_of_an_unknown_rank_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N,6] x, int64[K] s) => (float[M,3] y) <int64[2] t = {0,-1}>"
        " { h = Reshape(x, s)  y = Reshape(h, t) }",
        because="a 0 in shape copies from an unknown rank",
    )


def test_a_cast_between_stays() -> None:
    assert_rewrites(
        PASS,
        "(int32[1,6] x) => (float[1,6,1] y) <int64[1] a = {1}, int64[3] t = {1,6,1}>"
        " { h = Unsqueeze(x, a)  c = Cast<to=1>(h)  y = Reshape(c, t) }",
        "(int32[1,6] x) => (float[1,6,1] y) <int64[3] t = {1,6,1}>"
        " { r = Reshape(x, t)  y = Cast<to=1>(r) }",
    )


def test_a_cast_that_others_read_is_not_moved() -> None:
    assert_unchanged(
        PASS,
        "(int32[1,6] x) => (float[1,6,1] y, float[1,1,6] c) <int64[1] a = {1}, int64[3] t = {1,6,1}>"
        " { h = Unsqueeze(x, a)  c = Cast<to=1>(h)  y = Reshape(c, t) }",
        because=None,
    )


def test_a_cast_of_a_narrow_float_keeps_its_place() -> None:
    assert_unchanged(
        PASS,
        "(float8e4m3fn[1,6] x) => (float[1,6,1] y) <int64[1] a = {1}, int64[3] t = {1,6,1}>"
        " { h = Unsqueeze(x, a)  c = Cast<to=1>(h)  y = Reshape(c, t) }",
        because="runtimes may not reshape the dtype before the Cast",
    )


def test_a_target_without_zeros_needs_no_rank_of_the_middle_tensor() -> None:
    assert_rewrites(
        PASS,
        "(float[2,6] x, int64[R] s) => (float[3,4] y) <int64[2] t = {3,4}>"
        " { h = Reshape(x, s)  y = Reshape(h, t) }",
        "(float[2,6] x, int64[R] s) => (float[3,4] y) <int64[2] t = {3,4}> { y = Reshape(x, t) }",
        runtime="none",
    )
