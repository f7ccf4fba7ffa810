"""Operators with sizes as operands: which sizes may be a batch, and what is refused."""

import pytest

from tests.analysis.batching.by_sample import assert_each_by_itself, changed
from tests.analysis.batching.facts_of import X, fact_or_why_not, rebatched
from tiered import ShapeError
from tiered.analysis.batching.sample_facts import BatchRows, Counted

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


NAMES = """int64[1] one = {1}, int64[1] two = {2}, int64[1] none = {0}, int64[1] less = {-1},
    int64 z = {0}, int64 o = {1}"""
TO_RESIZE = """float[4] f = {1,1,2,2}, float[4] g = {2,1,1,1}, int64[4] q = {2,1,4,4},
    int64[4] q1 = {1,1,4,4}, int64[4] q4 = {4,1,4,4}, int64[2] h = {4,4}, int64[2] k = {4,2}"""


def model(nodes: str, x: str = "2,3", consts: str = "", more: str = "") -> str:
    """Return a model where n and m are the size of the batch."""
    held = f"{NAMES}, {consts}" if consts else NAMES
    return f"""(float[{x}] x{more}) => (y) <{held}> {{
        s = Shape(x)  n = Gather(s, none)  m = Gather(s, z)  {nodes} }}"""


def resized(nodes: str, x: str = "2,1,2,2", more: str = "") -> str:
    return model(nodes, x, TO_RESIZE, more)


