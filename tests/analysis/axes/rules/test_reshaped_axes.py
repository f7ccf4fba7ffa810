"""Axis maps of operators that reorder, merge, split, add, join and repeat axes."""

import pytest

from tests.analysis.axes.rules.maps import map_of, why_not, written
from tiered.analysis.axes.axis_map import Axes, AxisMap, IteratorKind, Labels

OPAQUE = IteratorKind.OPAQUE
NOT_CONSTANT = "its axes are not constant"
OUT_OF_RANGE = "its axes are out of range"


@pytest.mark.parametrize(("attribute", "made"), [("<perm=[2,0,1]>", (2, 0, 1)), ("", (2, 1, 0))])
def test_axes_are_reordered(attribute: str, made: Axes) -> None:
    axes = map_of(f"(float[2,3,4] x) => (y) {{ y = Transpose{attribute}(x) }}")
    assert axes == AxisMap(((0, 1, 2),), (made,))


def test_an_order_of_other_axes_is_not_known() -> None:
    text = "(float[2,3,4] x) => (float[3,2] y) { y = Transpose<perm=[1,0]>(x) }"
    assert why_not(text) == "its order of axes is not known"


def test_a_reshape_keeps_axes_and_names_groups() -> None:
    axes = map_of("(float[5,1,6,7] x) => (y) <int64[4] s = {5,2,3,7}> { y = Reshape(x, s) }")
    # The 6 becomes 2 and 3; the axis of one element has no iterator.
    assert axes == AxisMap(
        ((0, None, 2, 3), None),
        ((0, 101, 102, 3),),
        {2: OPAQUE, 101: OPAQUE, 102: OPAQUE},
        groups=(((2,), (101, 102)),),
        has_shape=True,
    )


def test_a_flatten_merges_what_is_before_and_after_its_axis() -> None:
    axes = map_of("(float[2,3,4] x) => (y) { y = Flatten<axis=2>(x) }")
    assert axes == AxisMap(
        ((0, 1, 2),),
        ((100, 2),),
        {0: OPAQUE, 1: OPAQUE, 100: OPAQUE},
        groups=(((0, 1), (100,)),),
        has_shape=True,
    )


@pytest.mark.parametrize(
    ("before", "after", "shape", "reason"),
    [
        ("[0,3]", "[3,0]", "{3,0}", "a dim is 0"),
        ("[N,3]", "[0,3]", "{0,3}", "a dim is 0"),
        ("[N,1]", "[1,1]", "{1,1}", "the dims that it splits or merges are not known"),
    ],
)
def test_a_reshape_of_no_elements_or_of_unknown_sizes_has_no_map(
    before: str, after: str, shape: str, reason: str
) -> None:
    text = f"""(float{before} x) => (float{after} y) <int64[2] s = {shape}>
        {{ y = Reshape<allowzero=1>(x, s) }}"""
    assert why_not(text) == reason


@pytest.mark.parametrize(
    ("line", "labels", "kept"),
    [
        ("Squeeze(x)", (0, None, 2, None), (0, 2)),
        ("Squeeze(x, a)", (0, 1, 2, None), (0, 1, 2)),
        ("Squeeze(x, b)", (0, None, 2, None), (0, 2)),
    ],
)
def test_a_squeezed_axis_has_no_iterator(line: str, labels: Axes, kept: Axes) -> None:
    text = f"""(float[2,1,3,1] x) => (y) <int64[1] a = {{-1}}, int64[2] b = {{3,1}}>
        {{ y = {line} }}"""
    others = (None,) * line.count(",")
    assert map_of(text) == AxisMap((labels, *others), (kept,), has_shape=True)


def test_what_a_squeeze_removes_is_known() -> None:
    text = "(float[2,N] x) => (float[2] y) { y = Squeeze(x) }"
    assert why_not(text) == "the dims that it removes are not known"
    text = "(float[2,1] x, int64[1] a) => (float[2] y) { y = Squeeze(x, a) }"
    assert why_not(text) == NOT_CONSTANT
    text = "(float[2,N] x) => (float[2] y) <int64[1] a = {1}> { y = Squeeze(x, a) }"
    assert map_of(text).outputs == ((0,),)
    text = "(float[2,1] x) => (float[2] y) <int64[1] a = {2}> { y = Squeeze(x, a) }"
    assert why_not(text) == OUT_OF_RANGE


