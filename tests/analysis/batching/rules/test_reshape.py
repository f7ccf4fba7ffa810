"""Reshapes, Flatten, Squeeze and Unsqueeze: where the samples are after them."""

import pytest

from tests.analysis.batching.by_sample import assert_each_by_itself, changed
from tiered import ShapeError

HELD = """<int64[2] flat = {{2,6}}, int64[2] rest = {{2,-1}}, int64[2] any = {{-1,6}},
    int64[2] copied = {{0,6}}, int64[3] four = {{2,2,3}}, int64[2] joined = {{4,3}},
    int64[3] apart = {{2,3,2}}, int64[2] all = {{6,2}}, int64[1] one = {{1}}, int64[1] two = {{2}},
    int64[1] none = {{0}}, int64[1] less = {{-1}}>"""


def text(nodes: str, x: str = "2,2,3", y: str = "A,B") -> str:
    return f"(float[{x}] x) => (float[{y}] y) {HELD.format()} {{ {nodes} }}"


FOLLOWED = {
    "a target with the batch": text("y = Reshape(x, flat)"),
    "a target with the batch and an inferred size": text("y = Reshape(x, rest)"),
    "a target that infers the batch": text("y = Reshape(x, any)"),
    "a target that copies the batch": text("y = Reshape(x, copied)"),
    "a batch that is merged with another axis": text("y = Reshape(x, joined)"),
    "a batch that is merged and split again": text(
        "a = Reshape(x, joined)  y = Reshape(a, four)", y="A,B,C"
    ),
    "a flattened sample": text("y = Flatten(x)"),
    "a flattened batch": text("y = Flatten<axis = 2>(x)"),
    "a flattened batch counted from the end": text("y = Flatten<axis = -2>(x)"),
    "an axis that goes": text("y = Squeeze(x, one)", x="2,1,3"),
    "axes that go by their size": text("y = Squeeze(x)", x="2,1,3"),
    "an axis that comes behind": text("y = Unsqueeze(x, less)", y="A,B,C,D"),
    "an axis that comes before": text("y = Unsqueeze(x, none)", y="A,B,C,D"),
    "a target of the size of the batch": text(
        """s = Shape(x)  n = Slice(s, none, one)  t = Concat<axis = 0>(n, less)
        y = Reshape(x, t)"""
    ),
}


@pytest.mark.parametrize("name", FOLLOWED)
@pytest.mark.parametrize("size", [4, "N"])
def test_each_sample_is_computed_as_by_itself(name: str, size: int | str) -> None:
    assert_each_by_itself(FOLLOWED[name], size)


@pytest.mark.parametrize(("axis", "batch"), [(1, 1), (1, 0), (-1, 2), (2, 1)])
def test_flatten_keeps_samples_on_their_side(axis: int, batch: int) -> None:
    assert_each_by_itself(text(f"y = Flatten<axis = {axis}>(x)"), 4, {"x": batch})


@pytest.mark.parametrize(
    ("model", "because"),
    [
        (
            "(float[2,6] x, int64[2] t) => (float[2,6] y) { y = Reshape(x, t) }",
            "its target is not known",
        ),
        (text("y = Unsqueeze(x, t)", y="A,B,C,D").replace("3] x)", "3] x, int64[1] t)"),
         "its axes are not constant"),
        (
            text("y = Reshape(x, all)", x="2,2,3").replace("{{6,2}}", "{{3,4}}").replace("{6,2}", "{3,4}"),
            "which is baked into its constant 'all': no axis has whole samples",
        ),
    ],
)  # fmt: skip
def test_what_cannot_follow_is_refused(model: str, because: str) -> None:
    with pytest.raises(ShapeError, match=because):
        changed(model, 4, {"x": 0})
