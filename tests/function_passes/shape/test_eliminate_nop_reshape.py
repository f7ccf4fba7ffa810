import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_reshape"


@pytest.mark.parametrize(
    ("x", "shape"),
    [
        ("[2,3]", "{2,-1}"),
        ("[2,3]", "{2,3}"),
        ("[2,3]", "{0,0}"),
        ("[2,3]", "{-1,0}"),
        ("[N,3]", "{-1,3}"),
        ("[N,3]", "{0,3}"),
        ("[N,M]", "{0,-1}"),
        ("[N,M]", "{0,0}"),
        ("[0,3]", "{-1,3}"),
        ("[0,3]", "{0,3}"),
        ("[N]", "{-1}"),
    ],
)
def test_a_reshape_to_the_same_shape_goes(x: str, shape: str) -> None:
    rank = shape.count(",") + 1
    assert_rewrites(
        PASS,
        f"(float{x} x) => (float{x} y) <int64[{rank}] s = {shape}> {{ a = Reshape(x, s) y = Relu(a) }}",
        f"(float{x} x) => (float{x} y) {{ y = Relu(x) }}",
    )


def test_a_scalar_stays_a_scalar() -> None:
    assert_rewrites(
        PASS,
        "(float x) => (float y) <int64[0] s = {}> { a = Reshape(x, s) y = Relu(a) }",
        "(float x) => (float y) { y = Relu(x) }",
    )


def test_with_allowzero_a_0_is_a_size() -> None:
    assert_rewrites(
        PASS,
        "(float[0,3] x) => (float[0,3] y) <int64[2] s = {0,3}>"
        " { a = Reshape<allowzero=1>(x, s) y = Relu(a) }",
        "(float[0,3] x) => (float[0,3] y) { y = Relu(x) }",
    )
    assert_unchanged(
        PASS,
        "(float[N,3] x) => (float[0,3] y) <int64[2] s = {0,3}> { y = Reshape<allowzero=1>(x, s) }",
        because="a dim may change",
    )


def test_a_shape_that_is_computed_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x, int64[2] s) => (float[A,B] y) { y = Reshape(x, s) }",
        because="shape is neither constant nor that of x",
    )
    assert_unchanged(
        PASS,
        "(float[2,3] x, int64[2] s = {2,3}) => (float[A,B] y) { y = Reshape(x, s) }",
        because="shape is neither constant nor that of x",
    )


def test_an_unknown_rank_may_change() -> None:
    assert_unchanged(
        PASS,
        "(float[6] x, int64[N] t) => (float[2,3] y) <int64[2] s = {2,3}>"
        " { h = Reshape(x, t) y = Reshape(h, s) }",
        because="the rank of x is not known",
    )


def test_another_rank_is_another_shape() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x) => (float[2,3,1] y) <int64[3] s = {2,3,1}> { y = Reshape(x, s) }",
        because="the rank changes",
    )


@pytest.mark.parametrize(
    ("x", "shape", "y"),
    [
        ("[2,3]", "{3,2}", "[3,2]"),
        ("[N,3]", "{2,-1}", "[2,M]"),
        ("[N,M]", "{-1,4}", "[K,4]"),
        ("[N]", "{4}", "[4]"),
    ],
)
def test_a_dim_that_may_change_does(x: str, shape: str, y: str) -> None:
    rank = shape.count(",") + 1
    assert_unchanged(
        PASS,
        f"(float{x} x) => (float{y} y) <int64[{rank}] s = {shape}> {{ y = Reshape(x, s) }}",
        because="a dim may change",
    )


def test_in_an_empty_tensor_the_rest_could_be_anything() -> None:
    assert_unchanged(
        PASS,
        "(float[0,3] x) => (float[0,B] y) <int64[2] s = {0,-1}> { y = Reshape(x, s) }",
        because="-1 beside a dim of 0 is ambiguous",
    )


