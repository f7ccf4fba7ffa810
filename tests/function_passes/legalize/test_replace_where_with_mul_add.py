import numpy as np
import pytest

from tiered import Model, get_pass
from tiered.runtime import run
from tiered.testing import assert_rewrites, assert_unchanged, parse

PASS = "replace_where_with_mul_add"


def test_integers_are_products() -> None:
    head = "(bool[N,1] c, int32[3] a, int32[N,3] b) => (int32[N,3] y)"
    assert_rewrites(
        PASS,
        f"{head} {{ y = Where(c, a, b) }}",
        f"{head} {{ p = Cast<to=6>(c) n = Not(c) q = Cast<to=6>(n) s = Mul(p, a) t = Mul(q, b) "
        "y = Add(s, t) }",
    )


def test_finite_constants_are_products() -> None:
    head = "(bool[N,2] c) => (float[N,2] y) <float[2] a = {1,2}, float b = {-1e4}>"
    assert_rewrites(
        PASS,
        f"{head} {{ y = Where(c, a, b) }}",
        f"{head} {{ p = Cast<to=1>(c) n = Not(c) q = Cast<to=1>(n) s = Mul(p, a) t = Mul(q, b) "
        "y = Add(s, t) }",
    )


@pytest.mark.parametrize(
    "text",
    [
        "(bool[2] c, float[2] a, float[2] b) => (float[2] y) { y = Where(c, a, b) }",
        "(bool[1] c, float[1] a) => (float[1] y) <float[1] b = {-inf}> { y = Where(c, a, b) }",
    ],
)
def test_floats_may_be_infinite(text: str) -> None:
    assert_unchanged(PASS, text, because="x or y may be Inf or NaN")


def test_what_the_product_gets_wrong() -> None:
    """An Inf that is not selected: the user said that there is none."""
    model = Model.from_proto(
        parse("(bool[2] c, float[2] a, float[2] b) => (float[2] y) { y = Where(c, a, b) }")
    )
    get_pass(PASS).with_options(assume_finite=True).apply(model)
    inputs = {
        "c": np.array([True, False]),
        "a": np.array([1, np.inf], np.float32),
        "b": np.array([2, 3], np.float32),
    }
    (y,) = run(model.to_proto(), inputs).values()
    assert y[0] == 1
    assert np.isnan(y[1])


def test_a_bool_has_no_product() -> None:
    assert_unchanged(
        PASS,
        "(bool[2] c, bool[2] a, bool[2] b) => (bool[2] y) { y = Where(c, a, b) }",
        because="the dtype has no product",
    )


def test_an_unknown_dtype_stays() -> None:
    assert_unchanged(
        PASS,
        '<ir_version: 10, opset_import: ["" : 21, "own" : 1]> '
        "g (bool[2] c, float[2] x) => (float[2] y) { a = own.A(x) b = own.A(a) y = Where(c, a, b) }",
        because="the dtype of x is not known",
    )