def test_where_the_samples_are_and_how_many_edits_it_takes() -> None:
    for text, places, expected, edits in (
        (model('t = Concat<axis=0>(n, two)  y = ConstantOfShape(t)'), X, BatchRows(0), 0),
        (model('t = Concat<axis=0>(two, n)  y = ConstantOfShape(t)'), X, BatchRows(1), 0),
        (model('k = Mul(n, two)  t = Concat<axis=0>(two, k)  y = ConstantOfShape(t)'), X, BatchRows(1, 1, 2), 0),
        (model('t = Concat<axis=0>(n, n)  y = ConstantOfShape(t)'), X, "it makes [batch, batch]: no axis has whole samples", 0),
        (model('k = Add(n, two)  y = ConstantOfShape(k)'), X, "it makes [2+batch]: no axis has whole samples", 0),
        (model('k = Mul(n, n)  y = ConstantOfShape(k)'), X, "it makes [batch*batch]: no axis has whole samples", 0),
        (model('y = ConstantOfShape(s)', x='2,S'), X, BatchRows(0), 0),
        (model('k = Sub(n, n)  y = ConstantOfShape(k)'), X, None, 0),
        (model('t = Concat<axis=0>(n, a)  y = ConstantOfShape(t)', more=', int64[1] a'), X, "the shape of its result is not known", 0),
        (model('t = Concat<axis=0>(n, two)  y = Expand(w, t)', more=', float[2] w'), X, BatchRows(0), 0),
        (model('t = Concat<axis=0>(n, two)  y = Expand(w, t)', more=', float[1,2] w'), X, BatchRows(0), 0),
        (model('t = Concat<axis=0>(n, two)  y = Expand(w, t)', more=', float[2,2] w'), X, Counted(), 0),
        (model('t = Concat<axis=0>(two, n)  y = Expand(w, t)', more=', float[1] w'), X, BatchRows(1), 0),
        (model('y = Expand(w, two)', more=', float[1] w'), X, None, 0),
        (model('y = Expand(x, t)', consts='int64[2] t = {1,3}'), X, BatchRows(0), 0),
        (model('y = Expand(x, t)', consts='int64[2] t = {2,3}'), X, BatchRows(0), 1),
        (model('y = Expand(x, t)', consts='int64[3] t = {4,2,3}'), X, BatchRows(1), 1),
        (model('y = Expand(x, t)', consts='int64[3] t = {4,1,1}'), X, BatchRows(1), 0),
        (model('y = Expand(x, t)', consts='int64[1] t = {3}'), X, BatchRows(0), 0),
        (model('y = Expand(x, t)', x='1,3', consts='int64[2] t = {4,3}'), X, "it repeats the axis of a batch of 1", 0),
        (model('y = Expand(x, t)', x='1,3', consts='int64[2] t = {1,3}'), X, BatchRows(0), 0),
        (model('t = Concat<axis=0>(n, less)  r = Abs(t)  y = Expand(x, r)'), X, BatchRows(0), 0),
        (model('t = Concat<axis=0>(n, one, one)  y = Expand(x, t)'), X, "its target has the batch on another axis", 0),
        (model('y = Expand(x, a)', more=', int64[2] a'), X, "its target is not known", 0),
        (model('f = Reshape(x, less)  y = Expand(f, t)', consts='int64[1] t = {6}'), X, BatchRows(0, 1, 3), 1),
        (model('f = Reshape(x, less)  y = Expand(f, t)', consts='int64[1] t = {1}'), X, BatchRows(0, 1, 3), 0),
        (model('y = Tile(x, t)', consts='int64[2] t = {1,1}'), X, BatchRows(0), 0),
        (model('y = Tile(x, t)', consts='int64[2] t = {1,2}'), X, BatchRows(0), 0),
        (model('y = Tile(x, t)', consts='int64[2] t = {3,1}'), X, BatchRows(0, 3, 1), 0),
        (model('y = Tile(x, t)', consts='int64[2] t = {3,1}'), {'x': 1}, BatchRows(1), 0),
        (model('y = Tile(x, a)', more=', int64[2] a'), X, "its repeats are not known", 0),
        (model('t = Concat<axis=0>(one, n)  y = Tile(x, t)'), X, "its repeats have the batch on another axis", 0),
        (model('t = Concat<axis=0>(n, one)  y = Tile(w, t)', more=', float[1,2] w'), X, BatchRows(0), 0),
        (model('t = Concat<axis=0>(n, one)  y = Tile(w, t)', more=', float[4,2] w'), X, BatchRows(0, 1, 4), 0),
        (model('t = Concat<axis=0>(one, n)  y = Tile(w, t)', more=', float[4,1] w'), X, BatchRows(1), 0),
        (model('k = Mul(n, two)  t = Concat<axis=0>(k, one)  y = Tile(w, t)', more=', float[4,2] w'), X, BatchRows(0, 1, 8), 0),
        (model('t = Concat<axis=0>(one, a)  y = Tile(x, t)', more=', int64[1] a'), {'x': 1}, "its repeats are not known", 0),
        (model('y = Tile(w, t)', consts='int64[2] t = {3,1}', more=', float[4,1] w'), X, None, 0),
        (model('y = Range(z, m, o)'), X, BatchRows(0, step=1), 0),
        (model('y = Range(o, m, o)'), X, "the shape of its result is not known", 0),
        (model('k = Mul(m, c)  y = Range(z, k, o)', consts='int64 c = {3}'), X, BatchRows(0, 1, 3, step=3), 0),
        (model('k = Mul(m, c)  y = Range(z, k, c)', consts='int64 c = {3}'), X, "the shape of its result is not known", 0),
        (model('k = Add(m, c)  y = Range(c, k, o)', consts='int64 c = {3}'), X, BatchRows(0, step=1), 0),
        (model('y = Range(m, c, o)', consts='int64 c = {3}'), X, "the shape of its result is not known", 0),
        (model('y = Range(z, m, a)', more=', int64 a'), X, "the shape of its result is not known", 0),
        (model('k = Mul(m, m)  y = Range(z, k, m)'), X, "the shape of its result is not known", 0),
        (model('k = Add(m, m) y = Range(m, k, o)'), X, "its bounds are not known", 0),
        (resized('y = Resize(x, , f)'), X, BatchRows(0), 0),
        (resized('y = Resize(x, , g)'), {'x': 0}, "it resizes the axis of a batch of 2", 0),
        (resized('y = Resize(x, , , q)'), X, BatchRows(0), 1),
        (resized('y = Resize(x, , , q4)'), X, "it resizes the axis of a batch of 2", 0),
        (resized('y = Resize(x, , , q1)', x='1,1,2,2'), X, BatchRows(0), 1),
        (resized('y = Resize<axes=[2,3]>(x, , , h)'), X, BatchRows(0), 0),
        (resized('y = Resize<axes=[-2,-1]>(x, , , h)'), X, BatchRows(0), 0),
        (resized('y = Resize<axes=[0,1]>(x, , , h)'), X, "it resizes the axis of a batch of 2", 0),
        (resized('y = Resize<axes=[3,0]>(x, , , k)'), X, BatchRows(0), 1),
        (resized('t = Concat<axis=0>(n, one, h)  y = Resize(x, , , t)'), X, BatchRows(0), 0),
        (resized('t = Concat<axis=0>(one, n, h)  y = Resize(x, , , t)', x='1,1,2,2'), X, "its sizes have the batch on another axis", 0),
        (resized('y = Resize<keep_aspect_ratio_policy="not_larger">(x, , , q)'), X, "it keeps the ratio of all sizes, the batch too", 0),
        (resized('y = Resize<keep_aspect_ratio_policy="stretch">(x, , , q)'), X, BatchRows(0), 1),
        (resized('t = Concat<axis=0>(n, one, h)  y = Resize<keep_aspect_ratio_policy="not_larger">(x, , , t)'), X, "it resizes the axis of a batch of 2", 0),
        (resized('y = Resize(x, , , a)', more=', int64[4] a'), X, "it resizes the axis of a batch of 2", 0),
        (resized('i = Cast<to=1>(n)  e = Concat<axis=0>(i, i, i, i)  v = Div(e, e)  y = Resize(x, , v)'), X, "it resizes the axis of a batch of 2", 0),
        (resized('y = Resize(x, w, f)', more=', float[2,8] w'), {'x': 0, 'w': 0}, "its operand 'w' differs from sample to sample", 0),
        (model('y = AffineGrid(x, q)', x='2,2,3', consts='int64[4] q={2,3,4,5}'), X, BatchRows(0), 1),
        (model('y = AffineGrid(x, q)', x='1,2,3', consts='int64[4] q={1,3,4,5}'), X, BatchRows(0), 1),
        (model('c = Constant<value_ints=[3,4,5]>()  q = Concat<axis=0>(n, c)  y = AffineGrid(x, q)', x='2,2,3'), X, BatchRows(0), 0),
        (model('c = Constant<value_ints=[2,3,4]>()  q = Concat<axis=0>(c, n)  y = AffineGrid(x, q)', x='2,2,3'), X, "its size is not known", 0),
        (model('y = AffineGrid(x, q)', x='2,2,3', more=', int64[4] q'), X, "its size is not known", 0),
        (model('y = AffineGrid(x, q)', x='2,2,3', consts='int64[4] q={2,3,4,5}'), {'x': 1}, "it computes a result from several samples: axis 1 of 'x' is the batch", 0),
    ):  # fmt: skip
        assert fact_or_why_not(text, places) == (expected, edits), text


