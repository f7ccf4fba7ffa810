import pytest

from tiered.testing import assert_rewrites, assert_unchanged

PASS = "legalize_cumsum"
HEAD = "(float[N,3] x) => (float[N,3] y)"


@pytest.mark.parametrize("attributes", ["", "<exclusive=1>", "<reverse=1>"])
def test_the_axis_counts_from_the_front(attributes: str) -> None:
    assert_rewrites(
        PASS,
        f"{HEAD} <int64 a = {{-1}}> {{ y = CumSum{attributes}(x, a) }}",
        f"{HEAD} <int64 a = {{1}}> {{ y = CumSum{attributes}(x, a) }}",
    )


def test_an_axis_from_the_front_stays() -> None:
    assert_unchanged(
        PASS,
        f"{HEAD} <int64 a = {{0}}> {{ y = CumSum(x, a) }}",
        because="the axis is not negative",
    )


def test_a_computed_axis_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[N,3] x, int64 a) => (float[N,3] y) { y = CumSum(x, a) }",
        because="the axis or the rank is not known",
    )


def test_an_axis_that_is_two_numbers_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x) => (float[2,3] y) <int64[2] a = {-1,-1}> { y = CumSum(x, a) }",
        because="the axis or the rank is not known",
    )
