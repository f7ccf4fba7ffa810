import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_reciprocal_into_div"


# The text of a float16 constant is its bits.
@pytest.mark.parametrize(("dtype", "one"), [("float", 1), ("double", 1), ("float16", 0x3C00)])
@pytest.mark.parametrize(
    "quotient", ["t = Div(one, x) y = Mul(t, w)", "t = Div(one, x) y = Mul(w, t)"]
)
def test_a_product_with_one_over_x_is_a_quotient(dtype: str, one: int, quotient: str) -> None:
    assert_rewrites(
        PASS,
        f"({dtype}[2,3] x, {dtype}[2,3] w) => ({dtype}[2,3] y) <{dtype} one = {{{one}}}> {{ {quotient} }}",
        f"({dtype}[2,3] x, {dtype}[2,3] w) => ({dtype}[2,3] y) {{ y = Div(w, x) }}",
    )


@pytest.mark.parametrize("w", ["[N,3]", "[3]", "[1,1]", ""])
def test_so_is_one_with_a_reciprocal_whatever_broadcasts_into_x(w: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[N,3] x, float{w} w) => (float[N,3] y) {{ t = Reciprocal(x) y = Mul(t, w) }}",
        f"(float[N,3] x, float{w} w) => (float[N,3] y) {{ y = Div(w, x) }}",
    )


def test_a_constant_is_a_dividend_too() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y) <float[1] one = {1}, float c = {3}>"
        " { t = Div(one, x) y = Mul(t, c) }",
        "(float[N] x) => (float[N] y) <float c = {3}> { y = Div(c, x) }",
    )


def test_integers_are_no_numbers_to_divide_1_by() -> None:
    assert_unchanged(
        PASS,
        "(int32[3] x, int32[3] w) => (int32[3] y) <int32 one = {1}> { t = Div(one, x) y = Mul(t, w) }",
        because="the dividend is not a float",
    )


@pytest.mark.parametrize("x", ["", "[1]", "[2,1]", "[M,3]"])
def test_fewer_reciprocals_than_products_are_cheaper(x: str) -> None:
    assert_unchanged(
        PASS,
        f"(float{x} x, float[2,3] w) => (float[2,3] y) {{ t = Reciprocal(x) y = Mul(w, t) }}",
        because="x may have fewer elements than the result",
    )


@pytest.mark.parametrize(
    "root", ["{ r = Sqrt(x) t = Reciprocal(r)", "<float one = {1}> { r = Sqrt(x) t = Div(one, r)"]
)
@pytest.mark.parametrize("x", ["", "[1]", "[2,1]", "[1,1]", "[2,3]"])
def test_but_a_root_of_a_norm_is_a_divisor_of_any_shape(x: str, root: str) -> None:
    # Of random x, some are negative: the result is NaN before and after.
    assert_rewrites(
        PASS,
        f"(float{x} x, float[2,3] w) => (float[2,3] y) {root} y = Mul(w, t) }}",
        f"(float{x} x, float[2,3] w) => (float[2,3] y) {{ r = Sqrt(x) y = Div(w, r) }}",
    )


def test_a_1_of_more_dims_makes_more_of_them() -> None:
    assert_unchanged(
        PASS,
        "(float[1,1] x, float[1,1] w) => (float[1,1,1] y) <float[1,1,1] one = {1}>"
        " { t = Div(one, x) y = Mul(t, w) }",
        because="x may have fewer elements than the result",
    )


def test_a_1_of_as_many_dims_as_the_result_only_is_left() -> None:
    # x and the result are of one shape only if the constant has no more dims.
    assert_rewrites(
        PASS,
        "(float[2,3] x, float[3] w) => (float[2,3] y) <float[1,1] one = {1}>"
        " { t = Div(one, x) y = Mul(t, w) }",
        "(float[2,3] x, float[3] w) => (float[2,3] y) { y = Div(w, x) }",
    )


def test_a_reciprocal_that_others_read_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x, float[3] w) => (float[3] y, float[3] t) { t = Reciprocal(x) y = Mul(w, t) }",
    )
    assert_unchanged(
        PASS,
        "(float[3] x, float[3] w) => (float[3] y) <float two = {2}> { t = Div(two, x) y = Mul(w, t) }",
    )
