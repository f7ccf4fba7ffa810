import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "unbroadcast"


@pytest.mark.parametrize("kind", ["Add", "Sub", "Mul", "Div"])
def test_an_axis_with_equal_elements_has_one(kind: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[2,3] x) => (float[2,3] y) <float[2,3] c = {{1,2,3,1,2,3}}> {{ y = {kind}(x, c) }}",
        f"(float[2,3] x) => (float[2,3] y) <float[1,3] c = {{1,2,3}}> {{ y = {kind}(x, c) }}",
    )


def test_all_axes() -> None:
    assert_rewrites(
        PASS,
        "(float[2,3] x) => (float[2,3] y) <float[2,3] c = {5,5,5,5,5,5}> { y = Mul(c, x) }",
        "(float[2,3] x) => (float[2,3] y) <float[1,1] c = {5}> { y = Mul(c, x) }",
    )


def test_a_condition() -> None:
    assert_rewrites(
        PASS,
        "(float[2] x, float[2] z) => (float[2] y) <bool[2] c = {1,1}> { y = Where(c, x, z) }",
        "(float[2] x, float[2] z) => (float[2] y) <bool[1] c = {1}> { y = Where(c, x, z) }",
    )


def test_only_the_axis_that_the_other_operand_has() -> None:
    assert_rewrites(
        PASS,
        "(float[2,1] x) => (float[2,3] y) <float[2,3] c = {5,5,5,5,5,5}> { y = Mul(x, c) }",
        "(float[2,1] x) => (float[2,3] y) <float[1,3] c = {5,5,5}> { y = Mul(x, c) }",
    )


@pytest.mark.parametrize("x", ["float[1] x", "float[N] x", "float x", "float[] x"])
def test_the_constant_may_be_all_that_has_the_size(x: str) -> None:
    assert_unchanged(
        PASS,
        f"({x}) => (float[M] y) <float[3] c = {{5,5,5}}> {{ y = Mul(x, c) }}",
        because="only the constant has the size",
    )


@pytest.mark.parametrize("kind", ["Pow", "Max", "PRelu"])
def test_operators_with_other_kernels_of_scalars(kind: str) -> None:
    assert_unchanged(
        PASS, f"(float[2] x) => (float[2] y) <float[2] c = {{5,5}}> {{ y = {kind}(x, c) }}"
    )


def test_zeros_of_both_signs_differ() -> None:
    assert_unchanged(PASS, "(float[2] x) => (float[2] y) <float[2] c = {0,-0.0}> { y = Div(x, c) }")
