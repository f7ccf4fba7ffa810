import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_pow"


@pytest.mark.parametrize("dtype", ["float", "double", "int32", "int64"])
def test_a_square_is_a_product(dtype: str) -> None:
    assert_rewrites(
        PASS,
        f"({dtype}[N,3] x) => ({dtype}[N,3] y) <{dtype} p = {{2}}> {{ y = Pow(x, p) }}",
        f"({dtype}[N,3] x) => ({dtype}[N,3] y) {{ y = Mul(x, x) }}",
    )


def test_a_cube_is_two_products() -> None:
    assert_rewrites(
        PASS,
        "(float[3] x) => (float[3] y) <float p = {3}> { y = Pow(x, p) }",
        "(float[3] x) => (float[3] y) { t = Mul(x, x) y = Mul(t, x) }",
    )


def test_a_first_power_is_nothing() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y) <float[1] p = {1}> { h = Pow(x, p)  y = Exp(h) }",
        "(float[N] x) => (float[N] y) { y = Exp(x) }",
    )


def test_the_exponent_may_have_another_dtype() -> None:
    for exponent in ("int64 p = {2}", "float p = {2}", "double[1] p = {2}"):
        assert_rewrites(
            PASS,
            f"(int32[4] x) => (int32[4] y) <{exponent}> {{ y = Pow(x, p) }}",
            "(int32[4] x) => (int32[4] y) { y = Mul(x, x) }",
        )


def test_half_floats_are_squared_but_not_cubed() -> None:
    before = "(float16[9] x) => (float16[9] y) <float p = {{{}}}> {{ y = Pow(x, p) }}"
    assert_rewrites(PASS, before.format(2), "(float16[9] x) => (float16[9] y) { y = Mul(x, x) }")
    assert_unchanged(PASS, before.format(3), because="two products of 16 bits are rounded twice")


def test_old_opsets_too() -> None:
    assert_rewrites(
        PASS,
        "(float[N,2] x) => (float[N,2] y) <float p = {2}> { y = Pow(x, p) }",
        "(float[N,2] x) => (float[N,2] y) { y = Mul(x, x) }",
        opset=7,
    )


@pytest.mark.parametrize("power", ["0", "4", "0.5", "-1", "2.5"])
def test_other_powers_have_other_bits(power: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[N] x) => (float[N] y) <float p = {{{power}}}> {{ y = Pow(x, p) }}",
        because=f"the exponent is {float(power)}",
    )


@pytest.mark.parametrize("shape", ["N", "1", "5,1", "5,N"])
def test_a_last_dim_that_may_be_1_is_left_alone(shape: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[{shape}] x) => (float[{shape}] y) <float p = {{2}}> {{ y = Pow(x, p) }}",
        because="Pow is approximate for a last dim 1",
    )


def test_cubes_can_be_kept() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x) => (float[N] y) <float p = {3}> { y = Pow(x, p) }",
        because="the exponent is 3.0",
        cubes=False,
    )


def test_a_list_of_exponents_is_computed_otherwise() -> None:
    assert_unchanged(
        PASS,
        "(float[2] x) => (float[2] y) <float[2] p = {2,2}> { y = Pow(x, p) }",
        because="the exponent is not one number",
    )


def test_an_exponent_with_more_dims_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x) => (float[1,N] y) <float[1,1] p = {2}> { y = Pow(x, p) }",
        because="the exponent may give x more dims",
    )


def test_large_integers_do_not_survive_a_pow() -> None:
    assert_unchanged(
        PASS,
        "(int64[N] x) => (int64[N] y) <float p = {1}> { y = Pow(x, p) }",
        because="Pow rounds 64-bit integers to floats",
    )


def test_an_unknown_dtype_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "l" : 1]>'
        " g (float[2] x) => (float[2] y) { y = l.f(x) }"
        ' <opset_import: ["" : 21], domain: "l"> f (a) => (b)'
        " { p = Constant<value_float=2.0>()  b = Pow(a, p) }",
        because="the dtype of x is not known",
    )


def test_an_exponent_that_may_be_fed_is_left_alone() -> None:
    assert_unchanged(PASS, "(float[N] x, float p = {2}) => (float[N] y) { y = Pow(x, p) }")


def test_a_square_with_a_mean_is_left_to_normalisation_fusions() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x) => (float[2,1] y) <float p = {2}, int64[1] a = {-1}>"
        " { t = Pow(x, p) y = ReduceMean(t, a) }",
        because="runtimes recognise its mean as a normalisation",
    )
