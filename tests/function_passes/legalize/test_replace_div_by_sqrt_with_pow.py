import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_div_by_sqrt_with_pow"
HEAD = "(float[N,4] x) => (float[N,4] y) <float e = {0.001}"
POSITIVE = "a = Abs(x) v = Add(a, e)"


def test_a_divisor_that_is_a_root_becomes_a_power() -> None:
    assert_rewrites(
        PASS,
        f"{HEAD}> {{ {POSITIVE} r = Sqrt(v) y = Div(x, r) }}",
        f"{HEAD}, float h = {{-0.5}}> {{ {POSITIVE} r = Pow(v, h) y = Mul(x, r) }}",
    )


def test_a_reciprocal_is_the_power() -> None:
    assert_rewrites(
        PASS,
        f"{HEAD}, float one = {{1}}> {{ {POSITIVE} r = Sqrt(v) y = Div(one, r) }}",
        f"{HEAD}, float h = {{-0.5}}> {{ {POSITIVE} y = Pow(v, h) }}",
    )


def test_a_root_with_other_users_stays_for_them() -> None:
    assert_rewrites(
        PASS,
        f"(float[N,4] x) => (float[N,4] y, float[N,4] r) <float e = {{0.001}}> "
        f"{{ {POSITIVE} r = Sqrt(v) y = Div(x, r) }}",
        f"(float[N,4] x) => (float[N,4] y, float[N,4] r) <float e = {{0.001}}, float h = {{-0.5}}> "
        f"{{ {POSITIVE} r = Sqrt(v) p = Pow(v, h) y = Mul(x, p) }}",
    )


@pytest.mark.parametrize("radicand", ["v = Abs(x)", "v = Add(x, e)"])
def test_a_radicand_that_may_be_zero_stays(radicand: str) -> None:
    """Of -0.0 the quotient is -Inf for x = 1, and the product Inf."""
    assert_unchanged(
        PASS,
        f"{HEAD}> {{ {radicand} r = Sqrt(v) y = Div(x, r) }}",
        because="v may be zero or negative",
    )


def test_a_half_stays() -> None:
    assert_unchanged(
        PASS,
        "(float16[2] x, float16[2] v) => (float16[2] y) { r = Sqrt(v) y = Div(x, r) }",
        because="v may be neither float nor double",
    )
