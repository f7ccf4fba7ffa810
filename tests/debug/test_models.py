import numpy as np
import pytest

from tiered.debug import compare_models
from tiered.errors import RuntimeFailure, UsageError, VerificationError
from tiered.testing import parse

RIGHT = "(float[n,4] x) => (float[n,4] y) { y = Mul(x, x) }"
WRONG = "(float[n,4] x) => (float[n,4] y) { z = Neg(x)  y = Mul(x, z) }"


def test_a_model_is_like_itself_on_two_bindings() -> None:
    found = compare_models(parse(RIGHT), parse(RIGHT), numerics="exact")
    assert found.ok
    assert len(found.trials) == 2
    assert found.trials[0].dims != found.trials[1].dims
    assert found.trials[0].rows[0].argmax == 1.0


def test_each_output_is_measured() -> None:
    found = compare_models(parse(RIGHT), parse(WRONG))
    row = found.trials[0].rows[0]
    assert not found.ok
    assert row.difference.cosine == pytest.approx(-1.0)
    assert row.argmax is not None
    assert row.argmax < 1.0
    assert row.dtype == "float32"
    with pytest.raises(VerificationError, match="the second model computes something else"):
        found.raise_if_different()


def test_feeds_may_be_given() -> None:
    feeds = [{"x": np.array([[np.nan, 1, 2, 3]], np.float32)}]
    found = compare_models(parse(RIGHT), parse(WRONG), inputs=feeds)
    row = found.trials[0].rows[0]
    assert row.nans == (1, 1)
    assert row.difference.nan_mismatch == 0
    assert found.trials[0].rules == {"x": "given"}


def test_nans_that_moved_are_counted() -> None:
    root = "(float[4] x) => (float[4] y) { y = Sqrt(x) }"
    clean = "(float[4] x) => (float[4] y) { a = Abs(x)  y = Sqrt(a) }"
    feeds = [{"x": np.array([-1, 1, -2, 4], np.float32)}]
    row = compare_models(parse(root), parse(clean), inputs=feeds).trials[0].rows[0]
    assert row.nans == (2, 0)
    assert row.difference.nan_mismatch == 2


def test_a_tolerance_may_be_given() -> None:
    near = "(float[n,4] x) => (float[n,4] y) <float k = {1.001}> { a = Mul(x, x)  y = Mul(a, k) }"
    assert not compare_models(parse(RIGHT), parse(near)).ok
    assert compare_models(parse(RIGHT), parse(near), rtol=1e-2).ok
    with pytest.raises(UsageError, match="no tolerance"):
        compare_models(parse(RIGHT), parse(near), rtol=1e-2, numerics="exact")


def test_an_output_that_is_missing_is_a_difference() -> None:
    two = "(float[n,4] x) => (float[n,4] y, float[n,4] z) { y = Mul(x, x)  z = Neg(x) }"
    rows = compare_models(parse(two), parse(RIGHT)).trials[0].rows
    assert [row.difference.reason for row in rows] == ["", "is missing"]


def test_a_first_model_that_does_not_run_says_nothing_about_the_second() -> None:
    broken = "(float[2] x) => (float[2] y) { y = com.microsoft.Nothing(x) }"
    with pytest.raises(RuntimeFailure):
        compare_models(parse(broken), parse(RIGHT))
    with pytest.raises(VerificationError, match="but not the second"):
        compare_models(parse(RIGHT), parse(broken))


def test_a_second_model_that_fails_while_running_is_a_difference() -> None:
    gather = """(float[n,4] x) => (float[n,4] y) <int64[1] i = {9}> {
        g = Gather(x, i)  y = Add(x, g) }"""
    with pytest.raises(VerificationError, match="runs, but not the second"):
        compare_models(parse(RIGHT), parse(gather))
