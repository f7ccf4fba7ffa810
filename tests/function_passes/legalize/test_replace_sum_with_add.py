from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_sum_with_add"
THREE = "(float[3] x, float[3] z) => (float[3] y) { y = Sum(x, z, x) }"


def test_a_sum_of_two_is_an_add() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x, float[3] z) => (float[N,3] y) { y = Sum(x, z) }",
        "(float[N,3] x, float[3] z) => (float[N,3] y) { y = Add(x, z) }",
    )


def test_a_sum_of_three_is_two_adds() -> None:
    made = "(float[3] x, float[3] z) => (float[3] y) { a = Add(x, z)  y = Add(a, x) }"
    assert_rewrites(PASS, THREE, made, numerics="reassociating")


def test_an_exact_sum_of_three_stays() -> None:
    assert_unchanged(PASS, THREE, because="the order of more than one sum is not defined")


def test_a_sum_of_one_stays() -> None:
    text = "(float[3] x) => (float[3] y) { y = Sum(x) }"
    assert_unchanged(PASS, text, because="it has one operand")
