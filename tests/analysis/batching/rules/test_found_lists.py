"""Lists of what NonMaxSuppression finds, regions of RoiAlign, and places of each sample."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from tests.analysis.batching.by_sample import assert_each_by_itself
from tests.analysis.batching.facts_of import fact_or_why_not
from tiered import Model, ShapeError, get_pass, optimize_model
from tiered.analysis.batching.sample_facts import Columns, Listed
from tiered.runtime import Session
from tiered.testing import parse

HEAD = "(float[{0},20,4] b, float[{0},3,20] s) => ({1} y) <int64 m = {{5}}, float u = {{0.5}}, {2}> {{ i = NonMaxSuppression(b, s, m, u) {3} }}"

YOLO = (
    """int64[1] c0 = {0}, int64[1] c1 = {1}, int64[1] c2 = {2}, int64[1] c3 = {3}, int64[2] l = {-1,1},
    float two = {2}""",
    """x0 = Gather<axis = 1>(i, c0)  x1 = Slice(i, c1, c2, c1)  x2 = Slice(i, c2, c3, c1)
    at = Concat<axis = 1>(x0, x2)  bx = GatherND(b, at)  bb = Mul(bx, two)
    sc = GatherND(s, i)  s1 = Reshape(sc, l)  fx = Cast<to = 1>(x0)  fc = Cast<to = 1>(x1)
    y = Concat<axis = 1>(fx, bb, fc, s1)""",
)

LISTS: dict[str, tuple[str, str, str, Callable[[Any, int], Any]]] = {
    "indices": (
        "int64[k,3]", "int64 z = {0}", "y = Identity(i)",
        lambda y, at: y + np.array([at, 0, 0]),
    ),
    "samples": (
        "int64[k]", "int64 z = {0}", "g = Gather<axis = 1>(i, z)  y = Identity(g)",
        lambda y, at: y + at,
    ),
    "columns": (
        "int64[k,1]", "int64[3] p = {1,1,1}", "q, y, r = Split<axis = 1>(i, p)",
        lambda y, at: y,
    ),
    "boxes": (
        "float[k,4]", "int64[2] c = {0,2}", "j = Gather<axis = 1>(i, c)  y = GatherND(b, j)",
        lambda y, at: y,
    ),
    "squeezed": (
        "float[k]", "int64[1] c = {0}, int64[1] o = {1}",
        "j = Gather<axis = 1>(i, c)  n = Squeeze(j, o)  f = Cast<to = 1>(n)  y = Identity(f)",
        lambda y, at: y + np.float32(at),
    ),
    "rows of the YOLO head": ("float[k,7]", *YOLO, lambda y, at: y + np.eye(7)[0].astype(np.float32) * at),
}  # fmt: skip


def boxes(batch: int) -> dict[str, Any]:
    random = np.random.default_rng(0)
    low = random.uniform(0, 1, (batch, 20, 2))
    corners = np.concatenate([low, low + random.uniform(0.1, 0.5, (batch, 20, 2))], 2)
    return {
        "b": corners.astype(np.float32),
        "s": random.uniform(0, 1, (batch, 3, 20)).astype(np.float32),
    }


@pytest.mark.parametrize("old", [1, 2])
@pytest.mark.parametrize("size", [4, "N"])
@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_that_of_each_sample_after_the_other(
    name: str, size: int | str, old: int
) -> None:
    kind, constants, nodes, moved = LISTS[name]
    before = parse(HEAD.format(old, kind, constants, nodes))
    result = optimize_model(before, passes=[get_pass("change_batch", size=size)], verify=True)
    assert result.verified
    feeds = boxes(4)
    found = Session(result.model.to_proto()).run(feeds)["y"]
    alone = Session(before)
    parts = [
        alone.run({key: array[at : at + old] for key, array in feeds.items()})["y"]
        for at in range(0, 4, old)
    ]
    expected = np.concatenate([moved(part, at * old) for at, part in enumerate(parts)])
    np.testing.assert_array_equal(found, expected)


def test_boxes_that_all_share_are_repeated() -> None:
    text = HEAD.format(1, "int64[k,3]", "int64 z = {0}", "y = Identity(i)")
    model = Model.from_proto(
        parse(text.replace("float[1,20,4] b, ", "float[1,20,4] b, float[1] n, "))
    )
    get_pass("change_batch", size=3, axes={"s": 0}).apply(model)
    feeds = {**boxes(3), "n": np.zeros(1, np.float32)}
    found = Session(model.to_proto()).run({**feeds, "b": feeds["b"][:1]})["y"]
    assert set(found[:, 0]) == {0, 1, 2}


@pytest.mark.parametrize(
    ("kind", "constants", "nodes", "message"),
    [
        ("float[k,4]", "int64 z = {0}, int64 t = {2}",
         "o = Gather(b, z)  j = Gather<axis = 1>(i, t)  y = Gather(o, j)", "places in 'z'"),
        ("float[k,4]", "int64[1] t = {2}, int64[2] f = {-1,4}",
         "o = Reshape(b, f)  j = Gather<axis = 1>(i, t)  y = Gather(o, j)",
         "Gather 'y': it takes other places for each sample"),
        ("int64[5,3]", "int64[1] z = {0}, int64[1] f = {5}", "y = Slice(i, z, f, z)",
         "Slice 'y': it works along the list"),
        ("int64[3]", "int64[1] z = {0}", "y = ReduceMax<axes = [0], keepdims = 0>(i)",
         "ReduceMax 'y': how many entries a sample has in its list is known in a run only"),
        ("int64[k,3]", "int64 o = {1}", "y = Add(i, o)", "it computes with the numbers of samples"),
        ("int64[1]", "int64 o = {1}", "h = Shape(i)  y = Slice(h, v, w)", "counts the samples"),
    ],
)  # fmt: skip
def test_what_mixes_lists_is_named(kind: str, constants: str, nodes: str, message: str) -> None:
    constants += ", int64[1] v = {0}, int64[1] w = {1}"
    model = Model.from_proto(parse(HEAD.format(1, kind, constants, nodes)))
    with pytest.raises(ShapeError, match=message):
        get_pass("change_batch", size=4).apply(model)


ROIS = """(float[{0},2,8,8] x, float[{0},5,4] r) => (y) <int64[n] i = {{{1}}}, int64[2] s = {{-1,4}},
    float f = {{3}}, float[1,4] o = {{0,0,2,2}}> {{
    a = Reshape(r, s)  p = Sigmoid(a)  q = Mul(p, f)  w = Add(q, o)
    y = RoiAlign<output_height = 2, output_width = 2>(x, w, i) }}"""


@pytest.mark.parametrize("size", [4, "N"])
@pytest.mark.parametrize("old", [1, 2])
def test_regions_are_taken_from_the_image_of_their_sample(old: int, size: int | str) -> None:
    images = ",".join(str(number) for number in range(old) for _ in range(5))
    text = ROIS.format(old, images).replace("int64[n]", f"int64[{5 * old}]")
    assert_each_by_itself(onnx.shape_inference.infer_shapes(parse(text, opset=16)), size)


def test_regions_of_other_images_are_named() -> None:
    text = ROIS.format(2, "0,0,0,0,1,1,1,1,1,1").replace("int64[n]", "int64[10]")
    with pytest.raises(ShapeError, match="RoiAlign 'y': the images of its regions, 'i'"):
        get_pass("change_batch", size=4).apply(Model.from_proto(parse(text, opset=16)))


@pytest.mark.parametrize("size", [4, "N"])
def test_flat_places_of_the_largest_take_the_rows_of_their_sample(size: int | str) -> None:
    text = """(float[1,9,6] x) => (float[1,5,6] y) <int64[1] o = {1}, int64[1] w = {2}, int64[1] z = {0},
        int64[1] k = {5}, int64[2] f = {-1,6}, int64[1] m = {-1}, int64[3] s = {1,-1,6}> {
        c = Slice(x, z, o, w)  q = Squeeze(c, w)  v, i = TopK<axis = 1>(q, k)
        t = Reshape(x, f)  j = Reshape(i, m)  g = Gather(t, j)  y = Reshape(g, s) }"""
    assert_each_by_itself(text, size)


NAMES = """int64[1] one = {1}, int64[1] two = {2}, int64[1] none = {0}, int64[1] less = {-1},
    int64[1] three = {3}, int64 z = {0}, int64 o = {1}, int64 m = {5}, float u = {0.5},
    int64[2] c02 = {0,2}, int64[2] c12 = {1,2}, int64[3] p = {1,1,1}, int64[2] p12 = {1,2},
    int64[2] l1 = {-1,1}, int64[2] l3 = {-1,3}, int64[3] l13 = {-1,1,3}, int64[2] w = {0,3}"""


def found(nodes: str, b: str = "2", bb: str | None = None, more: str = "") -> str:
    """Return a model where i are the boxes that are found in two samples."""
    return f"""(float[{bb or b},20,4] b, float[{b},3,20] s{more}) => (y) <{NAMES}> {{
        i = NonMaxSuppression(b, s, m, u)  {nodes} }}"""


B = {"b": 0, "s": 0}


def test_the_axis_of_a_list_and_what_a_sample_adds_to_its_entries() -> None:
    for text, places, expected in (
        (found('y = Identity(i)'), B, (0, Columns((1, 0, 0)))),
        (found('y = Cast<to=1>(i)'), B, (0, Columns((1, 0, 0)))),
        (found('y = Cast<to=6>(i)'), B, (0, Columns((1, 0, 0)))),
        (found('y = Cast<to=3>(i)'), B, "it computes with the numbers of samples"),
        (found('f = Gather<axis=1>(i, o) y = Cast<to=3>(f)'), B, (0, 0)),
        (found('y = Identity(i)', bb='1', b='2'), {'s': 0}, "'b' has size 1 along the batch"),
        (found('y = Identity(i)'), {'s': 0}, "its value 'b' bakes the batch of 2: it may have other numbers for each sample"),
        (found('y = Identity(i)'), {'s': 1}, "its boxes and scores have the samples on another axis than the first"),
        (found('y = Gather<axis=1>(i, z)'), B, (0, 1)),
        (found('y = Gather<axis=1>(i, o)'), B, (0, 0)),
        (found('y = Gather<axis=-1>(i, c02)'), B, (0, Columns((1, 0)))),
        (found('y = Gather<axis=1>(i, c12)'), B, (0, 0)),
        (found('y = Gather<axis=1>(i, none)'), B, (0, 1)),
        (found('k = Gather<axis=1>(i, c12) e = Unsqueeze(k, none) y = Gather<axis=0>(e, z)'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, c12) e = Unsqueeze(k, none) y = Gather<axis=0>(e, none)'), B, (1, 0)),
        (found('k = Gather<axis=1>(i, c12) e = Unsqueeze(k, none) y = Gather<axis=0>(e, a)', more=', int64[1,1] a'), B, (2, 0)),
        (found('e = Unsqueeze(i, one) y = Gather<axis=1>(e, z)'), B, "it computes with the numbers of samples"),
        (found('d = Reshape(s, l3)  k = Gather<axis=1>(i, none) y = GatherND(d, k)'), B, "it takes other places for each sample"),
        (found('q = Shape(b)  r = Gather(q, none)  y = Slice(i, r, three, one)'), B, "its starts are not constant"),
        (found('k = Gather<axis=1>(i, c12) y, q = Split<axis=1, num_outputs=2>(k)'), B, (0, 0)),
        (found(', y = Split<axis=1>(i, p12)'), B, "the sizes of its parts are not known"),
        (found('k = Gather<axis=1>(i, c12) e = Unsqueeze(k, none) y = Squeeze(e, one)'), B, "it works along the list of what is found in all samples"),
        (found('k = Gather<axis=1>(i, z) y = Reshape(k, w)').replace('int64[2] w = {0,3}', 'int64[0] w = {}'), B, "its target is not one of the entries of a list"),
        (found('y = Gather<axis=0>(i, none)'), B, "it works along the list of what is found in all samples"),
        (found('y = Gather(i, z)'), B, "it works along the list of what is found in all samples"),
        (found('k = Gather<axis=1>(i, o) y = Gather(k, none)'), B, "it works along the list of what is found in all samples"),
        (found('j = Gather<axis=1>(i, c02)  g = GatherND(b, j)  y = Gather<axis=1>(g, c02)'), B, (0, 0)),
        (found('y = Gather<axis=1>(i, a)', more=', int64[1] a'), B, "it computes with the numbers of samples"),
        (found('y = Gather<axis=1>(i, a)', more=', int64[2] a'), {**B, 'a': 0}, "its operand 'a' differs from sample to sample"),
        (found('y = Gather<axis=1>(i, a)', more=', int64[1,1] a'), B, "it computes with the numbers of samples"),
        (found('k = Gather<axis=1>(i, o) y = Gather(t, k)', more=', float[9,2] t'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, z) y = Gather(t, k)', more=', float[9,2] t'), B, "it computes with the numbers of samples"),
        (found('k = Gather<axis=1>(i, z) y = Gather(b, k)'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, none) y = Gather(b, k)'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, o) y = Gather(b, k)'), B, "it takes other places for each sample"),
        (found('k = Gather<axis=1>(i, z) y = Gather<axis=1>(b, k)'), B, "it takes other places for each sample"),
        (found('k = Gather<axis=1>(i, o) y = Gather<axis=1>(t, k)', more=', float[9,2] t'), B, (1, 0)),
        (found('k = Gather<axis=1>(i, z) y = Gather(a, k)', more=', float[2,4] a'), {**B, 'a': 0}, (0, 0)),
        (found('k = Gather<axis=1>(i, c02) y = GatherND(b, k)'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, c12) y = GatherND(b, k)'), B, "it takes other places for each sample"),
        (found('y = GatherND(s, i)'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, none) y = GatherND(b, k)'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, c12) y = GatherND(t, k)', more=', float[9,9,2] t'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, c02) y = GatherND(t, k)', more=', float[9,9,2] t'), B, "it computes with the numbers of samples"),
        (found('k = Gather<axis=1>(i, z) y = GatherND(b, k)'), B, "it takes other places for each sample"),
        (found('y = GatherND<batch_dims=1>(s, i)'), B, "it takes other places for each sample"),
        (found('k = Gather<axis=1>(i, c02) y = GatherND(t, k)', more=', float[1,9,2] t'), {**B, 't': 2}, "it takes other places for each sample"),
        (found('y = Slice(i, none, one, one)'), B, (0, 1)),
        (found('y = Slice(i, one, three, one)'), B, (0, 0)),
        (found('y = Slice(i, none, two, less)'), B, (0, Columns((1, 0)))),
        (found('y = Slice(i, none, three, one, two)'), B, (0, Columns((1, 0)))),
        (found('y = Slice(i, none, one, none)'), B, "it works along the list of what is found in all samples"),
        (found('y = Slice(i, none, one)'), B, "it works along the list of what is found in all samples"),
        (found('y = Slice(i, a, one, one)', more=', int64[1] a'), B, "its starts are not constant"),
        (found('y = Slice(i, less, none, one, less)'), B, "it takes no columns, or takes them backwards"),
        (found('y = Slice(i, one, one, one)'), B, "it takes no columns, or takes them backwards"),
        (found('k = Gather<axis=1>(i, c12) y = Slice(k, one, two, one)'), B, (0, 0)),
        (found('e = Unsqueeze(i, one) y = Slice(e, none, one, one)'), B, (0, Columns((1, 0, 0)))),
        (found('y, q = Split<axis=1>(i, p12)'), B, (0, 1)),
        (found('q, y = Split<axis=-1>(i, p12)'), B, (0, 0)),
        (found('q, y, r = Split<axis=1>(i, p)'), B, (0, 0)),
        (found('q, y = Split<axis=0>(i, a)', more=', int64[2] a'), B, "it works along the list of what is found in all samples"),
        (found('q, y = Split<axis=1>(i, a)', more=', int64[2] a'), B, "the rank of 'q' is not known"),
        (found('e = Unsqueeze(i, one)  y = Split<axis=1>(e, one)'), B, (0, Columns((1, 0, 0)))),
        (found('k = Gather<axis=1>(i, none) y = Squeeze(k, one)'), B, (0, 1)),
        (found('k = Gather<axis=1>(i, one) y = Squeeze(k, less)'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, none) y = Squeeze(k)'), B, "it works along the list of what is found in all samples"),
        (found('y = Unsqueeze(i, none)'), B, (1, Columns((1, 0, 0)))),
        (found('y = Unsqueeze(i, two)'), B, "it computes with the numbers of samples"),
        (found('y = Unsqueeze(i, one)'), B, (0, Columns((1, 0, 0)))),
        (found('k = Gather<axis=1>(i, one) y = Unsqueeze(k, two)'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, z) y = Unsqueeze(k, none)'), B, (1, 1)),
        (found('k = Gather<axis=1>(i, z) y = Unsqueeze(k, one)'), B, (0, 1)),
        (found('y = Reshape(i, l3)'), B, (0, Columns((1, 0, 0)))),
        (found('y = Reshape(i, l13)'), B, (0, Columns((1, 0, 0)))),
        (found('y = Reshape(i, less)'), B, "its target is not one of the entries of a list"),
        (found('k = Gather<axis=1>(i, o) y = Reshape(k, l1)'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, none) y = Reshape(k, less)'), B, (0, 1)),
        (found('y = Reshape(i, w)'), B, (0, Columns((1, 0, 0)))),
        (found('y = Reshape(i, w)').replace('int64[2] w = {0,3}', 'int64[2] w = {5,3}'), B, "its target is not one of the entries of a list"),
        (found('y = Reshape(i, w)').replace('int64[2] w = {0,3}', 'int64[2] w = {-1,6}'), B, "its target is not one of the entries of a list"),
        (found('e = Transpose(i)  y = Reshape(e, l3)'), B, "how many entries a sample has in its list is known in a run only"),
        (found('k = Gather<axis=1>(i, c12)  e = Unsqueeze(k, none) y = Reshape(e, l1)'), B, "its target is not one of the entries of a list"),
        (found('y = Concat<axis=1>(i, i)'), B, (0, Columns((1, 0, 0, 1, 0, 0)))),
        (found('k = Gather<axis=1>(i, c12) y = Concat<axis=1>(k, i)'), B, (0, Columns((0, 0, 1, 0, 0)))),
        (found('y = Concat<axis=0>(i, i)'), B, "it works along the list of what is found in all samples"),
        (found('j = NonMaxSuppression(b, s, m) y = Concat<axis=1>(i, j)'), B, "its operands list what is found by several nodes"),
        (found('e = Unsqueeze(i, one)  y = Concat<axis=1>(e, e)'), B, "it computes with the numbers of samples"),
        (found('k = Gather<axis=1>(i, c12)  e = Unsqueeze(k, one)  y = Concat<axis=1>(e, e)'), B, (0, 0)),
        (found('y = Concat<axis=1>(i, a)', more=', int64[5,1] a'), B, "its index, and not its data, lists what is found"),
        (found('k = Gather<axis=1>(i, none) l = Gather<axis=1>(i, one) y = Concat<axis=-1>(l, k)'), B, (0, Columns((0, 1)))),
        (found('y = Neg(i)'), B, "it computes with the numbers of samples"),
        (found('k = Gather<axis=1>(i, c12)  y = Neg(k)'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, c12)  y = Add(k, z)'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, c12)  y = Add(k, k)'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, c12) l = Gather<axis=1>(i, one) y = Add(k, l)'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, o) l = Gather<axis=1>(i, c12) y = Add(k, l)'), B, "its operands list what is found by several nodes"),
        (found('k = Gather<axis=1>(i, c12) y = Add(k, a)', more=', int64[5,2] a'), B, "'a' has an element for each entry of the list"),
        (found('k = Gather<axis=1>(i, c12) y = Add(k, a)', more=', int64[1,2] a'), B, (0, 0)),
        (found('k = Gather<axis=1>(i, c12) y = Add(k, a)', more=', int64[2,1] a'), {**B, 'a': 0}, "its operands have samples, and a list of what is found in them"),
        (found('j = NonMaxSuppression(b, s, m) k = Gather<axis=1>(i, c12) l = Gather<axis=1>(j, c12) y = Add(k, l)'), B, "its operands list what is found by several nodes"),
        (found('k = Gather<axis=1>(i, o) y = Add(k, a)', more=', int64[3,1] a'), B, (1, 0)),
        (found('k = Gather<axis=1>(i, o) y = Clip(k, , m)'), B, (0, 0)),
        (found('y = ReduceMax<keepdims=0>(i, none)'), B, "how many entries a sample has in its list is known in a run only"),
    ):  # fmt: skip
        fact, _ = fact_or_why_not(text, places)
        actual = (fact.axis, fact.step) if isinstance(fact, Listed) else fact
        assert actual == expected, text
