from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_tile"


def test_one_of_everything_is_the_tensor() -> None:
    assert_rewrites(
        PASS,
        "(float[N,3] x) => (float[N,3] y) <int64[2] r = {1,1}> { h = Tile(x, r)  y = Relu(h) }",
        "(float[N,3] x) => (float[N,3] y) { y = Relu(x) }",
    )


def test_a_scalar_is_tiled_by_nothing() -> None:
    assert_rewrites(
        PASS,
        "(float x) => (float y) <int64[0] r = {}> { h = Tile(x, r)  y = Relu(h) }",
        "(float x) => (float y) { y = Relu(x) }",
    )


def test_repeats_of_two_or_none_are_left_alone() -> None:
    for repeats in ("{2}", "{0}"):
        assert_unchanged(
            PASS,
            f"(float[3] x) => (float[N] y) <int64[1] r = {repeats}> {{ y = Tile(x, r) }}",
            because="it repeats or empties an axis",
        )


def test_repeats_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x, int64[1] r = {1}) => (float[N] y) { y = Tile(x, r) }",
        because="repeats is not a constant",
    )
