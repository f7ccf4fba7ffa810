import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_affine_into_layernorm"
INTERFACE = "(float[N,2,4] x) => (float[N,2,4] y)"
ONES, SCALE, BIAS = "float[4] o = {1,1,1,1}", "float[4] s = {1,2,3,4}", "float[4] b = {4,3,2,1}"


@pytest.mark.parametrize("affine", ["t = Mul(n, s) y = Add(t, b)", "t = Mul(s, n) y = Add(b, t)"])
def test_scale_and_bias_go_into_the_norm(affine: str) -> None:
    assert_rewrites(
        PASS,
        f"{INTERFACE} <{ONES}, {SCALE}, {BIAS}>"
        f" {{ n = LayerNormalization<epsilon=0.001>(x, o) {affine} }}",
        f"{INTERFACE} <{SCALE}, {BIAS}> {{ y = LayerNormalization<epsilon=0.001>(x, s, b) }}",
    )


def test_a_bias_goes_into_a_norm_with_a_scale() -> None:
    assert_rewrites(
        PASS,
        f"{INTERFACE} <{SCALE}, {BIAS}> {{ n = LayerNormalization(x, s) y = Add(n, b) }}",
        f"{INTERFACE} <{SCALE}, {BIAS}> {{ y = LayerNormalization(x, s, b) }}",
    )


@pytest.mark.parametrize("shape", ["[1,1,4]", "[1,4]"])
def test_dims_of_one_before_the_scale_go(shape: str) -> None:
    assert_rewrites(
        PASS,
        f"{INTERFACE} <{ONES}, float{shape} s = {{1,2,3,4}}>"
        " { n = LayerNormalization(x, o) y = Mul(n, s) }",
        f"{INTERFACE} <{SCALE}> {{ y = LayerNormalization(x, s) }}",
    )


def test_one_number_is_broadcast_to_the_normalised_dims() -> None:
    assert_rewrites(
        PASS,
        f"{INTERFACE} <{SCALE}, float b = {{3}}> {{ n = LayerNormalization(x, s) y = Add(n, b) }}",
        f"{INTERFACE} <{SCALE}, float[4] b = {{3,3,3,3}}> {{ y = LayerNormalization(x, s, b) }}",
    )


def test_a_scale_may_be_computed() -> None:
    interface = "(float[N,2,4] x, float[4] s) => (float[N,2,4] y)"
    assert_rewrites(
        PASS,
        f"{interface} <{ONES}> {{ n = LayerNormalization(x, o) y = Mul(n, s) }}",
        f"{interface} {{ y = LayerNormalization(x, s) }}",
    )


def test_a_norm_with_another_scale_is_not_scaled_again() -> None:
    assert_unchanged(
        PASS,
        f"{INTERFACE} <{SCALE}, float[4] o = {{1,1,1,2}}>"
        " { n = LayerNormalization(x, o) y = Mul(n, s) }",
    )


def test_a_norm_with_a_bias_gets_no_second_one() -> None:
    assert_unchanged(
        PASS,
        f"{INTERFACE} <{SCALE}, {BIAS}> {{ n = LayerNormalization(x, s, b) y = Add(n, b) }}",
    )


def test_a_scale_with_more_dims_than_x_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,4] x, float[1,1,4] s) => (float[1,2,4] y) <float[4] o = {1,1,1,1}>"
        " { n = LayerNormalization(x, o) y = Mul(n, s) }",
        because="the rank of x is not known, or grows",
    )


@pytest.mark.parametrize("shape", ["[2,1]", "[N,1,4]"])
def test_what_differs_along_other_dims_stays(shape: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[N,2,4] x, float{shape} s) => (float[N,2,4] y) <float[4] o = {{1,1,1,1}}>"
        " { n = LayerNormalization(x, o) y = Mul(n, s) }",
        because="scale or bias is not per element",
    )
