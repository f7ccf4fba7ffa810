import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_div_with_mul"


@pytest.mark.parametrize(
    ("dtype", "divisor", "reciprocal"),
    [
        ("float", "8", "0.125"),
        ("float", "-0.5", "-2"),
        ("float", "1", "1"),
        ("double", "1024", "0.0009765625"),
        ("float16", "18432", "12288"),
    ],
)
def test_a_power_of_two_has_an_exact_reciprocal(dtype: str, divisor: str, reciprocal: str) -> None:
    assert_rewrites(
        PASS,
        f"({dtype}[3] x) => ({dtype}[3] y) <{dtype} d = {{{divisor}}}> {{ y = Div(x, d) }}",
        f"({dtype}[3] x) => ({dtype}[3] y) <{dtype} d = {{{reciprocal}}}> {{ y = Mul(x, d) }}",
    )


def test_the_furthest_powers_are_normal_on_both_sides() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y) <float d = {8.507059173023462e37}> { y = Div(x, d) }",
        "(float[N] x) => (float[N] y) <float d = {1.1754943508222875e-38}> { y = Mul(x, d) }",
    )
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y) <float d = {1.1754943508222875e-38}> { y = Div(x, d) }",
        "(float[N] x) => (float[N] y) <float d = {8.507059173023462e37}> { y = Mul(x, d) }",
    )


def test_a_list_of_powers_is_a_list_of_reciprocals() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x) => (float[N,3] y) <float[3] d = {2,4,0.25}> { y = Div(x, d) }",
        "(float[N,3] x) => (float[N,3] y) <float[3] d = {0.5,0.25,4}> { y = Mul(x, d) }",
        opset=7,
    )


@pytest.mark.parametrize("divisor", ["3", "0.1", "0", "1.7014118346046923e38", "1e-45", "5e-39"])
def test_other_divisors_have_other_bits(divisor: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[N] x) => (float[N] y) <float d = {{{divisor}}}> {{ y = Div(x, d) }}",
        because="a divisor is not a power of two",
    )


def test_integers_are_truncated() -> None:
    assert_unchanged(
        PASS,
        "(int32[N] x) => (int32[N] y) <int32 d = {8}> { y = Div(x, d) }",
        because="the dividend is not a float",
    )


def test_a_list_that_others_read_would_be_there_twice() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y, float[2] z) <float[2] d = {2,4}> { y = Div(x, d)  z = Exp(d) }",
        because="the divisor is a shared tensor",
    )


def test_a_constant_over_x_is_left_alone() -> None:
    assert_unchanged(PASS, "(float[N] x) => (float[N] y) <float d = {2}> { y = Div(d, x) }")