@pytest.mark.parametrize("x", ["[?,?]", "[N,M]", "[2,3]", "[0,M]"])
@pytest.mark.parametrize("attributes", ["", "<allowzero=1>"])
def test_a_reshape_to_its_own_shape_goes(x: str, attributes: str) -> None:
    assert_rewrites(
        PASS,
        f"(float{x} x) => (float{x} y) {{ s = Shape(x) a = Reshape{attributes}(x, s) y = Relu(a) }}",
        f"(float{x} x) => (float{x} y) {{ y = Relu(x) }}",
    )


def test_a_reshape_of_unknown_rank_to_the_shape_of_its_source_is_dropped() -> None:
    assert_rewrites(
        PASS,
        "(float[6] x, int64[R] t) => (float[A,B] y)"
        " { h = Reshape(x, t) s = Shape(h) e = Exp(h) y = Reshape(e, s) }",
        "(float[6] x, int64[R] t) => (float[A,B] y) { h = Reshape(x, t) y = Exp(h) }",
    )


@pytest.mark.parametrize(
    ("x", "constant", "inner"),
    [
        ("[N,4]", "<int64[2] t = {2,-1}>", "Reshape(x, t)"),
        ("[2,3]", "<int64[1] t = {-1}>", "Reshape(x, t)"),
        ("[0,3]", "", "Flatten(x)"),
        ("[N]", "<int64[1] t = {1}>", "Unsqueeze(x, t)"),
        # One dim is 0 if any was: it is the one that a 0 at its place copies.
        ("[N,M]", "<int64[1] t = {-1}>", "Reshape(x, t)"),
        ("[N,M]", "", "Flatten<axis=1>(x)"),
        ("[N,M]", "<int64[1] t = {-1}>", "Unsqueeze(x, t)"),
    ],
)
def test_shapes_between_that_do_not_last_are_not_observable(
    x: str, constant: str, inner: str
) -> None:
    assert_rewrites(
        PASS,
        f"(float{x} x) => (float{x} y) {constant}"
        f" {{ h = {inner} s = Shape(x) r = Reshape(h, s) y = Relu(r) }}",
        f"(float{x} x) => (float{x} y) {{ y = Relu(x) }}",
    )


def test_with_allowzero_all_dims_may_be_0() -> None:
    assert_rewrites(
        PASS,
        "(float[?,?] x, int64[R] t) => (float[?,?] y)"
        " { h = Reshape(x, t) s = Shape(x) r = Reshape<allowzero=1>(h, s) y = Relu(r) }",
        "(float[?,?] x, int64[R] t) => (float[?,?] y) { y = Relu(x) }",
    )


@pytest.mark.parametrize(
    ("x", "inner"),
    [
        # Of [0,0] into [3,0], and back: the first 0 copies the 3.
        ("[N,M]", "Reshape(x, t)"),
        ("[0,0]", "Reshape(x, t)"),
        ("[N,M]", "Unsqueeze(x, first)"),
        # Of [0,0,4] into [0,4], and back: the second 0 copies the 4.
        ("[N,M,4]", "Reshape(x, columns)"),
        ("[N,M]", "Flatten<axis=0>(x)"),
    ],
)
def test_a_0_may_copy_another_dim(x: str, inner: str) -> None:
    assert_unchanged(
        PASS,
        f"(float{x} x, int64[2] t) => (float[A,B] y) <int64[1] first = {{0}}, int64[2] columns = {{-1,4}}>"
        f" {{ h = {inner} s = Shape(x) y = Reshape(h, s) }}",
        because="several dims may be 0",
    )


@pytest.mark.parametrize(
    "shape", ["s = Shape(z)", "s = Shape<end=1>(x)", "d = Transpose(x) s = Shape(d)"]
)
def test_the_shape_of_something_else_is_not_its_own(shape: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[N] x, float[M] z) => (float[A] y) {{ {shape} y = Reshape(x, s) }}",
        because="shape is neither constant nor that of x",
    )
