"""Lists of what NonMaxSuppression finds, regions of RoiAlign, and places of each sample."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from tests.analysis.batching.by_sample import assert_each_by_itself
from tiered import Model, ShapeError, get_pass, optimize_model
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
