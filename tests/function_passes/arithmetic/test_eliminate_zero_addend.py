import pytest

from tiered import optimize
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "eliminate_zero_addend"


@pytest.mark.parametrize(
    ("dtype", "call", "zero"),
    [
        ("float", "Add(x, z)", "float z = {0}"),
        ("float", "Add(z, x)", "float[1,3] z = {0,-0.0,0}"),
        ("float", "Sub(x, z)", "float z = {-0.0}"),
        ("double", "Add(x, z)", "double[1] z = {0}"),
        ("float16", "Add(x, z)", "float16 z = {0}"),
        ("int32", "Add(x, z)", "int32 z = {0}"),
    ],
)
def test_a_zero_adds_nothing(dtype: str, call: str, zero: str) -> None:
    assert_rewrites(
        PASS,
        f"({dtype}[N,3] x) => ({dtype}[3,N] y) <{zero}> {{ h = {call}  y = Transpose(h) }}",
        f"({dtype}[N,3] x) => ({dtype}[3,N] y) {{ y = Transpose(x) }}",
    )


def test_bfloat16_has_zeros_too() -> None:
    assert_rewrites(
        PASS,
        "(bfloat16[3] x) => (bfloat16[3] y) <bfloat16 z = {0}> { h = Add(x, z)  y = Transpose(h) }",
        "(bfloat16[3] x) => (bfloat16[3] y) { y = Transpose(x) }",
        runtime="none",
    )


def test_a_zero_that_makes_x_larger_is_left_alone() -> None:
    for x, zero in (("3", "float[2,1] z = {0,0}"), ("N", "float[3] z = {0,0,0}")):
        assert_unchanged(
            PASS,
            f"(float[{x}] x) => (float[A,B] y) <{zero}, int64[2] s = {{1,-1}}>"
            " { h = Add(x, z)  y = Reshape(h, s) }",
            because="the zero may make x larger",
        )


def test_x_taken_away_from_zero_is_not_x() -> None:
    assert_unchanged(PASS, "(float[3] x) => (float[3] y) <float z = {0}> { y = Sub(z, x) }")


def test_other_numbers_are_left_alone() -> None:
    for number in ("0, 1e-45, 0", "0, 1, 0", "1, 0, 0"):
        assert_unchanged(
            PASS,
            f"(float[3] x) => (float[3] y) <float[3] z = {{{number}}}> {{ y = Add(x, z) }}",
        )


def test_signs_of_zeros_stay_up_to_level_2() -> None:
    text = "(float[3] x) => (float[3] y) <float z = {0}> { h = Add(x, z)  y = Relu(h) }"
    assert len(optimize(parse(text), opt_level=2).graph.node) == 2
    assert len(optimize(parse(text), opt_level=3).graph.node) == 1