def test_a_new_axis_has_no_iterator() -> None:
    text = "(float[2,3] x) => (y) <int64[2] a = {-1,0}> { y = Unsqueeze(x, a) }"
    assert map_of(text) == AxisMap(((1, 2), None), ((None, 1, 2, None),), has_shape=True)
    text = "(float[2,3] x) => (y) { y = Unsqueeze<axes=[1]>(x) }"
    assert map_of(text, 12).outputs == ((0, None, 2),)


@pytest.mark.parametrize(
    ("shape", "own", "made"),
    [("{4}", (0, 1), (0, 1)), ("{3,4}", (0, 1), (0, 1)), ("{2,3,4}", (1, 2), (0, 1, 2))],
)
def test_an_operand_is_expanded_at_its_last_axes(shape: str, own: Axes, made: Axes) -> None:
    count = shape.count(",") + 1
    text = f"(float[3,1] x) => (y) <int64[{count}] s = {shape}> {{ y = Expand(x, s) }}"
    expected = AxisMap((own, None), (made,), broadcasts=(0,), has_shape=True)
    assert map_of(text) == expected


def test_a_shape_of_unknown_rank_expands_to_unknown_axes() -> None:
    text = "(float[3,1] x, int64[N] s) => (float[3,4] y) { y = Expand(x, s) }"
    assert why_not(text) == "the rank of its shape is not known"


@pytest.mark.parametrize(
    ("repeats", "kinds"), [("{1,1}", {}), ("{1,2}", {1: OPAQUE}), ("{0,1}", {0: OPAQUE})]
)
def test_an_axis_is_repeated_unless_once(repeats: str, kinds: dict[int, IteratorKind]) -> None:
    text = f"(float[2,3] x) => (y) <int64[2] r = {repeats}> {{ y = Tile(x, r) }}"
    assert map_of(text) == AxisMap(((0, 1), None), ((0, 1),), kinds)


def test_repeats_that_are_not_known_are_for_all_axes() -> None:
    text = "(float[2,3] x, int64[2] r) => (y) { y = Tile(x, r) }"
    assert dict(map_of(text).kinds) == {0: OPAQUE, 1: OPAQUE}
    text = "(float[2,3] x) => (float[2,3] y) <int64[1] r = {1}> { y = Tile(x, r) }"
    assert why_not(text) == "it has not one number of repeats for each axis"


@pytest.mark.parametrize("axis", [1, -2])
def test_operands_are_joined_along_one_axis(axis: int) -> None:
    text = f"(float[2,3,4] x, float[2,1,4] z) => (y) {{ y = Concat<axis={axis}>(x, z, x) }}"
    assert map_of(text) == AxisMap(((0, 1, 2),) * 3, ((0, 1, 2),), {1: OPAQUE})


def test_joined_operands_have_one_rank() -> None:
    text = "(float[2,3] x, float[3] z) => (float[2,3] y) { y = Concat<axis=0>(x, z) }"
    assert why_not(text) == "its operands differ in rank"


@pytest.mark.parametrize(("attributes", "axis"), [("", 0), ("axis=-1, ", 1)])
def test_parts_are_taken_along_one_axis(attributes: str, axis: int) -> None:
    text = f"(float[2,4] x) => (y, z) {{ y, z = Split<{attributes}num_outputs=2>(x) }}"
    assert map_of(text) == AxisMap(((0, 1),), ((0, 1),) * 2, {axis: OPAQUE})


@pytest.mark.parametrize(
    ("line", "sliced"),
    [("Slice(x, a, b)", (0,)), ("Slice(x, a, b, a)", (1,)), ("Slice(x, c, c)", (0, 1))],
)
def test_a_slice_is_along_its_axes_or_the_first_ones(line: str, sliced: Labels) -> None:
    text = f"""(float[2,3,4] x, int64[2] c) => (float[A,B,C] y)
        <int64[1] a = {{1}}, int64[1] b = {{2}}> {{ y = {line} }}"""
    axes = map_of(text)
    assert (axes.inputs[0], axes.outputs) == ((0, 1, 2), ((0, 1, 2),))
    assert dict(axes.kinds) == dict.fromkeys(sliced, OPAQUE)


