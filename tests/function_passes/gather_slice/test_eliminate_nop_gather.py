import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "eliminate_nop_gather"


def test_each_slice_in_order_is_the_tensor() -> None:
    for indices in ("0,1,2", "-3,-2,-1", "0,-2,2"):
        assert_rewrites(
            PASS,
            f"(float[N,3] x) => (float[N,3] y) <int64[3] i = {{{indices}}}> {{ h = Gather<axis=-1>(x, i)  y = Relu(h) }}",
            "(float[N,3] x) => (float[N,3] y) { y = Relu(x) }",
        )


def test_nothing_of_nothing_is_the_tensor() -> None:
    assert_rewrites(
        PASS,
        "(float[0,3] x) => (float[0,3] y) <int32[0] i = {}> { h = Gather(x, i)  y = Relu(h) }",
        "(float[0,3] x) => (float[0,3] y) { y = Relu(x) }",
    )


@pytest.mark.parametrize("indices", ["0,2,1", "0,1,1"])
def test_another_order_is_left_alone(indices: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[3] x) => (float[3] y) <int64[3] i = {{{indices}}}> {{ y = Gather(x, i) }}",
        because="the slices are in another order",
    )


@pytest.mark.parametrize(
    "indices", ["int64[2] i = {0,1}", "int64 i = {0}", "int64[1,3] i = {0,1,2}"]
)
def test_another_shape_is_left_alone(indices: str) -> None:
    assert_unchanged(
        PASS,
        f"(float[3,1] x, int64[N] j) => (float[K] y) <{indices}> {{ h = Gather(x, i)  y = Relu(h) }}",
        because="indices is not constant with the axis size",
    )


def test_indices_that_are_fed_are_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[3] x, int64[3] i = {0,1,2}) => (float[3] y) { y = Gather(x, i) }",
        because="indices is not constant with the axis size",
    )


def test_an_axis_of_unknown_size_is_left_alone() -> None:
    assert_unchanged(
        PASS,
        "(float[N] x) => (float[3] y) <int64[3] i = {0,1,2}> { y = Gather(x, i) }",
        because="the size of the axis is not known",
    )
