import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_sigmoid"


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_a_sigmoid_is_written_by_the_exponential(dtype: str) -> None:
    head = f"({dtype}[N,4] x) => ({dtype}[N,4] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = Sigmoid(x) }}",
        f"{head} <{dtype} one = {{1}}> {{ n = Neg(x) e = Exp(n) s = Add(e, one) y = Div(one, s) }}",
    )


def test_halves_stay() -> None:
    text = "(float16[4] x) => (float16[4] y) { y = Sigmoid(x) }"
    assert_unchanged(PASS, text, because="16-bit intermediates may overflow")


def test_before_opset_7_a_constant_is_no_first_operand() -> None:
    text = "(float[2,3] x) => (float[2,3] y) { y = Sigmoid(x) }"
    assert_unchanged(PASS, text, because="broadcasts more than the last dims", opset=6)
