"""Operators with axes at fixed places: the orders in which they exist."""

from itertools import permutations

import pytest

from tests.analysis.layout.rules.writing import allows, known, node_of, orders_of_operand, written

NORM = "(float[2,3,4,5] x, float{} s) => (y) {{ y = RMSNormalization<axis=2>(x, s) }}"
SOFTMAX = "(float[2,3,4] x) => (y) {{ y = {}<axis=1>(x) }}"
RESIZED = (
    '(float[2,3,4,5] x) => (y) <float[4] s = {{1,1,{},2}}> {{ y = Resize<mode="{}">(x, , s) }}'
)


@pytest.mark.parametrize(
    ("text", "perm", "opset", "is_there"),
    [
        ("(float[2,3,4] x) => (y) { y = LRN<size=3>(x) }", (2, 1, 0), 21, True),
        ("(float[2,3,4] x) => (y) { y = LRN<size=3>(x) }", (1, 0, 2), 21, False),
        ("(float[2,3,4,5] x, float[3] s) => (y) { y = InstanceNormalization(x, s, s) }",
         (0, 1, 3, 2), 21, True),
        ("(float[2,3,4,5] x, float[3] s) => (y) { y = InstanceNormalization(x, s, s) }",
         (0, 2, 1, 3), 21, False),
        (NORM.format("[4,5]"), (1, 0, 3, 2), 23, True),
        (NORM.format("[5]"), (1, 0, 2, 3), 23, True),
        (NORM.format("[5]"), (0, 1, 3, 2), 23, False),
        (NORM.format("[4,5]"), (0, 2, 1, 3), 23, False),
        (SOFTMAX.format("Softmax"), (2, 1, 0), 13, True),
        (SOFTMAX.format("Softmax"), (0, 2, 1), 11, True),
        (SOFTMAX.format("Hardmax"), (0, 2, 1), 11, False),
        (SOFTMAX.format("Softmax"), (1, 0, 2), 11, False),
        ("(float[2,3,4] x) => (y) { y = Trilu(x) }", (0, 2, 1), 21, True),
        ("(float[2,3,4] x) => (y) { y = Trilu(x) }", (1, 0, 2), 21, False),
        (RESIZED.format(2, "linear"), (1, 0, 2, 3), 21, True),
        (RESIZED.format(2, "linear"), (0, 1, 3, 2), 21, False),
        (RESIZED.format(1, "linear"), (2, 0, 1, 3), 21, True),
        (RESIZED.format(2, "nearest"), (3, 2, 1, 0), 21, True),
        ("(float[2,3,4] x, int64[5,1] i) => (y) { y = GatherND(x, i) }", (0, 2, 1), 21, True),
        ("(float[2,3,4] x, int64[5,1] i) => (y) { y = GatherND(x, i) }", (1, 0, 2), 21, False),
        ("(float[2,3,4] x, int64[5,1] i, float[5,3,4] u) => (y) { y = ScatterND(x, i, u) }",
         (0, 2, 1), 21, True),
        ("(float[2,3,4] x, int64[5,1] i, float[5,3,4] u) => (y) { y = ScatterND(x, i, u) }",
         (1, 0, 2), 21, False),
    ],
)  # fmt: skip
def test_an_order_is_one_of_the_operator_or_none(
    text: str, perm: tuple[int, ...], opset: int, is_there: bool
) -> None:
    assert allows(text, perm, opset) is is_there


def test_scales_of_all_normalised_axes_are_permuted_with_them() -> None:
    found = known(node_of(NORM.format("[4,5]"), 23))
    assert found.inputs == ((0, 1, 2, 3), (2, 3))
    assert known(node_of(NORM.format("[5]"), 23)).inputs == ((0, 1, 2, 3), None)


def test_the_other_triangle_is_taken_of_swapped_axes() -> None:
    text = "(float[3,4] x) => (y) <int64 k = {1}> { y = Trilu<upper=1>(x, k) }"
    made = written(text, (1, 0))
    assert made.attr("upper") == 0
    assert made.inputs[1] is not None
    assert made.inputs[1].number == -1


def test_batch_and_time_change_places() -> None:
    text = "(float[2,3,4] x, int64[3] n) => (y) { y = ReverseSequence<batch_axis=1>(x, n) }"
    made = written(text, (1, 0, 2))
    assert (made.attr("batch_axis"), made.attr("time_axis")) == (0, 1)


