import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_idempotent"


@pytest.mark.parametrize("f", ["Abs", "Ceil", "Floor", "Relu", "Round", "Sign"])
def test_once_is_enough(f: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[N] x) => (float[N] y) {{ a = {f}(x)  b = {f}(a)  y = {f}(b) }}",
        f"(float[N] x) => (float[N] y) {{ y = {f}(x) }}",
    )


@pytest.mark.parametrize(
    ("dtype", "f"), [("float", "Neg"), ("int32", "Neg"), ("bool", "Not"), ("uint8", "BitwiseNot")]
)
def test_twice_is_nothing(dtype: str, f: str) -> None:
    assert_rewrites(
        PASS,
        f"({dtype}[N] x) => ({dtype}[N] y) {{ a = {f}(x)  b = {f}(a)  y = {f}(b) }}",
        f"({dtype}[N] x) => ({dtype}[N] y) {{ y = {f}(x) }}",
    )


def test_the_inner_one_may_have_other_users() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] y, float[N] z) { a = Relu(x)  b = Relu(a)  y = Exp(b)  z = Neg(a) }",
        "(float[N] x) => (float[N] y, float[N] z) { a = Relu(x)  y = Exp(a)  z = Neg(a) }",
    )


def test_two_outputs_keep_their_names() -> None:
    assert_rewrites(
        PASS,
        "(float[N] x) => (float[N] a, float[N] y) { a = Relu(x)  y = Relu(a) }",
        "(float[N] x) => (float[N] a, float[N] y) { a = Relu(x)  y = Identity(a) }",
    )


def test_operators_that_are_not_idempotent_stay() -> None:
    for f in ("Reciprocal", "Exp", "LeakyRelu", "Sqrt"):
        assert_unchanged(PASS, f"(float[N] x) => (float[N] y) {{ a = {f}(x)  y = {f}(a) }}")


@pytest.mark.parametrize("f", ["Ceil", "Floor", "Round"])
@pytest.mark.parametrize("g", ["Ceil", "Floor", "Round"])
def test_a_rounding_of_whole_numbers_is_nothing(f: str, g: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[N] x) => (float[N] y) {{ a = {g}(x)  y = {f}(a) }}",
        f"(float[N] x) => (float[N] y) {{ y = {g}(x) }}",
    )
