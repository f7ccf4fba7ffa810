"""Reshapes, Flatten, Squeeze and Unsqueeze: where the samples are after them."""

import pytest

from tests.analysis.batching.by_sample import assert_each_by_itself, changed
from tests.analysis.batching.facts_of import X, fact_or_why_not, rebatched
from tiered import ShapeError
from tiered.analysis.batching.sample_facts import BatchRows

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


NAMES = """int64[2] flat = {2,6}, int64[1] one = {1}, int64[1] two = {2}, int64[1] none = {0},
    int64[1] less = {-1}"""


def model(nodes: str, x: str = "2,2,3", consts: str = "", more: str = "") -> str:
    held = f"{NAMES}, {consts}" if consts else NAMES
    return f"(float[{x}] x{more}) => (y) <{held}> {{ {nodes} }}"


S = "s = Shape(x)  n = Gather(s, none) "


def test_where_the_samples_are_and_how_many_edits_it_takes() -> None:
    for text, places, expected, edits in (
        (model('y = Reshape(x, t)', consts='int64[3] t = {2,0,3}'), X, BatchRows(0), 1),
        (model('y = Reshape(x, t)', x='2,S,3', consts='int64[3] t = {2,0,3}'), X, BatchRows(0), 1),
        (model('y = Reshape(x, t)', consts='int64[2] t = {0,-1}'), X, BatchRows(0), 0),
        (model('y = Reshape(x, t)', consts='int64[2] t = {0,6}'), X, BatchRows(0), 0),
        (model('y = Reshape<allowzero=1>(x, t)', x='2,S,3', consts='int64[2] t = {2,-1}'), X, BatchRows(0), 1),
        (model('y = Reshape(x, t)', x='2,2,S', consts='int64[2] t = {4,-1}'), X, BatchRows(0, 1, 2), 1),
        (model('y = Squeeze(x, none)', x='1,S,T'), X, "it moves the axis of a batch of 1, beside dynamic dims", 0),
        (model('y = Reshape<allowzero=1>(x, t)', consts='int64[2] t = {2,6}'), X, BatchRows(0), 1),
        (model('y = Reshape<allowzero=1>(x, t)', x='2,0,3', consts='int64[2] t = {2,0}'), X, "it makes [2, 0] of [2, 0, 3], which is baked into its constant 't': no axis has whole samples", 0),
        (model('y = Reshape(x, t)', x='2,S,3', consts='int64[2] t = {2,-1}'), X, BatchRows(0), 1),
        (model('y = Reshape(x, t)', x='2,S,3', consts='int64[2] t = {0,-1}'), X, BatchRows(0), 0),
        (model('y = Reshape(x, t)', x='1,6,4', consts='int64[3] t = {6,1,4}'), X, BatchRows(0, 1, 6), 1),
        (model('y = Reshape(x, t)', x='6,1,4', consts='int64[3] t = {1,6,4}'), {'x': 1}, BatchRows(0), 1),
        (model('y = Reshape(x, t)', x='6,2,4', consts='int64[3] t = {2,6,4}'), {'x': 1}, BatchRows(1, 3, 1), 1),
        (model('y = Reshape(x, t)', x='2,2,3', consts='int64[2] t = {3,4}'), X, "it makes [3, 4] of [2, 2, 3], which is baked into its constant 't': no axis has whole samples", 0),
        (model('y = Reshape(x, t)', x='3,2,3', consts='int64[2] t = {9,2}'), {'x': 1}, "it makes [9, 2] of [3, 2, 3], which is baked into its constant 't': no axis has whole samples", 0),
        (model('y = Reshape(x, t)', consts='int64[2] t = {4,3}'), X, BatchRows(0, 1, 2), 1),
        (model('y = Reshape(x, t)', x='3,2,3', consts='int64[2] t = {6,3}'), {'x': 1}, BatchRows(0, 3, 1), 1),
        (model('y = Reshape(x, less)'), X, BatchRows(0, 1, 6), 0),
        (model('y = Reshape(x, less)'), {'x': 1}, BatchRows(0, 2, 3), 0),
        (model('y = Reshape(x, t)', consts='int64[1] t={12}'), X, BatchRows(0, 1, 6), 1),
        (model(S + 't = Concat<axis=0>(n, less)  y = Reshape(x, t)'), X, BatchRows(0), 0),
        (model(S + 't = Concat<axis=0>(less, n)  y = Reshape(x, t)'), X, "its target [-1, batch] has no axis with whole samples", 0),
        (model(S + 'm = Mul(n, two)  t = Concat<axis=0>(m, less)  y = Reshape(x, t)'), X, BatchRows(0, 1, 2), 0),
        (model(S + 'm = Mul(n, k) t = Concat<axis=0>(m, less)  y = Reshape(x, t)', consts='int64[1] k={3}'), X, BatchRows(0, 1, 3), 0),
        (model(S + 't = Concat<axis=0>(n, n, less)  y = Reshape(x, t)', x='2,2,3'), X, "its target [batch, batch, -1] has no axis with whole samples", 0),
        (model(S + 'm = Add(n, two)  t = Concat<axis=0>(m, less)  y = Reshape(x, t)'), X, "its target [2+batch, -1] has no axis with whole samples", 0),
        (model('y = Reshape(w, flat)', more=', float[12] w'), X, None, 0),
        (model(S + 't = Concat<axis=0>(n, less)  y = Reshape(w, t)', more=', float[12] w'), X, "its value 'w' bakes the batch of 2: it may have other numbers for each sample", 0),
        (model(S + 't = Concat<axis=0>(n, less)  y = Reshape(w, t)', consts='float[4] w = {1,2,1,2}'), X, BatchRows(0), 1),
        (model(S + 't = Concat<axis=0>(n, less)  y = Reshape(w, t)', consts='float[4] w = {1,2,1,3}'), X, "its constant 'w' bakes the batch of 2: it has other numbers for each sample", 0),
        (model(S + 'm = Mul(n, k) t = Concat<axis=0>(m, less)  y = Reshape(w, t)', consts='int64[1] k={3}, float[2,3] w = {1,2,3,1,2,3}'), X, BatchRows(0, 1, 3), 1),
        (model(S + 't = Concat<axis=0>(n, n)  y = Reshape(w, t)', consts='float[4] w = {1,2,1,2}'), X, "the shape of its result is not known", 0),
        (model(S + 'm = Add(n, two) t = Concat<axis=0>(m, less)  y = Reshape(w, t)', consts='float[4] w = {1,2,1,2}'), X, "the shape of its result is not known", 0),
        (model(S + 'm = Mul(n, n) t = Concat<axis=0>(m, less)  y = Reshape(w, t)', consts='float[4] w = {1,2,1,2}'), X, "the shape of its result is not known", 0),
        (model('y = Flatten<axis=2>(x)', x='2,2,S'), X, BatchRows(0, 1, 2), 0),
        (model('y = Flatten<axis=2>(x)', x='S,T,2'), {'x': 2}, BatchRows(1), 0),
        (model('y = Squeeze(x)', x='2,1,3'), X, BatchRows(0), 1),
        (model('y = Squeeze(x)', x='1,1,3'), X, BatchRows(0, 1, 3), 1),
        (model('y = Squeeze(x)', x='1,2,3'), {'x': 1}, BatchRows(0), 1),
        (model('y = Squeeze(x, none)', x='1,2,3'), {'x': 1}, BatchRows(0), 0),
        (model('y = Squeeze(x)', x='2,S,3'), X, "the rank of 'y' is not known", 0),
        (model('y = Squeeze(x, a)', x='2,1,3', more=', int64[1] a'), X, "the rank of 'y' is not known", 0),
        (model('y = Squeeze(x, none)', x='1'), X, "it moves the axis of a batch of 1", 0),
        (model('y = Unsqueeze(x, none)'), X, BatchRows(1), 0),
        (model('y = Unsqueeze(x, one)'), X, BatchRows(0), 0),
        (model('y = Unsqueeze(x, less)'), {'x': 2}, BatchRows(2), 0),
        (model('y = Unsqueeze(x, a)', consts='int64[2] a={0,2}'), {'x': 1}, BatchRows(3), 0),
        (model('f = Reshape(x, less) y = Unsqueeze(f, none)', x='1,2,3'), X, BatchRows(0), 1),
        (model('f = Reshape(x, less) y = Unsqueeze(f, none)', x='2,2,3'), X, BatchRows(1, 1, 6), 0),
        (model('f = Reshape(x, less) y = Unsqueeze(f, one)', x='2,2,3'), X, BatchRows(0, 1, 6), 0),
        (model('y = Unsqueeze(x, a)', more=', int64[1] a'), X, "the rank of 'y' is not known", 0),
        (model('y = Reshape(x, a)', more=', int64[2] a'), X, "its target is not known", 0),
        (model('y = Flatten<axis=0>(x)'), X, BatchRows(1, 1, 6), 0),
        (model('y = Flatten<axis=0>(x)'), {'x': 1}, BatchRows(1, 2, 3), 0),
        (model('y = Flatten<axis=0>(x)', x='2,3,1'), {'x': 2}, BatchRows(1, 6, 1), 0),
        (model('y = Flatten<axis=1>(x)'), X, BatchRows(0), 0),
        (model('y = Flatten<axis=1>(x)'), {'x': 1}, BatchRows(1, 1, 3), 0),
        (model('y = Flatten<axis=1>(x)', x='2,3,1'), {'x': 2}, BatchRows(1, 3, 1), 0),
        (model('y = Flatten<axis=2>(x)'), X, BatchRows(0, 1, 2), 0),
        (model('y = Flatten<axis=2>(x)'), {'x': 1}, BatchRows(0, 2, 1), 0),
        (model('y = Flatten<axis=2>(x)', x='2,3,1'), {'x': 2}, BatchRows(1), 0),
        (model('y = Flatten<axis=3>(x)'), X, BatchRows(0, 1, 6), 0),
        (model('y = Flatten<axis=3>(x)'), {'x': 1}, BatchRows(0, 2, 3), 0),
        (model('y = Flatten<axis=3>(x)', x='2,3,1'), {'x': 2}, BatchRows(1), 1),
        (model('y = Flatten<axis=-1>(x)'), X, BatchRows(0, 1, 2), 0),
        (model('y = Flatten<axis=-1>(x)'), {'x': 1}, BatchRows(0, 2, 1), 0),
        (model('y = Flatten<axis=-1>(x)', x='2,3,1'), {'x': 2}, BatchRows(1), 0),
        (model('y = Flatten<axis=-2>(x)'), X, BatchRows(0), 0),
        (model('y = Flatten<axis=-2>(x)'), {'x': 1}, BatchRows(1, 1, 3), 0),
        (model('y = Flatten<axis=-2>(x)', x='2,3,1'), {'x': 2}, BatchRows(1, 3, 1), 0),
        (model('y = Flatten<axis=-3>(x)'), X, BatchRows(1, 1, 6), 0),
        (model('y = Flatten<axis=-3>(x)'), {'x': 1}, BatchRows(1, 2, 3), 0),
        (model('y = Flatten<axis=-3>(x)', x='2,3,1'), {'x': 2}, BatchRows(1, 6, 1), 0),
        (model('y = Squeeze(x, one)', x='1,1,3'), X, BatchRows(0), 0),
        (model('y = Squeeze(x, one)', x='1,1,1'), {'x': 1}, BatchRows(1), 1),
        (model('y = Squeeze(x, none)', x='1,1,3'), X, BatchRows(0), 1),
        (model('y = Squeeze(x, none)', x='1,1,1'), {'x': 1}, BatchRows(0), 0),
        (model('y = Squeeze(x, less)', x='1,1,3'), X, BatchRows(0), 0),
        (model('y = Squeeze(x, less)', x='1,1,1'), {'x': 1}, BatchRows(1), 0),
    ):  # fmt: skip
        assert fact_or_why_not(text, places) == (expected, edits), text