@pytest.mark.parametrize("line", ["Slice(x, n, n)", "Slice(x, c, c, c)"])
def test_axes_of_a_slice_are_known(line: str) -> None:
    text = f"(float[2,3] x, int64[1] c, int64[N] n) => (float[A,B] y) {{ y = {line} }}"
    assert why_not(text) == NOT_CONSTANT


@pytest.mark.parametrize(
    ("constants", "line", "kinds"),
    [
        ("int64[4] p = {0,1,0,0}", "Pad(x, p)", {1: OPAQUE}),
        ("int64[4] p = {0,0,1,0}", "Pad(x, p)", {0: OPAQUE}),
        ("int64[4] p = {0,-1,0,0}", "Pad(x, p)", {1: OPAQUE}),
        ("int64[4] p = {0,0,0,0}", "Pad(x, p)", {}),
        ("int64[2] p = {0,1}, int64[1] a = {-2}", "Pad(x, p, , a)", {0: OPAQUE}),
        ("int64[1] a = {1}", "Pad(x, d, , a)", {1: OPAQUE}),
    ],
)
def test_an_axis_is_padded_by_one_of_its_pads(
    constants: str, line: str, kinds: dict[int, IteratorKind]
) -> None:
    text = f"(float[2,3] x, int64[2] d) => (float[A,B] y) <{constants}> {{ y = {line} }}"
    axes = map_of(text)
    assert (axes.inputs[0], axes.outputs) == ((0, 1), ((0, 1),))
    assert dict(axes.kinds) == kinds


def test_axes_of_pads_are_known_and_have_two_each() -> None:
    text = "(float[2,3] x, int64[1] a) => (float[A,B] y) <int64[2] p = {1,1}> { y = Pad(x,p,,a) }"
    assert why_not(text) == NOT_CONSTANT
    text = "(float[2,3] x) => (float[A,B] y) <int64[2] p = {1,1}> { y = Pad(x, p) }"
    assert why_not(text) == "it has not two pads for each axis"


