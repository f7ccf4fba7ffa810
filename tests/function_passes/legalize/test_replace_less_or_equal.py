import pytest

from tiered.testing import assert_rewrites


@pytest.mark.parametrize("dtype", ["float", "float16", "double"])
def test_floats_are_less_or_equal(dtype: str) -> None:
    head = f"({dtype}[N,3] a, {dtype}[3] b) => (bool[N,3] y)"
    assert_rewrites(
        "replace_less_or_equal",
        f"{head} {{ y = LessOrEqual(a, b) }}",
        f"{head} {{ l = Less(a, b) e = Equal(a, b) y = Or(l, e) }}",
    )


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_are_not_greater(dtype: str) -> None:
    head = f"({dtype}[N,3] a, {dtype}[3] b) => (bool[N,3] y)"
    assert_rewrites(
        "replace_less_or_equal",
        f"{head} {{ y = LessOrEqual(a, b) }}",
        f"{head} {{ l = Less(b, a) y = Not(l) }}",
    )
