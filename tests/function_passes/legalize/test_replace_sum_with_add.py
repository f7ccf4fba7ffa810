from tiered.testing import assert_rewrites, assert_unchanged


def test_a_sum_of_two_is_an_add() -> None:
    assert_rewrites(
        "replace_sum_with_add",
        "(float[N,3] x, float[3] z) => (float[N,3] y) { y = Sum(x, z) }",
        "(float[N,3] x, float[3] z) => (float[N,3] y) { y = Add(x, z) }",
    )


def test_a_sum_of_three_stays() -> None:
    assert_unchanged(
        "replace_sum_with_add", "(float[3] x, float[3] z) => (float[3] y) { y = Sum(x, z, x) }"
    )
