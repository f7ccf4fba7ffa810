from tiered.testing import assert_rewrites, assert_unchanged


def test_a_double_sign_is_none() -> None:
    assert_rewrites(
        "cancel_neg",
        "(float[2,3] a, float[3] b) => (float[2,3] y) { n = Neg(b)  y = Sub(a, n) }",
        "(float[2,3] a, float[3] b) => (float[2,3] y) { y = Add(a, b) }",
    )


def test_integers_stay() -> None:
    assert_unchanged(
        "cancel_neg",
        "(int32[2] a, int32[2] b) => (int32[2] y) { n = Neg(b)  y = Sub(a, n) }",
        because="the smallest integer has no other sign",
    )


def test_a_sign_that_somebody_else_reads_stays() -> None:
    assert_unchanged(
        "cancel_neg",
        "(float[2] a, float[2] b) => (float[2] y, float[2] n) { n = Neg(b)  y = Sub(a, n) }",
        because="an inner value is a graph output",
    )
