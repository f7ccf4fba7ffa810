import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "sink_expand"


@pytest.mark.parametrize(
    ("op", "operand"), [("Expand", "int64[2] s = {4,3}"), ("Tile", "int64[2] s = {1,3}")]
)
def test_repeated_elements_are_computed_once(op: str, operand: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[4,1] x) => (float[4,3] y) <{operand}, float c = {{2}}>"
        f" {{ g = {op}(x, s)  h = Mul(g, c)  y = Relu(h) }}",
        f"(float[4,1] x) => (float[4,3] y) <{operand}, float c = {{2}}>"
        f" {{ g = Mul(x, c)  h = Relu(g)  y = {op}(h, s) }}",
    )


def test_both_operands_may_be_the_same() -> None:
    assert_rewrites(
        PASS,
        "(float[1] x, int64[1] s) => (float[N] y) { h = Expand(x, s)  y = Mul(h, h) }",
        "(float[1] x, int64[1] s) => (float[N] y) { h = Mul(x, x)  y = Expand(h, s) }",
    )


@pytest.mark.parametrize(
    ("op", "x", "z", "operand", "y"),
    [
        ("Expand", "4,1", "4,1", "int64[2] s = {4,3}", "4,3"),
        ("Expand", "4,1", "4,1", "int64[3] s = {2,1,1}", "2,4,1"),
        ("Expand", "N,1", "1", "int64[2] s = {1,3}", "N,3"),
        ("Tile", "4,2", "4,1", "int64[2] s = {1,3}", "4,6"),
        ("Tile", "4,2", "2", "int64[2] s = {3,1}", "12,2"),
    ],
)
def test_an_operand_of_that_shape_is_repeated_with_it(
    op: str, x: str, z: str, operand: str, y: str
) -> None:
    head = f"(float[{x}] x, float[{z}] z) => (float[{y}] y) <{operand}>"
    assert_rewrites(
        PASS,
        f"{head} {{ h = {op}(x, s)  y = Add(h, z) }}",
        f"{head} {{ h = Add(x, z)  y = {op}(h, s) }}",
    )


def test_a_value_and_its_repeats_are_added_once() -> None:
    head = "(float[4] x) => (float[3,4] y) <int64[2] s = {3,1}>"
    assert_rewrites(
        PASS,
        f"{head} {{ h = Expand(x, s)  y = Add(x, h) }}",
        f"{head} {{ h = Add(x, x)  y = Expand(h, s) }}",
    )


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("(float[1] x) => (float[4] y, float[4] z) <int64[1] s = {4}>"
         " { h = Expand(x, s)  y = Relu(h)  z = Exp(h) }",
         "the repeated elements have other consumers"),
        ("(float[] x) => (float[] y) <int64[1] s = {4}> { h = Expand(x, s)  y = Relu(h) }",
         "a rank is not known"),
        ("(float[4] x) => (float[4] y) <int64[1] s = {1}> { h = Expand(x, s)  y = Relu(h) }",
         "nothing is repeated"),
        ("(float[1] x, float[4] z) => (float[4] y) <int64[1] s = {4}>"
         " { h = Expand(x, s)  y = Add(h, z) }", "another operand may not repeat with it"),
        ("(float[4,1] x, float[N,1] z) => (float[4,2] y) <int64[2] s = {1,2}>"
         " { h = Expand(x, s)  y = Add(h, z) }", "another operand may not repeat with it"),
        ("(bool[1] x) => (float[2] y) <int64[1] s = {2}>"
         " { h = Expand(x, s)  y = Cast<to=1>(h) }", "it would move more bytes"),
    ],
)  # fmt: skip
def test_others_stay(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_operators_whose_kernels_know_the_place_stay() -> None:
    assert_unchanged(
        PASS,
        "(float[1] x) => (float[4] y) <int64[1] s = {4}> { h = Expand(x, s)  y = Exp(h) }",
    )


@pytest.mark.parametrize(("op", "sizes"), [("Expand", "{2,3}"), ("Tile", "{2,1}")])
@pytest.mark.parametrize(
    ("dtype", "name", "because"),
    [
        (16, "bfloat16", "may have no kernel for the dtype of the results"),
        (17, "float8e4m3fn", "does not take the dtype of the results"),
        (22, "int4", "does not take the dtype of the results"),
    ],
)
def test_few_operators_repeat_narrow_numbers(
    op: str, sizes: str, dtype: int, name: str, because: str
) -> None:
    text = (
        f"(float[1,3] x) => ({name}[2,3] y) <int64[2] s = {sizes}>"
        f" {{ h = {op}(x, s)  y = Cast<to={dtype}>(h) }}"
    )
    assert_unchanged(PASS, text, because=because)


@pytest.mark.parametrize("dtype", ["float", "double"])
def test_a_nan_of_uint32_differs_by_its_place(dtype: str) -> None:
    assert_unchanged(
        PASS,
        f"({dtype}[1,3] x) => (uint32[2,3] y) <int64[2] s = {{2,3}}>"
        " { h = Expand(x, s)  y = Cast<to=12>(h) }",
        because="a number that fits no integer differs by its place",
    )
