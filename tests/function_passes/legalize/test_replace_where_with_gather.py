import numpy as np
import pytest

from tests.analysis.legalization.compared import assert_equal
from tiered.testing import assert_rewrites, assert_unchanged

PASS = "replace_where_with_gather"
XY = "float[2,3] x, float[2,3] y) => (float[2,3] z) "


@pytest.mark.parametrize("condition", ["bool[1]", "bool[1,1]"])
def test_one_condition_is_an_index(condition: str) -> None:
    assert_rewrites(
        PASS,
        f"({condition} c, {XY} {{ z = Where(c, x, y) }}",
        f"({condition} c, {XY} <int64[1] a = {{0}}, int64[1] d = {{0}}, int64[0] s = {{}}> {{ v = Unsqueeze(y, a) "
        "u = Unsqueeze(x, d) b = Concat<axis=0>(v, u) k = Cast<to=7>(c) i = Reshape(k, s) "
        "z = Gather(b, i) }",
    )


def test_a_condition_without_dims_is_an_index() -> None:
    assert_rewrites(
        PASS,
        f"(bool c, {XY} {{ z = Where(c, x, y) }}",
        f"(bool c, {XY} <int64[1] a = {{0}}, int64[1] d = {{0}}> {{ v = Unsqueeze(y, a) "
        "u = Unsqueeze(x, d) b = Concat<axis=0>(v, u) k = Cast<to=7>(c) z = Gather(b, k) }",
    )


@pytest.mark.parametrize("condition", [True, False])
def test_what_is_not_chosen_does_not_matter(condition: bool) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    y = np.array([2, np.nan, 0, -np.inf], np.float32)
    found = assert_equal(
        PASS,
        "(bool c, float[4] x, float[4] y) => (float[4] z) { z = Where(c, x, y) }",
        {"c": np.array(condition), "x": x, "y": y},
    )
    assert "Where" not in found


def test_tensors_of_symbolic_dims() -> None:
    found = assert_equal(
        PASS,
        "(bool c, float[N,2] x, float[N,2] y) => (float[N,2] z) { z = Where(c, x, y) }",
        {"c": np.array(True), "x": np.zeros((0, 2), np.float32), "y": np.zeros((0, 2), np.float32)},
    )
    assert "Where" not in found


def test_several_conditions_stay() -> None:
    assert_unchanged(
        PASS,
        f"(bool[3] c, {XY} {{ z = Where(c, x, y) }}",
        because="the condition is not known to be one element",
    )


def test_tensors_that_broadcast_stay() -> None:
    assert_unchanged(
        PASS,
        "(bool c, float[3] x, float[2,3] y) => (float[2,3] z) { z = Where(c, x, y) }",
        because="x and y are not known to have one shape",
    )


def test_a_condition_of_more_dims_stays() -> None:
    assert_unchanged(
        PASS,
        "(bool[1,1] c, float[3] x, float[3] y) => (float[1,3] z) { z = Where(c, x, y) }",
        because="the condition adds dims to the result",
    )
