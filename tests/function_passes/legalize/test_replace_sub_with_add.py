from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_sub_with_add"


def test_a_constant_is_negated() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x) => (float[N,3] y) <float[3] c = {1, 0, -2}> { y = Sub(x, c) }",
        "(float[N,3] x) => (float[N,3] y) <float[3] c = {-1, -0.0, 2}> { y = Add(x, c) }",
    )


def test_what_is_computed_is_negated_by_a_node() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x) => (float[N,3] y) <float c = {1}> { y = Sub(c, x) }",
        "(float[N,3] x) => (float[N,3] y) <float c = {1}> { n = Neg(x)  y = Add(c, n) }",
    )


def test_integers_stay() -> None:
    text = "(uint8[3] x) => (uint8[3] y) <uint8 c = {1}> { y = Sub(x, c) }"
    assert_unchanged(PASS, text, because="b is not of floats")
