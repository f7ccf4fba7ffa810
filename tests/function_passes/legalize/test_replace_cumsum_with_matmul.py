import numpy as np
import pytest

from tiered import Model, get_pass
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_cumsum_with_matmul"


def test_the_last_axis_is_a_product() -> None:
    head = "(float[N,3] x) => (float[N,3] y)"
    assert_rewrites(
        PASS,
        f"{head} <int64 a = {{-1}}> {{ y = CumSum(x, a) }}",
        f"{head} <float[3,3] t = {{1,1,1,0,1,1,0,0,1}}> {{ y = MatMul(x, t) }}",
    )


def test_another_axis_is_moved_to_the_end() -> None:
    head = "(float[2,3] x) => (float[2,3] y)"
    assert_rewrites(
        PASS,
        f"{head} <int64 a = {{0}}> {{ y = CumSum<exclusive=1>(x, a) }}",
        f"{head} <float[2,2] t = {{0,1,0,0}}> "
        "{ p = Transpose<perm=[1,0]>(x) m = MatMul(p, t) y = Transpose<perm=[1,0]>(m) }",
    )


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_every_direction(exclusive: int, reverse: int) -> None:
    text = (
        "(double[4] x) => (double[4] y) <int64 a = {0}> "
        f"{{ y = CumSum<exclusive={exclusive}, reverse={reverse}>(x, a) }}"
    )
    model = Model.from_proto(parse(text))
    get_pass(PASS).apply(model)
    assert not model.main.nodes_of("CumSum")
    x = {"x": np.array([1, 2, 4, 8], np.float64)}
    assert run(model.to_proto(), x)["y"].tolist() == run(parse(text), x)["y"].tolist()


def test_what_the_product_gets_wrong() -> None:
    """An Inf reaches the sums before it: it is for finite numbers only."""
    text = "(float[3] x) => (float[3] y) <int64 a = {0}> { y = CumSum(x, a) }"
    model = Model.from_proto(parse(text))
    get_pass(PASS).apply(model)
    x = {"x": np.array([1, np.inf, 1], np.float32)}
    assert run(parse(text), x)["y"][0] == 1
    assert np.isnan(run(model.to_proto(), x)["y"][0])


@pytest.mark.parametrize(
    ("text", "because"),
    [
        (
            "(int32[3] x) => (int32[3] y) <int64 a = {0}> { y = CumSum(x, a) }",
            "x is not known to be float or double",
        ),
        (
            "(float[N] x) => (float[N] y) <int64 a = {0}> { y = CumSum(x, a) }",
            "the dim is not a number",
        ),
        (
            "(float[5000] x) => (float[5000] y) <int64 a = {0}> { y = CumSum(x, a) }",
            "the triangle would have 25000000 elements",
        ),
        (
            "(float[3] x, int64 a) => (float[3] y) { y = CumSum(x, a) }",
            "the axis or the rank is not known",
        ),
    ],
)
def test_it_stays(text: str, because: str) -> None:
    assert_unchanged(PASS, text, because=because)


def test_an_axis_that_is_two_numbers_stays() -> None:
    assert_unchanged(
        PASS,
        "(float[2,3] x) => (float[2,3] y) <int64[2] a = {-1,-1}> { y = CumSum(x, a) }",
        because="the axis or the rank is not known",
    )
