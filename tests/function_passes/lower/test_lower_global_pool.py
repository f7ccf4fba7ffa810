import pytest

from tests.analysis.legalization.compared import assert_close, floats
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "lower_global_pool"


def test_the_image_is_reduced_whatever_its_size() -> None:
    head = "(float[N,3,H,W] x) => (float[N,3,1,1] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = GlobalAveragePool(x) }}",
        f"{head} <int64[2] a = {{2,3}}> {{ y = ReduceMean(x, a) }}",
    )


@pytest.mark.parametrize(
    ("pool", "reduction"),
    [
        ("GlobalMaxPool", "ReduceMax"),
        ("GlobalLpPool", "ReduceL2"),
        ("GlobalLpPool<p=1>", "ReduceL1"),
    ],
)
def test_other_pools(pool: str, reduction: str) -> None:
    text = f"(float[N,3,L] x) => (float[N,3,1] y) {{ y = {pool}(x) }}"
    assert assert_close(PASS, text, {"x": floats(2, 3, 5)}) == [reduction]


def test_no_reduction_has_another_power() -> None:
    text = "(float[N,3,L] x) => (float[N,3,1] y) { y = GlobalLpPool<p=3>(x) }"
    assert_unchanged(PASS, text, because="no reduction has p = 3")


def test_the_rank_must_be_known() -> None:
    text = (
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> g (float[1,1,4] x) => '
        "(float[1,1,1] y) { a = own.A(x) y = GlobalMaxPool(a) }"
    )
    assert_unchanged(PASS, text, because="the rank of x is not known")
