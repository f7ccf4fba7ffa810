from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_cast_into_onehot"


def test_the_values_are_cast_instead_of_the_result() -> None:
    assert_rewrites(
        PASS,
        "(int64[3] x) => (int64[3,4] y) <int64 d = {4}, float[2] v = {0,1}> { h = OneHot(x, d, v)  y = Cast<to=7>(h) }",
        "(int64[3] x) => (int64[3,4] y) <int64 d = {4}, int64[2] v = {0,1}> { y = OneHot(x, d, v) }",
    )


def test_an_index_that_was_int32_is_read_as_it_is() -> None:
    assert_rewrites(
        PASS,
        "(int32[3] x) => (float[3,4] y) <int32 d = {4}, float[2] v = {0,1}> { c = Cast<to=7>(x)  y = OneHot(c, d, v) }",
        "(int32[3] x) => (float[3,4] y) <int32 d = {4}, float[2] v = {0,1}> { y = OneHot(x, d, v) }",
    )


def test_the_axis_stays() -> None:
    assert_rewrites(
        PASS,
        "(int64[3] x) => (float16[4,3] y) <int64 d = {4}, float[2] v = {0.5,1}> { h = OneHot<axis=0>(x, d, v)  y = Cast<to=10>(h) }",
        "(int64[3] x) => (float16[4,3] y) <int64 d = {4}, float16[2] v = {14336,15360}> { y = OneHot<axis=0>(x, d, v) }",
    )


def test_a_kernel_must_be_there() -> None:
    assert_unchanged(
        PASS,
        "(int64[3] x) => (int32[3,4] y) <int64 d = {4}, float[2] v = {0,1}> { h = OneHot(x, d, v)  y = Cast<to=6>(h) }",
        because="no runtime has a kernel for the dtype",
    )
    assert_unchanged(
        PASS,
        "(int32[3] x) => (float[3,4] y) <int64 d = {4}, float[2] v = {0,1}> { c = Cast<to=7>(x)  y = OneHot(c, d, v) }",
        because="no runtime has a kernel for these dtypes",
    )


def test_an_index_that_may_change_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x) => (float[3,4] y) <int64 d = {4}, float[2] v = {0,1}> { c = Cast<to=7>(x)  y = OneHot(c, d, v) }",
        because="the Cast may change an index",
    )


def test_a_value_that_changes_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(int64[3] x) => (int64[3,4] y) <int64 d = {4}, float[2] v = {0,0.5}> { h = OneHot(x, d, v)  y = Cast<to=7>(h) }",
        because="a value changes in the new dtype",
    )


def test_values_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(int64[3] x, float[2] v) => (int64[3,4] y) <int64 d = {4}> { h = OneHot(x, d, v)  y = Cast<to=7>(h) }",
        because="values is not a constant",
    )
