import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_arithmetic"


@pytest.mark.parametrize(
    ("dtype", "call", "unit"),
    [
        ("float", "Mul(x, c)", "float c = {1}"),
        ("float", "Mul(c, x)", "float[1] c = {1}"),
        ("float", "Div(x, c)", "float[1,3] c = {1,1,1}"),
        ("double", "Sub(x, c)", "double c = {0}"),
        ("float", "Add(x, c)", "float c = {-0.0}"),
        ("float16", "Mul(x, c)", "float16 c = {15360}"),
        ("float", "Pow(x, c)", "int64 c = {1}"),
        ("int32", "Pow(x, c)", "float c = {1}"),
        ("int32", "Add(c, x)", "int32 c = {0}"),
        ("int64", "Sub(x, c)", "int64 c = {0}"),
        ("int32", "Div(x, c)", "int32 c = {1}"),
        ("bool", "And(x, c)", "bool c = {1}"),
        ("bool", "Or(c, x)", "bool c = {0}"),
        ("bool", "Xor(x, c)", "bool c = {0}"),
        ("uint8", "BitwiseAnd(x, c)", "uint8 c = {255}"),
        ("int32", "BitwiseAnd(x, c)", "int32 c = {-1}"),
        ("int32", "BitwiseOr(x, c)", "int32 c = {0}"),
        ("int32", "BitwiseXor(c, x)", "int32 c = {0}"),
        ("uint8", 'BitShift<direction="LEFT">(x, c)', "uint8 c = {0}"),
    ],
)
def test_a_neutral_constant_changes_no_bit(dtype: str, call: str, unit: str) -> None:
    assert_rewrites(
        PASS,
        f"({dtype}[N,3] x) => ({dtype}[3,N] y) <{unit}> {{ h = {call}  y = Transpose(h) }}",
        f"({dtype}[N,3] x) => ({dtype}[3,N] y) {{ y = Transpose(x) }}",
    )


def test_an_output_that_is_an_input_needs_a_node() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2,3] y) <float[1] z = {0}> { y = Sub(x, z) }",
        "(float[2,3] x) => (float[2,3] y) { y = Identity(x) }",
    )


def test_a_one_that_makes_x_larger_is_an_expand() -> None:
    assert_rewrites(
        PASS,
        "(float[3] x) => (float[2,3] y) <float[2,1] o = {1,1}> { y = Mul(x, o) }",
        "(float[3] x) => (float[2,3] y) <int64[2] s = {2,3}> { y = Expand(x, s) }",
    )


def test_old_opsets_too() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y) <float c = {1}> { h = Mul(x, c)  y = Exp(h) }",
        "(float[N] x) => (float[N] y) { y = Exp(x) }",
        opset=7,
    )


def test_a_scalar_is_neutral_to_an_unknown_rank() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x, int64[K] s) => (float[M] y) <float c = {1}> { r = Reshape(x, s)  h = Mul(r, c)  y = Exp(h) }",
        "(float[N] x, int64[K] s) => (float[M] y) { r = Reshape(x, s)  y = Exp(r) }",
        runtime="none",
    )


def test_zeros_of_the_other_sign_are_dropped_on_demand() -> None:
    for call, zero in (("Add(x, c)", "0"), ("Sub(x, c)", "-0.0")):
        before = f"(int32[N] x) => (float[N] y) <float c = {{{zero}}}> {{ f = Cast<to=1>(x)  h = {call.replace('x', 'f')}  y = Abs(h) }}"
        after = "(int32[N] x) => (float[N] y) { f = Cast<to=1>(x)  y = Abs(f) }"
        assert_unchanged(PASS, before, because="the constant is not neutral")
        assert_rewrites(PASS, before, after, allow_signed_zero=True)


@pytest.mark.parametrize(
    "call", ["Add(x, c)", "Mul(x, c)", "Div(c, x)", "Sub(c, x)", "Pow(c, x)", "Pow(x, c)"]
)
def test_other_constants_and_other_sides_are_left_alone(call: str) -> None:
    number = "2" if call in ("Mul(x, c)", "Pow(x, c)") else "0"
    assert_unchanged(
        PASS,
        f"(float[N] x) => (float[N] y) <float c = {{{number}}}> {{ y = {call} }}",
        because=None if "(c" in call else "the constant is not neutral",
    )


def test_one_element_that_is_not_neutral_is_enough() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x) => (float[3] y) <float[3] c = {1,1,2}> { y = Mul(x, c) }",
        because="the constant is not neutral",
    )


def test_times_zero_is_no_zero() -> None:
    assert_unchanged(PASS, "(float[3] x) => (float[3] y) <float c = {0}> { y = Mul(x, c) }")
    assert_unchanged(PASS, "(float[3] x) => (float[3] y) { y = Sub(x, x) }")
    assert_unchanged(PASS, "(float[3] x) => (float[3] y) { y = Div(x, x) }")


@pytest.mark.parametrize(("x", "unit"), [("N", "[2,1] c = {1,1}"), ("N,M", "[1,1,1] c = {1}")])
def test_a_constant_that_may_enlarge_x_stays(x: str, unit: str) -> None:
    dims = "A,B,C" if "M" in x else "A,B"
    assert_unchanged(
        PASS,
        f"(float[{x}] x) => (float[{dims}] y) <float{unit}> {{ y = Mul(x, c) }}",
        because="the constant may make x larger",
    )


def test_large_integers_do_not_survive_a_pow() -> None:
    assert_unchanged(
        PASS,
        "(int64[N] x) => (int64[N] y) <int64 c = {1}> { y = Pow(x, c) }",
        because="Pow rounds 64-bit integers to floats",
    )


def test_a_constant_that_may_be_fed_is_none() -> None:
    assert_unchanged(PASS, "(float[N] x, float c = {1}) => (float[N] y) { y = Mul(x, c) }")