def test_what_the_edits_write() -> None:
    for text, places, expected in (
        (model('y = Reshape(x, t)', consts='int64[3] t = {2,0,3}'), X,
         "Reshape 1:[-1,2,3]"),
        (model('y = Reshape(x, t)', x='2,S,3', consts='int64[3] t = {2,0,3}'), X,
         "Reshape 1:[-1,0,3]"),
        (model('y = Reshape<allowzero=1>(x, t)', consts='int64[2] t = {2,6}'), X,
         "Reshape allowzero=1 1:[-1,6]"),
        (model('y = Reshape<allowzero=1>(x, t)', x='2,S,3', consts='int64[2] t = {2,-1}'), X,
         "Shape; Gather 1:[0]; Concat axis=0 1:[-1]; Reshape allowzero=1"),
        (model('y = Reshape(x, t)', x='2,2,S', consts='int64[2] t = {4,-1}'), X,
         "Shape; Gather 1:[0]; Mul 1:[2]; Concat axis=0 1:[-1]; Reshape"),
        (model('y = Reshape(x, t)', x='2,S,3', consts='int64[2] t = {2,-1}'), X,
         "Reshape 1:[0,-1]"),
        (model('y = Reshape(x, t)', x='1,6,4', consts='int64[3] t = {6,1,4}'), X,
         "Reshape 1:[-1,1,4]"),
        (model('y = Reshape(x, t)', x='6,1,4', consts='int64[3] t = {1,6,4}'), {'x': 1},
         "Reshape 1:[6,1,-1,1,4]; Transpose perm=[2,0,1,3,4]; Reshape 1:[-1,6,4]"),
        (model('y = Reshape(x, t)', x='6,2,4', consts='int64[3] t = {2,6,4}'), {'x': 1},
         "Reshape 1:[2,-1,4]"),
        (model('y = Reshape(x, t)', consts='int64[2] t = {4,3}'), X,
         "Reshape 1:[-1,3]"),
        (model('y = Reshape(x, t)', x='3,2,3', consts='int64[2] t = {6,3}'), {'x': 1},
         "Reshape 1:[-1,3]"),
        (model('y = Reshape(x, t)', consts='int64[1] t={12}'), X,
         "Reshape 1:[-1]"),
        (model(S + 't = Concat<axis=0>(n, less)  y = Reshape(w, t)', consts='float[4] w = {1,2,1,2}'), X,
         "Shape; Gather 1:[0]; Concat axis=0 1:[-1]; Reshape 0:[1.0,2.0] 1:[1,1,2]; Shape; Gather 1:[0]; Concat axis=0 0:[1] 2:[1]; Expand; Reshape 1:[-1]; Reshape"),
        (model(S + 'm = Mul(n, k) t = Concat<axis=0>(m, less)  y = Reshape(w, t)', consts='int64[1] k={3}, float[2,3] w = {1,2,3,1,2,3}'), X,
         "Shape; Gather 1:[0]; Mul 1:[3]; Concat axis=0 1:[-1]; Shape; Gather 1:[0]; Concat axis=0 1:[1]; Expand 0:[1.0,2.0,3.0]; Reshape"),
        (model('y = Squeeze(x)', x='2,1,3'), X,
         "Squeeze 1:[1]"),
        (model('y = Squeeze(x)', x='1,1,3'), X,
         "Reshape 1:[-1]"),
        (model('y = Squeeze(x)', x='1,2,3'), {'x': 1},
         "Squeeze 1:[0]"),
        (model('f = Reshape(x, less) y = Unsqueeze(f, none)', x='1,2,3'), X,
         "Reshape 1:[-1]; Reshape 1:[-1,6]"),
        (model('y = Flatten<axis=3>(x)', x='2,3,1'), {'x': 2},
         "Reshape 1:[6,-1]"),
        (model('y = Squeeze(x, one)', x='1,1,1'), {'x': 1},
         "Reshape 1:[1,-1]"),
        (model('y = Squeeze(x, none)', x='1,1,3'), X,
         "Reshape 1:[-1,3]"),
    ):  # fmt: skip
        assert rebatched(text, places) == expected, text