def test_an_upsample_keeps_the_batch() -> None:
    for scale, expected in ((1, BatchRows(0)), (2, "it resizes the axis of a batch of 2")):
        text = f"""(float[2,1,2] x) => (y) <float[3] f = {{{scale},1,2}}> {{
            y = Upsample<mode="nearest">(x, f) }}"""
        assert fact_or_why_not(text, X, opset=9) == (expected, 0)


def test_what_the_edits_write() -> None:
    for text, places, expected in (
        (model('y = Expand(x, t)', consts='int64[2] t = {2,3}'), X,
         "Shape; Gather 1:[0]; Gather 1:[0]; Expand 1:[1,3]"),
        (model('y = Expand(x, t)', consts='int64[3] t = {4,2,3}'), X,
         "Shape; Gather 1:[0]; Gather 1:[0]; Expand 1:[4,1,3]"),
        (model('f = Reshape(x, less)  y = Expand(f, t)', consts='int64[1] t = {6}'), X,
         "Shape; Gather 1:[0]; Gather 1:[0]; Reshape 1:[-1]; Expand 1:[1]"),
        (resized('y = Resize(x, , , q)'), X,
         "Shape; Gather 1:[0]; Gather 1:[0]; Shape; Gather 1:[0]; Concat axis=0 1:[1,4,4]; Resize"),
        (resized('y = Resize(x, , , q1)', x='1,1,2,2'), X,
         "Shape; Gather 1:[0]; Gather 1:[0]; Shape; Gather 1:[0]; Concat axis=0 1:[1,4,4]; Resize"),
        (resized('y = Resize<axes=[3,0]>(x, , , k)'), X,
         "Shape; Gather 1:[0]; Gather 1:[0]; Shape; Gather 1:[0]; Concat axis=0 0:[4]; Resize axes=[3,0]"),
        (resized('y = Resize<keep_aspect_ratio_policy="stretch">(x, , , q)'), X,
         "Shape; Gather 1:[0]; Gather 1:[0]; Shape; Gather 1:[0]; Concat axis=0 1:[1,4,4]; Resize keep_aspect_ratio_policy=stretch"),
        (model('y = AffineGrid(x, q)', x='2,2,3', consts='int64[4] q={2,3,4,5}'), X,
         "Shape; Gather 1:[0]; Gather 1:[0]; Shape; Gather 1:[0]; Concat axis=0 1:[3,4,5]; AffineGrid"),
        (model('y = AffineGrid(x, q)', x='1,2,3', consts='int64[4] q={1,3,4,5}'), X,
         "Shape; Gather 1:[0]; Gather 1:[0]; Shape; Gather 1:[0]; Concat axis=0 1:[3,4,5]; AffineGrid"),
    ):  # fmt: skip
        assert rebatched(text, places) == expected, text
