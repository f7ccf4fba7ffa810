import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_consecutive_cast_with_notzero"


@pytest.mark.parametrize("dtype", ["int64", "float", "double", "int32"])
def test_a_cast_to_bool_compares_with_zero(dtype: str) -> None:
    head = f"({dtype}[N,4] x) => (float[N,4] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ b = Cast<to=9>(x) y = Cast<to=1>(b) }}",
        f"{head} <{dtype} z = {{0}}> {{ e = Equal(x, z) n = Not(e) y = Cast<to=1>(n) }}",
    )


def test_an_integer_in_the_middle_is_another_function() -> None:
    assert_unchanged(PASS, "(float[4] x) => (float[4] y) { b = Cast<to=7>(x) y = Cast<to=1>(b) }")


def test_a_bool_with_another_user_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[4] x) => (float[4] y, bool[4] b) { b = Cast<to=9>(x) y = Cast<to=1>(b) }",
    )


def test_a_bool_has_no_zero() -> None:
    assert_unchanged(
        PASS,
        "(bool[4] x) => (float[4] y) { b = Cast<to=9>(x) y = Cast<to=1>(b) }",
        because="the dtype of x has no zero",
    )
