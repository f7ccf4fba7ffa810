import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_expand"


@pytest.mark.parametrize(
    ("x", "shape"),
    [
        ("[2,3]", "{1,3}"),
        ("[2,3]", "{2,3}"),
        ("[2,3]", "{3}"),
        ("[N,3]", "{1,1}"),
        ("[N,M,3]", "{1,3}"),
        ("[0,3]", "{0,3}"),
        ("[0,3]", "{1,3}"),
        ("[1]", "{1}"),
    ],
)
def test_an_expand_that_does_not_enlarge_x_is_dropped(x: str, shape: str) -> None:
    rank = shape.count(",") + 1
    assert_rewrites(
        PASS,
        f"(float{x} x) => (float{x} y) <int64[{rank}] s = {shape}> {{ a = Expand(x, s) y = Relu(a) }}",
        f"(float{x} x) => (float{x} y) {{ y = Relu(x) }}",
    )


def test_no_size_at_all_expands_nothing() -> None:
    assert_rewrites(
        PASS,
        "(float x) => (float y) <int64[0] s = {}> { a = Expand(x, s) y = Relu(a) }",
        "(float x) => (float y) { y = Relu(x) }",
    )


def test_a_shape_that_is_computed_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x, int64[2] s) => (float[A,B] y) { y = Expand(x, s) }",
        because="shape is neither constant nor that of x",
    )


def test_an_unknown_rank_may_grow() -> None:
    assert_unchanged(
        PASS,
        "(float[6] x, int64[N] t) => (float[A] y) <int64[1] s = {1}>"
        " { h = Reshape(x, t) y = Expand(h, s) }",
        because="the rank of x is not known",
    )


def test_sizes_of_1_in_front_are_new_axes() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x) => (float[1,3] y) <int64[2] s = {1,3}> { y = Expand(x, s) }",
        because="the rank grows",
    )


@pytest.mark.parametrize(
    ("x", "shape", "y"),
    [("[1,3]", "{2,3}", "[2,3]"), ("[N,3]", "{4,3}", "[4,3]"), ("[1,3]", "{0,3}", "[0,3]")],
)
def test_a_dim_that_may_grow_does(x: str, shape: str, y: str) -> None:
    assert_unchanged(
        PASS,
        f"(float{x} x) => (float{y} y) <int64[2] s = {shape}> {{ y = Expand(x, s) }}",
        because="a dim may grow",
    )


@pytest.mark.parametrize("x", ["[?,?]", "[N,M]", "[2,3]", ""])
def test_an_expand_to_its_own_shape_goes(x: str) -> None:
    assert_rewrites(
        PASS,
        f"(float{x} x) => (float{x} y) {{ s = Shape(x) a = Expand(x, s) y = Relu(a) }}",
        f"(float{x} x) => (float{x} y) {{ y = Relu(x) }}",
    )


def test_so_does_one_of_an_unknown_rank() -> None:
    assert_rewrites(
        PASS,
        "(float[6] x, int64[R] t) => (float[A,B] y)"
        " { h = Reshape(x, t) s = Shape(h) e = Exp(h) y = Expand(e, s) }",
        "(float[6] x, int64[R] t) => (float[A,B] y) { h = Reshape(x, t) y = Exp(h) }",
    )


def test_the_shape_of_something_else_may_be_larger() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x, float[M] z) => (float[A] y) { s = Shape(z) y = Expand(x, s) }",
        because="shape is neither constant nor that of x",
    )
