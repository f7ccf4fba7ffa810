import pytest

from tiered import get_pass
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_bn_with_mul_add"
VECTORS = "float[2] s = {2,0.5}, float[2] b = {1,-1}, float[2] m = {0.5,0.25}, float[2] v = {4,1}"
NORM = "y = BatchNormalization<epsilon=0.0>(x, s, b, m, v)"


@pytest.mark.parametrize(("dims", "ones"), [("1,2,2,2", ",1,1"), ("N,2", ""), ("N,2,W", ",1")])
def test_channels_are_scaled_and_shifted(dims: str, ones: str) -> None:
    interface = f"(float[{dims}] x) => (float[{dims}] y)"
    assert_rewrites(
        PASS,
        f"{interface} <{VECTORS}> {{ {NORM} }}",
        f"{interface} <float[2{ones}] a = {{1,0.5}}, float[2{ones}] c = {{0.5,-1.125}}>"
        " { t = Mul(x, a) y = Add(t, c) }",
    )


def test_epsilon_has_the_default_of_the_operator() -> None:
    interface = "(float[N,2] x) => (float[N,2] y)"
    vectors = VECTORS.replace("{4,1}", "{0.99999,0.99999}").replace("{0.5,0.25}", "{0.25,0.25}")
    assert_rewrites(
        PASS,
        f"{interface} <{vectors}> {{ y = BatchNormalization(x, s, b, m, v) }}",
        f"{interface} <float[2] a = {{2,0.5}}, float[2] c = {{0.5,-1.125}}>"
        " { t = Mul(x, a) y = Add(t, c) }",
    )


def test_the_factors_determine_the_dtype() -> None:
    assert_rewrites(
        PASS,
        f"(float16[N,2] x) => (float16[N,2] y) <{VECTORS}> {{ {NORM} }}",
        "(float16[N,2] x) => (float16[N,2] y)"
        " <float16[2] a = {15360,14336}, float16[2] c = {14336,48256}> { t = Mul(x, a) y = Add(t, c) }",
    )


def test_factors_beyond_the_dtype_stay_apart() -> None:
    assert_unchanged(
        PASS,
        "(float16[N,2] x) => (float16[N,2] y)"
        f" <{VECTORS.replace('{2,0.5}', '{2,1e5}')}> {{ {NORM} }}",
        because="a factor or an offset is not finite",
    )


def test_a_variance_below_0_has_no_root() -> None:
    assert_unchanged(
        PASS,
        f"(float[1,2] x) => (float[1,2] y) <{VECTORS.replace('{4,1}', '{4,0}')}> {{ {NORM} }}",
        because="var + epsilon is not positive",
    )


def test_parameters_that_callers_feed_are_no_constants() -> None:
    assert_unchanged(
        PASS,
        "(float[1,2] x, float[2] s) => (float[1,2] y)"
        f" <{VECTORS.replace('float[2] s = {2,0.5}, ', '')}> {{ {NORM} }}",
        because="a parameter of the batch norm is not a constant",
    )


def test_the_channel_axis_is_unknown_without_a_rank() -> None:
    assert_unchanged(
        PASS,
        f"(float[4] z, int64[n] d) => (y) <{VECTORS}> {{ x = Reshape(z, d) {NORM} }}",
        because="the rank or the dtype of x is not known",
    )


def test_further_outputs_mean_training() -> None:
    assert_unchanged(
        PASS,
        f"(float[1,2] x) => (float[1,2] y) <{VECTORS}>"
        " { y, nm, nv = BatchNormalization(x, s, b, m, v) }",
        opset=15,
        because="further outputs mean training mode",
    )


def test_it_makes_two_operators_of_one_and_so_is_opt_in() -> None:
    assert get_pass(PASS).info.opt_level is None
