"""Axis maps of operators that take or put elements at indices."""

import pytest

from tests.analysis.axes.rules.maps import map_of, why_not, written
from tiered.analysis.axes.axis_map import Axes, AxisMap, IteratorKind, Labels

OPAQUE, SUM = IteratorKind.OPAQUE, IteratorKind.REDUCTION


@pytest.mark.parametrize(
    ("attribute", "made", "axis"),
    [("", (3, 4, 1, 2), 0), ("<axis=1>", (0, 3, 4, 2), 1), ("<axis=-1>", (0, 1, 3, 4), 2)],
)
def test_the_axes_of_the_indices_take_the_place_of_the_gathered_axis(
    attribute: str, made: Axes, axis: int
) -> None:
    text = f"(float[2,3,4] x, int64[5,6] i) => (y) {{ y = Gather{attribute}(x, i) }}"
    assert map_of(text) == AxisMap(((0, 1, 2), (3, 4)), (made,), {axis: OPAQUE})


def test_one_index_takes_an_axis_away() -> None:
    axes = map_of("(float[2,3] x, int64 i) => (y) { y = Gather<axis=1>(x, i) }")
    assert axes == AxisMap(((0, 1), ()), ((0,),), {1: OPAQUE})


@pytest.mark.parametrize(
    ("line", "opset", "kinds"),
    [
        ("GatherElements(x, i)", 21, {0: OPAQUE}),
        ("GatherElements<axis=-1>(x, i)", 21, {1: OPAQUE}),
        ("GatherElements(x, j)", 21, {0: OPAQUE, 1: OPAQUE}),
        ("ScatterElements<axis=1>(x, j, v)", 21, {1: OPAQUE}),
        ("ScatterElements<axis=0>(x, j, v)", 21, {0: OPAQUE, 1: OPAQUE}),
        ("Scatter<axis=0>(x, i, u)", 10, {0: OPAQUE}),
    ],
)
def test_elements_are_taken_and_put_along_their_axis_and_where_operands_differ(
    line: str, opset: int, kinds: dict[int, IteratorKind]
) -> None:
    text = f"""(float[2,3] x, int64[2,3] i, int64[2,2] j, float[2,3] u, float[2,2] v) => (y)
        {{ y = {line} }}"""
    axes = map_of(text, opset)
    assert {*axes.inputs} == {(0, 1)}
    assert axes.outputs == ((0, 1),)
    assert dict(axes.kinds) == kinds


def test_elements_are_taken_at_indices_of_the_rank_of_the_data() -> None:
    text = "(float[2,3] x, int64[2] i) => (y) { y = GatherElements(x, i) }"
    assert why_not(text) == "its operands differ in rank"


@pytest.mark.parametrize(
    ("shape", "indices", "attribute", "axes", "opaque"),
    [
        ("[2,3,4]", "[5,2]", "", ((0, 1, 2), (3, 5), (3, 2)), (0, 1)),
        ("[2,3,4]", "[5,3]", "", ((0, 1, 2), (3, 5), (3,)), (0, 1, 2)),
        ("[2,3,4]", "[2,5,1]", "<batch_dims=1>", ((0, 1, 2), (0, 3, 6), (0, 3, 2)), (1,)),
    ],
)  # fmt: skip
def test_an_index_of_several_axes_takes_a_part(
    shape: str, indices: str, attribute: str, axes: tuple[Axes, Axes, Axes], opaque: Labels
) -> None:
    text = f"(float{shape} x, int64{indices} i) => (y) {{ y = GatherND{attribute}(x, i) }}"
    data, listed, made = axes
    assert map_of(text)[:2] == ((data, listed), (made,))
    (depth,) = (label for label in listed[-1:] if label is not None)
    assert map_of(text).kinds == {**dict.fromkeys(opaque, OPAQUE), depth: SUM}


@pytest.mark.parametrize(
    ("shape", "indices", "attribute"),
    [("[2,3]", "[5,3]", ""), ("[2,3]", "[2,2]", "<batch_dims=1>"), ("[2,3]", "[5,N]", ""),
     ("[2,3]", "", "")],
)  # fmt: skip
def test_an_index_is_for_no_more_axes_than_the_data_has(
    shape: str, indices: str, attribute: str
) -> None:
    text = f"(float{shape} x, int64{indices} i) => (y) {{ y = GatherND{attribute}(x, i) }}"
    assert why_not(text) == "the axes that its indices are for are not known"


def test_updates_are_put_at_the_axes_that_an_index_names() -> None:
    axes = map_of("(float[4,3] x, int64[2,1] i, float[2,3] u) => (y) { y = ScatterND(x, i, u) }")
    kinds = {0: OPAQUE, 2: SUM, 3: SUM}
    assert axes == AxisMap(((0, 1), (2, 3), (2, 1)), ((0, 1),), kinds)
    text = "(float[4,3] x, int64[2,3] i, float[2] u) => (y) { y = ScatterND(x, i, u) }"
    assert why_not(text) == "the axes that its indices are for are not known"


def test_an_update_of_all_axes_is_one_number() -> None:
    axes = map_of("(float[4,3] x, int64[2,2] i, float[2] u) => (y) { y = ScatterND(x, i, u) }")
    assert axes.inputs == ((0, 1), (2, 3), (2,))
    assert dict(axes.kinds) == {0: OPAQUE, 1: OPAQUE, 2: SUM, 3: SUM}


