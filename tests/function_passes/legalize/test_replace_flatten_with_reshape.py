import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_flatten_with_reshape"


@pytest.mark.parametrize(
    ("axis", "shape"), [(0, "1,24"), (1, "2,12"), (2, "6,4"), (3, "24,1"), (-1, "6,4")]
)
def test_dims_are_joined_by_a_reshape(axis: int, shape: str) -> None:
    assert_rewrites(
        PASS,
        f"(float[2,3,4] x) => (float[{shape}] y) {{ y = Flatten<axis={axis}>(x) }}",
        f"(float[2,3,4] x) => (float[{shape}] y) <int64[2] s = {{{shape}}}> {{ y = Reshape(x, s) }}",
    )


def test_a_single_number_is_a_matrix() -> None:
    assert_rewrites(
        PASS,
        "(bool x) => (bool[1,1] y) { y = Flatten<axis=0>(x) }",
        "(bool x) => (bool[1,1] y) <int64[2] s = {1,1}> { y = Reshape(x, s) }",
    )


def test_a_symbolic_dim_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[N,3] x) => (float[N,3] y) { y = Flatten(x) }",
        because="a dim of x is not known",
    )


def test_an_empty_tensor_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[0,3] x) => (float[0,3] y) { y = Flatten(x) }",
        because="x has no elements",
    )


def test_an_unknown_rank_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x, int64[n] s) => (float[A,B] y) { r = Reshape(x, s) y = Flatten(r) }",
        because="the rank of x is not known",
    )
