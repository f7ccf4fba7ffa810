import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "combine_parallel_batch_matmul"
IO = "(float[2,3,1] x) => (float[2,3,1] a, float[2,3,2] b, float[2,3,1] c)"
WEIGHTS = "float[2,1,1] u = {1,2}, float[2,1,2] v = {3,4,5,6}, float[2,1,1] w = {7,8}"
PRODUCTS = "a = MatMul(x, u) b = MatMul(x, v) c = MatMul(x, w)"


def test_stacks_of_matrices_stand_side_by_side() -> None:
    assert_rewrites(
        PASS,
        f"{IO} <{WEIGHTS}> {{ {PRODUCTS} }}",
        f"{IO} <float[2,1,4] w = {{1,3,4,7,2,5,6,8}}, int64[3] s = {{1,2,1}}>"
        " { m = MatMul(x, w) a, b, c = Split<axis=2>(m, s) }",
        min_depth=1,
    )


@pytest.mark.parametrize(
    ("products", "least", "because"),
    [
        ("a = MatMul(x, u) b = MatMul(x, v) c = Neg(x)", 1, "there are 2 parallel branches"),
        ("a = MatMul(x, u) b = MatMul(x, v) c = MatMul(x, u)", 1, "a weight has other consumers"),
        (PRODUCTS, 16, "sums of length 1 are too short"),
    ],
)
def test_it_declines(products: str, least: int, because: str) -> None:
    text = f"{IO} <{WEIGHTS}> {{ {products} }}"
    assert_unchanged(PASS, text, because=because, min_depth=least)