def test_elements_are_kept_along_an_axis_that_is_named() -> None:
    text = "(float[2,3] x, bool[3] c) => (y) { y = Compress<axis=-1>(x, c) }"
    assert map_of(text) == AxisMap(((0, 1), None), ((0, 1),), {1: OPAQUE})
    text = "(float[2,3] x, bool[3] c) => (y) { y = Compress(x, c) }"
    assert why_not(text) == "without an axis it flattens its operand"
    text = "(float[2,3] x, bool[3] c) => (y) { y = Compress<axis=2>(x, c) }"
    assert why_not(text) == "its axis is out of range"


@pytest.mark.parametrize(
    ("attribute", "own", "axis"),
    [("", (0, 1), 2), ("<axis=0>", (1, 2), 0), ("<axis=-2>", (0, 2), 1), ("<axis=2>", (0, 1), 2)],
)
def test_a_one_hot_result_has_a_new_axis(attribute: str, own: Axes, axis: int) -> None:
    text = f"(int64[2,3] i, int64 n, float[2] v) => (y) {{ y = OneHot{attribute}(i, n, v) }}"
    assert map_of(text) == AxisMap((own, None, None), ((0, 1, 2),), {axis: OPAQUE})


def test_the_iterators_of_the_operands_and_results() -> None:
    for text, opset, expected in (
        ("(float[2,3,4] x, int64[5,6] i) => (y) { y = Gather(x, i) }", 21,
         "0 1 2, 3 4 -> 3 4 1 2 | opaque 0"),
        ("(float[2,3,4] x, int64 i) => (y) { y = Gather<axis=-1>(x, i) }", 21,
         "0 1 2, () -> 0 1 | opaque 2"),
        ("(float[2,3,4] x, int64[5] i) => (y) { y = Gather<axis=1>(x, i) }", 21,
         "0 1 2, 3 -> 0 3 2 | opaque 1"),
        ("(float[2,3,4] x, int64[2,3,4] i) => (y) { y = GatherElements<axis=1>(x, i) }", 21,
         "0 1 2, 0 1 2 -> 0 1 2 | opaque 1"),
        ("(float[2,3,4] x, int64[2,1,4] i) => (y) { y = GatherElements(x, i) }", 21,
         "0 1 2, 0 1 2 -> 0 1 2 | opaque 0 1"),
        ("(float[2,3] x, int64[2] i) => (y) { y = GatherElements(x, i) }", 21,
         "no: its operands differ in rank"),
        ("(float[2,3] x, int64[2,3] i) => (y) { y = ScatterElements<axis=-1>(x, i, x) }", 21,
         "0 1, 0 1, 0 1 -> 0 1 | opaque 1"),
        ("(float[2,3,4] x, int64[5,2] i) => (y) { y = GatherND(x, i) }", 21,
         "0 1 2, 3 5 -> 3 2 | reduction 5 | opaque 0 1"),
        ("(float[2,3,4] x, int64[2,5,1] i) => (y) { y = GatherND<batch_dims=1>(x, i) }", 21,
         "0 1 2, 0 3 6 -> 0 3 2 | reduction 6 | opaque 1"),
        ("(float[2,3,4] x, int64[5,4] i) => (y) { y = GatherND(x, i) }", 21,
         "no: the axes that its indices are for are not known"),
        ("(float[2,3,4] x, int64[5,3] i) => (y) { y = GatherND(x, i) }", 21,
         "0 1 2, 3 5 -> 3 | reduction 5 | opaque 0 1 2"),
        ("(float[2,3,4] x, int64[2,5,3] i) => (y) { y = GatherND<batch_dims=1>(x, i) }", 21,
         "no: the axes that its indices are for are not known"),
        ("(float[2,3,4] x, int64[5,1] i, float[5,3,4] u) => (y) { y = ScatterND(x, i, u) }", 21,
         "0 1 2, 3 4, 3 1 2 -> 0 1 2 | reduction 3 4 | opaque 0"),
        ("(float[2,3,4] x, int64[5,6,2] i, float[5,6,4] u) => (y) { y = ScatterND(x, i, u) }", 21,
         "0 1 2, 3 4 5, 3 4 2 -> 0 1 2 | reduction 3 4 5 | opaque 0 1"),
        ("(float[2,3,4] x, bool[3] c) => (y) { y = Compress<axis=1>(x, c) }", 21,
         "0 1 2, - -> 0 1 2 | opaque 1"),
        ("(float[2,3,4] x, bool[3] c) => (y) { y = Compress(x, c) }", 21,
         "no: without an axis it flattens its operand"),
        ("(int64[2,3] x, int64 d, float[2] v) => (y) { y = OneHot(x, d, v) }", 21,
         "0 1, -, - -> 0 1 2 | opaque 2"),
        ("(int64[2,3] x, int64 d, float[2] v) => (y) { y = OneHot<axis=0>(x, d, v) }", 21,
         "1 2, -, - -> 0 1 2 | opaque 0"),
    ):  # fmt: skip
        assert written(text, opset) == expected, text
