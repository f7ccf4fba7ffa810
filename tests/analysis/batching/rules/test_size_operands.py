"""Operators with sizes as operands: which sizes may be a batch, and what is refused."""

import pytest

from tests.analysis.batching.by_sample import assert_each_by_itself, changed
from tiered import ShapeError

ONE = {"x": 0}

FOLLOWED = {
    "Expand whose target is 1 along the batch": (
        "(float[2,1] x) => (float[2,3] y) <int64[2] s = {1,3}> { y = Expand(x, s) }"
    ),
    "Expand whose target is the batch": (
        "(float[2,1] x) => (float[2,3] y) <int64[2] s = {2,3}> { y = Expand(x, s) }"
    ),
    "Expand whose target has fewer dims": (
        "(float[2,1,1] x) => (float[2,1,3] y) <int64[1] s = {3}> { y = Expand(x, s) }"
    ),
    "Expand that adds a dim before the batch": (
        "(float[2,1] x) => (float[3,2,1] y) <int64[3] s = {3,2,1}> { y = Expand(x, s) }"
    ),
    "Tile of a batch": "(float[2,3] x) => (float[4,6] y) <int64[2] r = {2,2}> { y = Tile(x, r) }",
    "Resize by scales of other axes": (
        """(float[2,1,2] x) => (float[2,1,4] y) <float[3] s = {1,1,2}>
        { y = Resize<mode = "nearest">(x, , s) }"""
    ),
    "Resize to sizes with the batch": (
        """(float[2,1,2] x) => (float[2,1,4] y) <int64[3] s = {2,1,4}>
        { y = Resize<mode = "nearest">(x, , , s) }"""
    ),
    "Resize to sizes of other axes": (
        """(float[2,1,2] x) => (float[2,1,4] y) <int64[1] s = {4}>
        { y = Resize<axes = [2], mode = "nearest">(x, , , s) }"""
    ),
    "AffineGrid of as many images": (
        "(float[2,2,3] x) => (float[2,2,2,2] y) <int64[4] s = {2,1,2,2}> { y = AffineGrid(x, s) }"
    ),
}


@pytest.mark.parametrize("text", FOLLOWED.values(), ids=FOLLOWED)
@pytest.mark.parametrize("size", [4, "N"])
def test_each_sample_is_computed_as_by_itself(text: str, size: int | str) -> None:
    assert_each_by_itself(text, size)


REFUSED = {
    "the target of Expand is an input": (
        "(float[1,2] x, int64[2] t) => (float[1,2] y) { y = Expand(x, t) }",
        "its target is not known",
    ),
    "Expand repeats the batch": (
        "(float[1,2] x) => (float[3,2] y) <int64[2] s = {3,2}> { y = Expand(x, s) }",
        "it repeats the axis of a batch of 1",
    ),
    "the repeats of Tile are an input": (
        "(float[1,2] x, int64[2] r) => (float[1,2] y) { y = Tile(x, r) }",
        "its repeats are not known",
    ),
    "scales of Resize that are not 1": (
        "(float[1,1,2] x) => (float[2,1,2] y) <float[3] s = {2,1,1}> { y = Resize(x, , s) }",
        "it resizes the axis of a batch of 1",
    ),
    "Resize to sizes that keep the ratio of the batch": (
        """(float[1,1,2,2] x) => (float[1,1,2,2] y) <int64[4] s = {1,1,2,2}>
        { y = Resize<keep_aspect_ratio_policy = "not_larger">(x, , , s) }""",
        "it keeps the ratio of all sizes, the batch too",
    ),
    "the size of AffineGrid is an input": (
        "(float[1,2,3] x, int64[4] s) => (float[1,2,2,2] y) { y = AffineGrid(x, s) }",
        "its size is not known",
    ),
    "the sizes of Resize are an input": (
        "(float[1,1,2] x, int64[3] s) => (float[1,1,2] y) { y = Resize(x, , , s) }",
        "it resizes the axis of a batch of 1",
    ),
}


@pytest.mark.parametrize(("text", "because"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_follow_is_refused_with_its_reason(text: str, because: str) -> None:
    with pytest.raises(ShapeError, match=because):
        changed(text, 3, ONE)


SIZES = """(float[2,3] x) => ({result} y) <int64 zero = {{0}}, int64 one = {{1}}, int64[1] two = {{2}},
    int64[1] flat = {{-1}}> {{ s = Shape(x)  n = Gather(s, zero)  m = Reshape(n, flat)
    {nodes} }}"""


def test_what_is_made_of_the_size_of_the_batch_has_samples() -> None:
    nodes = "t = Concat<axis = 0>(m, two)  y = ConstantOfShape(t)"
    _, outputs, _, _ = changed(SIZES.format(result="float[2,2]", nodes=nodes), 6)
    assert outputs["y"] == (0, 1, 1)


@pytest.mark.parametrize(
    ("result", "nodes", "because"),
    [
        ("float[2,2]", "t = Concat<axis = 0>(m, m)  y = ConstantOfShape(t)", "no axis has whole"),
        ("int64[5]", "e = Add(n, n)  f = Add(e, one)  y = Range(zero, f, one)", "no axis has whole"),
        ("int64[2]", "y = Range(zero, n, one)", "'y' counts the samples"),
        ("int64[2]", "e = Add(n, n)  y = Range(n, e, one)", "its bounds are not known"),
    ],
)  # fmt: skip
def test_a_size_that_is_no_multiple_of_the_batch_is_refused(
    result: str, nodes: str, because: str
) -> None:
    with pytest.raises(ShapeError, match=because):
        changed(SIZES.format(result=result, nodes=nodes), 6)
