import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "fuse_expand_into_binary"


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div", "Equal", "Less", "GreaterOrEqual"])
def test_the_operator_broadcasts_by_itself(op: str) -> None:
    dtype = "bool" if op in ("Equal", "Less", "GreaterOrEqual") else "float"
    for operands in ("h, z", "z, h"):
        assert_rewrites(
            PASS,
            f"(float[3] x, float[2,3] z) => ({dtype}[2,3] y) <int64[2] s = {{2,3}}>"
            f" {{ h = Expand(x, s)  y = {op}({operands}) }}",
            f"(float[3] x, float[2,3] z) => ({dtype}[2,3] y) {{ y = {op}({operands.replace('h', 'x')}) }}",
        )


def test_symbolic_dims_are_the_same_by_name() -> None:
    assert_rewrites(
        PASS,
        "(float[1,3] x, float[N,3] z) => (float[N,3] y)"
        " { s = Shape(z)  h = Expand(x, s)  y = Add(h, z) }",
        "(float[1,3] x, float[N,3] z) => (float[N,3] y) { y = Add(x, z) }",
    )


def test_a_where_broadcasts_three() -> None:
    assert_rewrites(
        PASS,
        "(bool[1,3] c, int64[2,1] a, int64 b) => (int64[2,3] y) <int64[2] s = {2,3}>"
        " { h = Expand(c, s)  y = Where(h, a, b) }",
        "(bool[1,3] c, int64[2,1] a, int64 b) => (int64[2,3] y) { y = Where(c, a, b) }",
    )


def test_an_expand_that_others_need_stays() -> None:
    assert_rewrites(
        PASS,
        "(float[3] x, float[2,3] z) => (float[2,3] y, float[2,3] w) <int64[2] s = {2,3}>"
        " { h = Expand(x, s)  y = Add(h, z)  w = Exp(h) }",
        "(float[3] x, float[2,3] z) => (float[2,3] y, float[2,3] w) <int64[2] s = {2,3}>"
        " { h = Expand(x, s)  y = Add(x, z)  w = Exp(h) }",
    )


def test_a_body_reads_the_small_one_too() -> None:
    assert_rewrites(
        PASS,
        "(float[3] x, float[2,3] z, bool c) => (float[2,3] y) <int64[2] s = {2,3}> { h = Expand(x, s)"
        " y = If(c) <then_branch = t () => (float[2,3] a) { a = Add(h, z) },"
        " else_branch = e () => (float[2,3] b) { b = Identity(z) }> }",
        "(float[3] x, float[2,3] z, bool c) => (float[2,3] y) {"
        " y = If(c) <then_branch = t () => (float[2,3] a) { a = Add(x, z) },"
        " else_branch = e () => (float[2,3] b) { b = Identity(z) }> }",
    )


@pytest.mark.parametrize(
    ("x", "z", "shape"),
    [
        ("3", "3", "{2,3}"),
        ("3", "1,3", "{2,3}"),
        ("1,N", "2,N", "{2,4}"),
        ("1", "N", "{4}"),
        ("3", "3", "{1,3}"),
    ],
)
def test_an_expand_that_alone_enlarges_the_result_stays(x: str, z: str, shape: str) -> None:
    rank = shape.count(",") + 1
    dims = ",".join("ABC"[:rank])
    assert_unchanged(
        PASS,
        f"(float[{x}] x, float[{z}] z) => (float[{dims}] y) <int64[{rank}] s = {shape}>"
        " { h = Expand(x, s)  y = Add(h, z) }",
        because="only the Expand enlarges the result",
    )


def test_both_operands_from_one_expand_are_left_alone() -> None:
    assert_rewrites(
        PASS,
        "(float[3] x) => (float[2,3] y) <int64[2] s = {2,3}> { h = Expand(x, s)  y = Mul(h, h) }",
        "(float[3] x) => (float[2,3] y) <int64[2] s = {2,3}> { h = Expand(x, s)  y = Mul(x, h) }",
    )


def test_a_shape_that_is_computed_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x, float[2,3] z, int64[K] s) => (float[A,B] y) { h = Expand(x, s)  y = Add(h, z) }",
        because="only the Expand enlarges the result",
    )


@pytest.mark.parametrize("op", ["Pow", "Max", "Min"])
def test_operators_with_a_scalar_kernel_stay(op: str) -> None:
    assert_unchanged(
        PASS,
        "(float[1] x, float[3] z) => (float[3] y) <int64[1] s = {3}>"
        f" {{ h = Expand(x, s)  y = {op}(z, h) }}",
    )
