import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_rmsnorm"
INTERFACE = "(float[N,2,4] x) => (float[N,2,4] y)"
SCALE = "float[4] s = {1,2,3,4}"
NUMBERS = "int64[1] a = {-1}, float e = {0.001}"
MEAN = "q = Mul(x, x) v = ReduceMean(q, a) w = Add(v, e)"
CHAIN = f"{MEAN} r = Sqrt(w) n = Div(x, r)"


@pytest.mark.parametrize(
    ("numbers", "chain"),
    [
        ("", CHAIN),
        (", float p = {2}", CHAIN.replace("Mul(x, x)", "Pow(x, p)")),
        ("", f"{MEAN} r = Sqrt(w) i = Reciprocal(r) n = Mul(i, x)"),
        (", float o = {1}", f"{MEAN} r = Sqrt(w) i = Div(o, r) n = Mul(x, i)"),
        (", float h = {-0.5}", f"{MEAN} i = Pow(w, h) n = Mul(x, i)"),
    ],
)
def test_every_way_to_square_and_to_divide(numbers: str, chain: str) -> None:
    assert_rewrites(
        PASS,
        f"{INTERFACE} <{NUMBERS}{numbers}, {SCALE}> {{ {chain} y = Mul(s, n) }}",
        f"{INTERFACE} <{SCALE}> {{ y = RMSNormalization<epsilon=0.001>(x, s) }}",
        opset=23,
    )


def test_without_a_scale_it_is_one() -> None:
    assert_rewrites(
        PASS,
        f"{INTERFACE} <{NUMBERS}> {{ {MEAN} r = Sqrt(w) y = Div(x, r) }}",
        f"{INTERFACE} <float[4] s = {{1,1,1,1}}> {{ y = RMSNormalization<epsilon=0.001>(x, s) }}",
        opset=23,
    )


def test_before_opset_23_there_is_no_rms_norm() -> None:
    assert_unchanged(
        PASS,
        f"{INTERFACE} <{NUMBERS}> {{ {CHAIN} y = Abs(n) }}",
        opset=22,
        because="has no RMSNormalization",
    )


@pytest.mark.parametrize(
    ("was", "has", "because"),
    [
        ("a = {-1}", "a = {1}", "the axes are not the last dims"),
        ("{0.001}", "{0}", "epsilon is not one positive number"),
        ("float e = {0.001}", "float[1,1,1,1] e = {1}", "the rank of x is not known, or grows"),
    ],
)
def test_other_norms_stay(was: str, has: str, because: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[N,2,4] x) => (y) <{NUMBERS.replace(was, has)}> {{ {CHAIN} y = Abs(n) }}",
        opset=23,
        because=because,
    )


def test_axes_that_callers_feed_are_no_constants() -> None:
    assert_unchanged(
        PASS,
        "(float[N,2,4] x, int64[1] a) => (float[N,2,4] y) <float e = {0.001}>"
        f" {{ {CHAIN} y = Abs(n) }}",
        opset=23,
        because="the axes are not constant",
    )


def test_a_scale_with_more_dims_than_x_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,4] x, float[1,1,4] s) => (float[1,2,4] y) <float[4] o = {1,1,1,1}>"
        " { n = RMSNormalization(x, o) y = Mul(n, s) }",
        opset=23,
        because="the rank of x is not known, or grows",
    )


def test_the_scale_needs_a_known_size() -> None:
    assert_unchanged(
        PASS,
        f"(float[2,C] x) => (float[2,C] y) <{NUMBERS}> {{ {CHAIN} y = Abs(n) }}",
        opset=23,
        because="the size of the normalised dims is not known",
    )


def test_integers_stay() -> None:
    numbers = NUMBERS.replace("float e", "int32 e").replace("0.001", "1")
    assert_unchanged(
        PASS,
        f"(int32[2,4] x) => (int32[2,4] y) <{numbers}> {{ {CHAIN} y = Abs(n) }}",
        opset=23,
        because="x is no float",
    )


@pytest.mark.parametrize("shape", ["[2,1]", "[1,4]"])
def test_numbers_that_differ_along_other_dims_stay(shape: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[N,2,4] x, float{shape} s) => (float[N,2,4] y) <float[4] o = {{1,1,1,1}}>"
        " { n = RMSNormalization(x, o) y = Mul(n, s) }",
        opset=23,
        because="the scale is not per element",
    )


def test_a_double_that_32_bits_do_not_hold_stays_a_constant() -> None:
    numbers = NUMBERS.replace("float", "double")
    assert_unchanged(
        PASS,
        f"(double[N,2,4] x) => (double[N,2,4] y) <{numbers}> {{ {CHAIN} y = Abs(n) }}",
        opset=23,
        because="epsilon is a double that no attribute holds",
    )
