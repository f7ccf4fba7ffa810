import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_instancenorm"
INTERFACE = "(float[N,2,3,3] x) => (float[N,2,3,3] y)"
NUMBERS = "int64[2] a = {2,3}, float e = {0.001}"
CENTRED = "m = ReduceMean(x, a) d = Sub(x, m)"
CHAIN = f"{CENTRED} q = Mul(d, d) v = ReduceMean(q, a) w = Add(v, e) r = Sqrt(w) n = Div(d, r)"


@pytest.mark.parametrize(
    ("numbers", "chain"),
    [
        ("", CHAIN),
        (", float p = {2}", CHAIN.replace("Mul(d, d)", "Pow(d, p)")),
        ("", CHAIN.replace("n = Div(d, r)", "i = Reciprocal(r) n = Mul(d, i)")),
    ],
)
def test_the_chain_with_scale_and_bias(numbers: str, chain: str) -> None:
    affine = "float[2,1,1] s = {1,2}, float[1,2,1,1] b = {3,4}"
    assert_rewrites(
        PASS,
        f"{INTERFACE} <{NUMBERS}{numbers}, {affine}> {{ {chain} t = Mul(n, s) y = Add(t, b) }}",
        f"{INTERFACE} <float[2] s = {{1,2}}, float[2] b = {{3,4}}>"
        " { y = InstanceNormalization<epsilon=0.001>(x, s, b) }",
    )


def test_without_scale_and_bias_they_are_one_and_zero() -> None:
    assert_rewrites(
        PASS,
        f"{INTERFACE} <{NUMBERS}> {{ {CHAIN.replace('n = Div', 'y = Div')} }}",
        f"{INTERFACE} <float[2] s = {{1,1}}, float[2] b = {{0,0}}>"
        " { y = InstanceNormalization<epsilon=0.001>(x, s, b) }",
    )


def test_a_factor_scales_the_bias_too() -> None:
    assert_rewrites(
        PASS,
        f"{INTERFACE} <float[2] s = {{1,2}}, float[2] b = {{3,4}}, float f = {{10}}>"
        " { n = InstanceNormalization(x, s, b) y = Mul(f, n) }",
        f"{INTERFACE} <float[2] s = {{10,20}}, float[2] b = {{30,40}}>"
        " { y = InstanceNormalization(x, s, b) }",
    )


@pytest.mark.parametrize(
    ("was", "has", "because"),
    [
        ("a = {2,3}", "a = {1,2}", "the mean is not over whole channels"),
        ("{0.001}", "{0}", "epsilon is not one positive number"),
        ("float e = {0.001}", "float[1,1,1,1,1] e = {1}", "x is not an image"),
    ],
)
def test_other_norms_stay(was: str, has: str, because: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[N,2,3,3] x) => (y) <{NUMBERS.replace(was, has)}> {{ {CHAIN} y = Abs(n) }}",
        because=because,
    )


def test_three_dims_are_a_layer_norm() -> None:
    assert_unchanged(
        PASS,
        f"(float[N,2,3] x) => (y) <{NUMBERS.replace('[2] a = {2,3}', '[1] a = {2}')}>"
        f" {{ {CHAIN} y = Abs(n) }}",
        because="x is not an image",
    )


def test_mean_and_variance_are_over_the_same_axes() -> None:
    assert_unchanged(
        PASS,
        f"{INTERFACE} <{NUMBERS}, int64[1] c = {{2}}>"
        f" {{ {CHAIN.replace('ReduceMean(q, a)', 'ReduceMean(q, c)')} y = Abs(n) }}",
        because="mean and variance are over other axes",
    )


def test_axes_that_callers_feed_are_no_constants() -> None:
    assert_unchanged(
        PASS,
        "(float[N,2,3,3] x, int64[2] a) => (float[N,2,3,3] y) <float e = {0.001}>"
        f" {{ {CHAIN} y = Abs(n) }}",
        because="the axes are not constant",
    )


def test_the_scale_needs_a_known_size() -> None:
    assert_unchanged(
        PASS,
        f"(float[2,C,3,3] x) => (float[2,C,3,3] y) <{NUMBERS}> {{ {CHAIN} y = Abs(n) }}",
        because="the number of channels is not known",
    )


def test_doubles_stay() -> None:
    assert_unchanged(
        PASS,
        "(double[2,2,3,3] x) => (double[2,2,3,3] y)"
        f" <{NUMBERS.replace('float', 'double')}> {{ {CHAIN} y = Abs(n) }}",
        because="InstanceNormalization has no kernel for the dtype",
    )


def test_numbers_that_differ_within_a_channel_stay() -> None:
    assert_unchanged(
        PASS,
        f"{INTERFACE} <float[2] s = {{1,2}}, float[2] b = {{3,4}}, float[3] f = {{1,2,3}}>"
        " { n = InstanceNormalization(x, s, b) y = Mul(f, n) }",
        because="scale or bias is not per channel",
    )


@pytest.mark.parametrize("then", ["y = Mul(n, f)", "y = Add(n, f)"])
def test_a_scale_that_overflows_stays_apart(then: str) -> None:
    assert_unchanged(
        PASS,
        f"{INTERFACE} <float[2] s = {{2e38,1}}, float[2] b = {{2e38,1}}, float[2,1,1] f = {{2e38,1}}>"
        f" {{ n = InstanceNormalization(x, s, b) {then} }}",
        because="the folded scale or bias is not finite",
    )


def test_a_reader_of_the_sign_of_a_zero_keeps_the_chain() -> None:
    assert_unchanged(
        PASS,
        f"{INTERFACE} <{NUMBERS}> {{ {CHAIN} y = Reciprocal(n) }}",
        because="a consumer reads the sign of a zero",
    )