def test_the_orders_of_the_operand_and_what_is_written_in_each() -> None:
    for text, opset, expected in (
        ("(float[2,3,4] x) => (y) { y = LRN<size=3>(x) }", 21, {"210": "size=3"}),
        ("(float[2,3,4] x, float[3] s) => (y) { y = BatchNormalization(x, s, s, s, s) }", 21,
         {"210": ""}),
        ("(float[2,3,4] x, float[3] s) => (y) { y = InstanceNormalization(x, s, s) }", 21, {}),
        ("(float[2,3,4] x, int64[3] n) => (y) "
         "{ y = ReverseSequence<batch_axis=1, time_axis=0>(x, n) }", 21,
         {"102": "batch_axis=0 time_axis=1"}),
        ("(float[2,3,4] x, float[4] s) => (y) { y = LayerNormalization(x, s) }", 21,
         {"102": ""}),
        ("(float[2,3,4] x, float[3,4] s, float[3,4] b) => (y) "
         "{ y = LayerNormalization<axis=1>(x, s, b) }", 21,
         {"021": "axis=1"}),
        ("(float[2,3,4] x, float[4] s) => (y) { y = LayerNormalization<axis=1>(x, s) }", 21,
         {}),
        ("(float[2,3,4] x, float[3,4] s) => (y) { y = LayerNormalization(x, s) }", 21,
         "scale or bias may exceed the normalised dims"),
        ("(float[2,3,4] x, float[1,4] s) => (y) { y = LayerNormalization(x, s) }", 21,
         "scale or bias may exceed the normalised dims"),
        ("(float[2,3,4] x) => (y) { y = Softmax<axis=1>(x) }", 13,
         {"021": "axis=2", "102": "axis=0", "120": "axis=0", "201": "axis=2", "210": "axis=1"}),
        ("(float[2,3,4] x) => (y) { y = Softmax<axis=1>(x) }", 11, {"021": "axis=1"}),
        ("(float[2,3,4] x) => (y) { y = Softmax<axis=2>(x) }", 11, {"102": "axis=2"}),
        ("(float[2,3,4] x) => (y) { y = Hardmax<axis=1>(x) }", 11, {}),
        ("(float[2,3,4] x) => (y) { y = LogSoftmax<axis=0>(x) }", 12,
         {"021": "axis=0", "102": "axis=0", "120": "axis=0", "201": "axis=0", "210": "axis=0"}),
        ("(float[2,3,4] x) => (y) { y = Hardmax<axis=0>(x) }", 13,
         {"021": "axis=0", "102": "axis=1", "120": "axis=2", "201": "axis=1", "210": "axis=2"}),
        ("(float[2,3,4] x) => (y) { y = Trilu(x) }", 21, {"021": "upper=0"}),
        ("(float[2,3,4] x) => (y) { y = Trilu<upper=0>(x) }", 21, {"021": ""}),
        ("(float[2,3,4,5] x) => (y) { y = Trilu(x) }", 21,
         {"0132": "upper=0", "1023": "", "1032": "upper=0"}),
        ('(float[2,3,4] x) => (y) <int64[3] s = {2,3,4}> { y = Resize<mode="linear">(x, '
         ', , s) }', 21,
         {"021": "mode=linear 3:[2,4,3]", "102": "mode=linear 3:[3,2,4]",
          "120": "mode=linear 3:[3,4,2]", "201": "mode=linear 3:[4,2,3]",
          "210": "mode=linear 3:[4,3,2]"}),
        ("(float[2,3,4] x) => (y) <int64 k = {2}> { y = Trilu(x, k) }", 21,
         {"021": "upper=0 1:[-2]"}),
        ("(float[2,3,4] x, int64 k) => (y) { y = Trilu(x, k) }", 21, {"021": "upper=0"}),
        ('(float[2,3,4] x) => (y) <float[3] s = {1,1,2}> { y = Resize<mode="linear">(x, , s) }', 21,
         {"102": "mode=linear 2:[1.0,1.0,2.0]"}),
        ('(float[2,3,4] x) => (y) <float[3] s = {1,2,2}> { y = Resize<mode="linear">(x, , s) }', 21,
         {}),
        ('(float[2,3,4] x) => (y) <float[3] s = {1,2,2}> { y = '
         'Resize<mode="nearest">(x, , s) }', 21,
         {"021": "2:[1.0,2.0,2.0]", "102": "2:[2.0,1.0,2.0]", "120": "2:[2.0,2.0,1.0]",
          "201": "2:[2.0,1.0,2.0]", "210": "2:[2.0,2.0,1.0]"}),
        ('(float[2,3,4] x) => (y) <float[2] s = {2,3}> '
         '{ y = Resize<mode="nearest", axes=[2,0]>(x, , s) }', 21,
         {"021": "axes=[1,0] 2:[2.0,3.0]", "102": "axes=[2,1] 2:[2.0,3.0]",
          "120": "axes=[1,2] 2:[2.0,3.0]", "201": "axes=[0,1] 2:[2.0,3.0]",
          "210": "axes=[0,2] 2:[2.0,3.0]"}),
        ('(float[2,3,4] x) => (y) <float[3] s = {1,1.2,1}> { y = '
         'Resize<mode="linear">(x, , s) }', 21,
         {"021": "mode=linear 2:[1.0,1.0,1.2]", "201": "mode=linear 2:[1.0,1.0,1.2]"}),
        ('(float[2,3,4] x) => (y) <int64[3] s = {2,3,8}> { y = Resize<mode="linear">(x, '
         ', , s) }', 21,
         {"102": "mode=linear 3:[3,2,8]"}),
        ('(float[2,3,4] x) => (y) <int64[3] s = {2,3,8}> '
         '{ y = Resize<mode="linear", keep_aspect_ratio_policy="not_larger">(x, , , s) }', 21,
         {}),
        ('(float[2,3,4] x) => (y) <int64[3] s = {2,3,8}, float[6] r = {0,0,0,1,1,0.5}> '
         '{ y = Resize<mode="linear", '
         'coordinate_transformation_mode="tf_crop_and_resize">(x, r, , s) }', 21,
         {}),
        ('(float[2,3,4] x) => (y) <int64[3] s = {2,3,8}, float[0] e = {}> '
         '{ y = Resize<mode="cubic">(x, e, e, s) }', 21,
         {"102": "mode=cubic 1:[] 2:[] 3:[3,2,8]"}),
        ("(float[2,3,4] x) => (y) <float[3] s = {1,2,2}> { y = Upsample(x, s) }", 9,
         {"021": "1:[1.0,2.0,2.0]", "102": "1:[2.0,1.0,2.0]", "120": "1:[2.0,2.0,1.0]",
          "201": "1:[2.0,1.0,2.0]", "210": "1:[2.0,2.0,1.0]"}),
        ('(float[2,3,4] x) => (y) <float[3] s = {1,2,2}> { y = Upsample<mode="linear">(x, s) }', 9,
         "it interpolates"),
        ("(float[2,3,4] x, int64[5,1] i) => (y) { y = GatherND(x, i) }", 21, {"021": ""}),
        ("(float[2,3,4] x, int64[5,2] i) => (y) { y = GatherND(x, i) }", 21, {}),
        ("(float[2,3,4] x, int64[2,5,1] i) => (y) { y = GatherND<batch_dims=1>(x, i) }", 21,
         {}),
        ("(float[2,3,4] x, int64[5,1] i, float[5,3,4] u) => (y) { y = ScatterND(x, i, u) }", 21,
         {"021": ""}),
        ("(float[2,3,4] x, int64[5,2] i, float[5,4] u) => (y) { y = ScatterND(x, i, u) }", 21,
         {}),
    ):  # fmt: skip
        assert orders_of_operand(text, opset) == expected, text


def test_the_axes_of_indices_and_those_behind_stay_together() -> None:
    for text, count in (
        ("(float[2,3,4] x, int64[5,6,1] i) => (y) { y = GatherND(x, i) }", 40),
        ("(float[2,3,4] x, int64[2,5,1] i) => (y) { y = GatherND<batch_dims=1>(x, i) }", 5),
        ("(float[2,3,4,5] x, int64[6,2] i) => (y) { y = GatherND(x, i) }", 24),
        ("(float[2,3,4] x, int64[5,1] i, float[5,3,4] u) => (y) { y = ScatterND(x, i, u) }", 14),
        ("(float[2,3,4] x, int64[5,6,1] i, float[5,6,3,4] u) => (y) { y = ScatterND(x, i, u) }",
         20),
    ):  # fmt: skip
        found = known(node_of(text))
        labels = {label for own in (*found.inputs, *found.outputs) for label in own or ()}
        assert sum(map(found.allows, permutations(sorted(labels)))) == count, text
