import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_where_mask"


def masked(number: str, dtype: str = "float") -> str:
    return (
        f"(bool[N,4] m, {dtype}[N,4] x) => ({dtype}[N,4] y) <{dtype} c = {{{number}}}>"
        " { t = Where(m, x, c) y = Softmax<axis=-1>(t) }"
    )


def test_the_mask_is_added() -> None:
    assert_rewrites(
        PASS,
        "(bool[N,4] m, float[N,4] x) => (float[N,4] y) <float c = {-1e9}, bool[4] k = {1,0,1,1}>"
        " { o = Or(m, k) t = Where(o, x, c) y = Softmax<axis=-1>(t) }",
        "(bool[N,4] m, float[N,4] x) => (float[N,4] y) <float c = {-1e9}, bool[4] k = {1,0,1,1}>"
        " { o = Or(m, k) n = Not(o) f = Cast<to=1>(n) p = Mul(f, c) t = Add(x, p)"
        " y = Softmax<axis=-1>(t) }",
    )


def test_masked_fill_has_the_masked_value_first() -> None:
    head = "(bool[N,4] m, float[N,4] x) => (float[N,4] y)"
    constants = "float c = {-1e9}, bool[4] k = {1,0,1,1}"
    assert_rewrites(
        PASS,
        f"{head} <{constants}> {{ o = And(m, k) t = Where(o, c, x) y = Softmax<axis=-1>(t) }}",
        f"{head} <{constants}> {{ o = And(m, k) f = Cast<to=1>(o) p = Mul(f, c) t = Add(x, p)"
        " y = Softmax<axis=-1>(t) }",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (masked("-inf"), "is too high"),
        (masked("-5"), "is too high"),
        (masked("-1e9", "double"), "x is not known to be float or float16"),
        (
            "(bool[4] m, float[4] x, float c) => (float[4] y)"
            " { t = Where(m, x, c) y = Softmax<axis=-1>(t) }",
            "the masked value is not one constant number",
        ),
    ],
)
def test_it_declines(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)