def test_the_iterators_of_the_operands_and_results() -> None:
    for text, opset, expected in (
        ("(float[2,3,4] x) => (y) { y = Transpose(x) }", 21, "0 1 2 -> 2 1 0"),
        ("(float[2,3,4] x) => (y) { y = Transpose<perm=[1,2,0]>(x) }", 21, "0 1 2 -> 1 2 0"),
        ("(float[2,3,4] x) => (float[A,B,C] y) { y = Transpose<perm=[0,0,1]>(x) }", 21,
         "no: its order of axes is not known"),
        ("(float[0,3] x, int64[1] s) => (float[N] y) { y = Reshape(x, s) }", 21,
         "no: a dim is 0"),
        ("(float[2,3,4] x) => (y) { y = Flatten(x) }", 21,
         "0 1 2 -> 0 101 | opaque 1 2 101 | group 1 2 = 101 | has shape"),
        ("(float[2,1,4] x) => (y) { y = Squeeze(x) }", 21, "0 . 2 -> 0 2 | has shape"),
        ("(float[2,N,4] x) => (y) { y = Squeeze(x) }", 21,
         "no: the dims that it removes are not known"),
        ("(float[2,3,4] x) => (y) { y = Concat<axis=-1>(x, x) }", 21,
         "0 1 2, 0 1 2 -> 0 1 2 | opaque 2"),
        ("(float[2,3,4] x) => (y) { y = Split<num_outputs=3, axis=1>(x) }", 21,
         "0 1 2 -> 0 1 2 | opaque 1"),
        ("(float[2,3,4] x) => (y) { y = Split<num_outputs=2>(x) }", 21,
         "0 1 2 -> 0 1 2 | opaque 0"),
        ("(float[2,3,4] x) => (y) <int64[2] s = {6,4}> { y = Reshape(x, s) }", 21,
         "0 1 2, - -> 100 2 | opaque 0 1 100 | group 0 1 = 100 | has shape"),
        ("(float[2,3,4] x) => (y) <int64[3] s = {2,1,12}> { y = Reshape(x, s) }", 21,
         "0 1 2, - -> 0 . 102 | opaque 1 2 102 | group 1 2 = 102 | has shape"),
        ("(float[2,3,4] x) => (y) <int64[2] s = {4,6}> { y = Reshape(x, s) }", 21,
         "0 1 2, - -> 100 101 | opaque 0 1 2 100 101 | group 0 1 2 = 100 101 | has shape"),
        ("(float[N,3,4] x) => (y) <int64[2] s = {0,-1}> { y = Reshape(x, s) }", 21,
         "0 1 2, - -> 0 101 | opaque 1 2 101 | group 1 2 = 101 | has shape"),
        ("(float[0,3] x) => (y) <int64[1] s = {-1}> { y = Reshape(x, s) }", 21, "no: a dim is 0"),
        ("(float[2,1,4] x) => (y) <int64[1] a = {1}> { y = Squeeze(x, a) }", 21,
         "0 . 2, - -> 0 2 | has shape"),
        ("(float[2,3] x) => (y) <int64[2] a = {0,-1}> { y = Unsqueeze(x, a) }", 21,
         "1 2, - -> . 1 2 . | has shape"),
        ("(float[3,1] x) => (y) <int64[3] s = {5,1,4}> { y = Expand(x, s) }", 21,
         "1 2, - -> 0 1 2 | broadcasts 0 | has shape"),
        ("(float[3,1] x) => (y) <int64[1] s = {4}> { y = Expand(x, s) }", 21,
         "0 1, - -> 0 1 | broadcasts 0 | has shape"),
        ("(float[2,3,4] x) => (y) <int64[3] r = {1,2,1}> { y = Tile(x, r) }", 21,
         "0 1 2, - -> 0 1 2 | opaque 1"),
        ("(float[2,3,4] x) => (y) <int64[2] b = {0,1}, int64[2] e = {1,2}> { y = Slice(x, b, e) }",
         21, "0 1 2, -, - -> 0 1 2 | opaque 0 1"),
        ("(float[2,3,4] x) => (y) <int64[1] b = {0}, int64[1] e = {1}, int64[1] a = {-1}> { y = "
         "Slice(x, b, e, a) }", 21, "0 1 2, -, -, - -> 0 1 2 | opaque 2"),
        ("(float[2,3,4] x) => (y) <int64[6] p = {0,0,1,0,2,0}> { y = Pad(x, p) }", 21,
         "0 1 2, - -> 0 1 2 | opaque 1 2"),
        ("(float[2,3,4] x) => (y) <int64[2] p = {0,1}, int64[1] a = {-2}> { y = Pad(x, p, , a) }",
         21, "0 1 2, -, -, - -> 0 1 2 | opaque 1"),
        ("(float[2,3,4] x) => (y) <int64[4] p = {0,1,0,0}> { y = Pad(x, p) }", 21,
         "no: it has not two pads for each axis"),
        ("(float[2,3,4] x) => (y) <int64[2] r = {1,2}> { y = Tile(x, r) }", 21,
         "no: it has not one number of repeats for each axis"),
        ("(float[2,3] x, int64[2] r) => (float[A,B] y) { y = Tile(x, r) }", 21,
         "0 1, - -> 0 1 | opaque 0 1"),
        ("(float[2,3] x, int64[4] p) => (float[A,B] y) { y = Pad(x, p) }", 21,
         "0 1, - -> 0 1 | opaque 0 1"),
        ("(float[2,3] x, int64[2] p, int64[1] a) => (float[A,B] y) { y = Pad(x, p, , a) }", 21,
         "no: its axes are not constant"),
        ("(float[2,3] x, int64[1] b, int64[1] e) => (float[A,B] y) { y = Slice(x, b, e) }", 21,
         "0 1, -, - -> 0 1 | opaque 0"),
        ("(float[2,3] x, int64[N] b, int64[N] e) => (float[A,B] y) { y = Slice(x, b, e) }", 21,
         "no: its axes are not constant"),
        ("(float[2,3] x, int64[1] b, int64[1] e, int64[1] a) => (float[A,B] y) { y = Slice(x, "
         "b, e, a) }", 21, "no: its axes are not constant"),
        ("(float[2,3] x, int64[N] s) => (float[A,B] y) { y = Expand(x, s) }", 21,
         "no: the rank of its shape is not known"),
    ):  # fmt: skip
        assert written(text, opset) == expected, text
