"""Operators with axes at fixed places: the orders in which they exist."""

import pytest

from tests.analysis.layout.rules.writing import allows, known, node_of, written

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
