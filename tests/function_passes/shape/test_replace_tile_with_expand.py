import pytest

from tiered import optimize
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_tile_with_expand"


@pytest.mark.parametrize("dtype", ["float", "int64", "bool"])
def test_dims_of_one_are_expanded(dtype: str) -> None:
    assert_rewrites(
        PASS,
        f"({dtype}[1,N,1] x) => ({dtype}[4,N,3] y) <int64[3] r = {{4,1,3}}> {{ y = Tile(x, r) }}",
        f"({dtype}[1,N,1] x) => ({dtype}[4,N,3] y) <int64[3] r = {{4,1,3}}> {{ y = Expand(x, r) }}",
    )


def test_no_elements_are_expanded_too() -> None:
    assert_rewrites(
        PASS,
        "(float[1,0] x) => (float[4,0] y) <int64[2] r = {4,1}> { y = Tile(x, r) }",
        "(float[1,0] x) => (float[4,0] y) <int64[2] r = {4,1}> { y = Expand(x, r) }",
    )


@pytest.mark.parametrize(
    ("dims", "repeats"), [("2,3", "{2,1}"), ("N,3", "{2,1}"), ("1,3", "{1,2}")]
)
def test_several_elements_are_copied_as_a_whole(dims: str, repeats: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[{dims}] x) => (float[A,B] y) <int64[2] r = {repeats}> {{ y = Tile(x, r) }}",
        because="an axis may have several elements",
    )


def test_no_copies_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[1,3] x) => (float[0,3] y) <int64[2] r = {0,1}> { y = Tile(x, r) }",
        because="it empties an axis",
    )


def test_repeats_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[1] x, int64[1] r = {2}) => (float[N] y) { y = Tile(x, r) }",
        because="repeats is not a constant",
    )


def test_an_operator_that_broadcasts_needs_no_copies() -> None:
    text = """(float[1,3] x, float[2,3] z) => (float[2,3] y) <int64[2] r = {2,1}> {
        h = Tile(x, r)  y = Add(h, z) }"""
    assert [node.op_type for node in optimize(parse(text), opt_level=2).graph.node] == ["Add"]
