import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "canonicalize_ops"


@pytest.mark.parametrize("op", ["Add", "Mul"])
def test_a_constant_becomes_the_second_operand(op: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[2] x) => (float[2] y) <float c = {{3}}> {{ y = {op}(c, x) }}",
        f"(float[2] x) => (float[2] y) <float c = {{3}}> {{ y = {op}(x, c) }}",
    )


def test_masks_commute_too() -> None:
    assert_rewrites(
        PASS,
        "(bool[2] x) => (bool[2] y) <bool[2] c = {1,0}> { y = And(c, x) }",
        "(bool[2] x) => (bool[2] y) <bool[2] c = {1,0}> { y = And(x, c) }",
    )


@pytest.mark.parametrize("op", ["Sub", "Max", "Min", "Pow"])
def test_operators_that_depend_on_operand_order_stay(op: str) -> None:
    assert_unchanged(
        PASS, f"(float[2] x) => (float[2] y) <float c = {{3}}> {{ y = {op}(c, x) }}"
    )


def test_an_overridable_initializer_is_not_constant() -> None:
    assert_unchanged(
        PASS, "(float[2] x, float[2] c = {1,2}) => (float[2] y) { y = Add(c, x) }"
    )


@pytest.mark.parametrize("opset", [7, 8, 21])
def test_a_sum_of_two_is_an_add(opset: int) -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x, float[2,3] z) => (float[2,3] y) { y = Sum(x, z) }",
        "(float[2,3] x, float[2,3] z) => (float[2,3] y) { y = Add(x, z) }",
        opset=opset,
    )


def test_a_sum_of_three_stays() -> None:
    assert_unchanged(PASS, "(float[2] x, float[2] z) => (float[2] y) { y = Sum(x, z, x) }")


def test_a_transpose_gets_an_explicit_perm() -> None:
    assert_rewrites(
        PASS,
        "(float[2,N,4] x) => (float[4,N,2] y) { y = Transpose(x) }",
        "(float[2,N,4] x) => (float[4,N,2] y) { y = Transpose<perm=[2,1,0]>(x) }",
    )


def test_the_permutation_is_unknown_without_a_rank() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x, int64[n] s) => (y) { t = Reshape(x, s) y = Transpose(t) }",
        because="the rank of x is not known",
    )
