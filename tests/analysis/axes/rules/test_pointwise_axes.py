"""Axis maps of operators that compute each element from the elements at the same index."""

import pytest

from tests.analysis.axes.rules.maps import found, written
from tiered import Skip
from tiered.analysis.axes.axis_map import AxisMap, IteratorKind


def test_operands_broadcast_to_the_one_of_most_axes() -> None:
    axes = found("(float[3,4] x, float[2,1,4] z) => (y) { y = Add(x, z) }")
    assert axes == AxisMap(((1, 2), (0, 1, 2)), ((0, 1, 2),), broadcasts=(0, 1))
    assert found("(float[3,4] x, float[2,1,4] z) => (y) { y = Sub(x, z) }") is axes


def test_all_operands_of_a_unary_operator_but_the_first_are_numbers() -> None:
    axes = found("(float[2,3] x, float low) => (y) { y = Clip(x, low) }")
    assert axes == AxisMap(((0, 1), None), ((0, 1),))
    assert isinstance(found("(float[2,3] x, float[] low) => (y) { y = Clip(x, low) }"), Skip)
    assert isinstance(found("(float[2,3] x, float[3] k) => (y) { y = CastLike(x, k) }"), AxisMap)


def test_before_opset_8_a_max_does_not_broadcast() -> None:
    axes = found("(float[2,3] x, float[2,3] z) => (y) { y = Max(x, z) }", 7)
    assert isinstance(axes, AxisMap)
    assert axes.broadcasts == ()


@pytest.mark.parametrize(
    ("scale", "attribute", "labels", "kinds"),
    [
        ("float", "", None, {}),
        ("float[1]", "", None, {}),
        ("float[4]", "<axis=-1>", (1,), {}),
        ("float[6,2]", "<axis=1, block_size=2>", (0, 1), {1: IteratorKind.OPAQUE}),
    ],
)
def test_a_scale_is_for_all_for_an_index_or_for_a_block(
    scale: str, attribute: str, labels: tuple[int, ...] | None, kinds: dict[int, IteratorKind]
) -> None:
    axes = found(f"(int8[6,4] x, {scale} s) => (y) {{ y = DequantizeLinear{attribute}(x, s) }}")
    assert axes == AxisMap(((0, 1), labels), ((0, 1),), kinds)


def test_two_operands_of_a_quantised_sum_broadcast() -> None:
    axes = found(
        "(uint8[2,3] x, float s, uint8 z, uint8[3] w) => (uint8[2,3] y) "
        "{ y = com.microsoft.QLinearAdd(x, s, z, w, s, z, s, z) }"
    )
    assert isinstance(axes, AxisMap)
    assert axes.inputs == ((0, 1), None, None, (1,), None, None, None, None)
    assert axes.broadcasts == (0, 3)


def test_the_iterators_of_the_operands_and_results() -> None:
    for text, opset, expected in (
        ("(float[2,3,4] x) => (y) { y = Relu(x) }", 21, "0 1 2 -> 0 1 2"),
        ("(float x) => (y) { y = Relu(x) }", 21, "() -> ()"),
        ("(float[2,3] x, float[1] a) => (y) { y = Clip(x, a) }", 21,
         "no: an operand beside the first one is no scalar"),
        ("(float[2,3] x, float a) => (y) { y = Clip(x, , a) }", 21, "0 1, -, - -> 0 1"),
        ("(float[2,3] x, float[3] s) => (y) { y = QuantizeLinear(x, s, ) }", 21,
         "0 1, 1 -> 0 1"),
        ("(float[2,3] x) => (y) { y = Dropout(x) }", 6, "no: it is in training mode"),
        ("(float[2,3] x) => (y) { y = Dropout<is_test=1>(x) }", 6, "0 1 -> 0 1"),
        ("(float[2,3] x) => (y) { y = Dropout(x) }", 7, "0 1 -> 0 1"),
        ("(float[2,3] x, float[3] z) => (y) { y = Add(x, z) }", 6, "0 1, 1 -> 0 1"),
        ("(float[2,3] x, float[3] z) => (y) { y = Add<broadcast=1>(x, z) }", 6,
         "no: its opset broadcasts in another way"),
        ("(float[2,3] x, float[2,3] z) => (y) { y = Add(x, z) }", 6, "0 1, 0 1 -> 0 1"),
        ("(float[2,3] x, float[3] z) => (y) { y = Add(x, z) }", 7,
         "0 1, 1 -> 0 1 | broadcasts 0 1"),
        ("(float[2,3] x, float[3] s) => (y) { y = PRelu(x, s) }", 21,
         "0 1, 1 -> 0 1 | broadcasts 1"),
        ("(float[2,3] x, float[3] s) => (y) { y = PRelu(x, s) }", 6,
         "no: its opset broadcasts in another way"),
        ("(float[2,3] x, float[3] s) => (y) { y = PRelu(x, s) }", 7,
         "0 1, 1 -> 0 1 | broadcasts 1"),
        ("(float[2,3] x, float[2,3] z) => (y) { y = Max(x, z) }", 8,
         "0 1, 0 1 -> 0 1 | broadcasts 0 1"),
        ("(bool[2,1] c, float[2,3] x, float z) => (y) { y = Where(c, x, z) }", 21,
         "0 1, 0 1, () -> 0 1 | broadcasts 0 1 2"),
        ("(float[2,3] x, float[3] z, float[1,3] w) => (y) { y = Sum(x, z, w) }", 21,
         "0 1, 1, 0 1 -> 0 1 | broadcasts 0 1 2"),
        ("(uint8[2,3] x, float s, uint8 z) => (y) { y = com.microsoft.QLinearSigmoid(x, s, z, "
         "s, z) }", 21, "0 1, -, -, -, - -> 0 1"),
        ("(uint8[3] x, float s, uint8 z, uint8[2,3] w) => (y) { y = com.microsoft.QLinearMul(x, "
         "s, z, w, s, z, s, z) }", 21, "1, -, -, 0 1, -, -, -, - -> 0 1 | broadcasts 0 3"),
        ("(float[2,3,4] x, float[3] s, uint8[3] z) => (y) { y = QuantizeLinear(x, s, z) }", 21,
         "0 1 2, 1, 1 -> 0 1 2"),
        ("(float[2,3,4] x, float[2] s) => (y) { y = QuantizeLinear<axis=0>(x, s) }", 21,
         "0 1 2, 0 -> 0 1 2"),
        ("(float[2,3,4] x, float[2,3] s) => (y) { y = QuantizeLinear(x, s) }", 21,
         "no: its scale is neither a scalar nor 1-D"),
        ("(int8[2,4] x, float[2,2] s) => (y) { y = DequantizeLinear<block_size=2>(x, s) }", 21,
         "0 1, 0 1 -> 0 1 | opaque 1"),
        ("(int8[2,4] x, float[2] s) => (y) { y = DequantizeLinear<block_size=2, axis=0>(x, s) }",
         21, "0 1, 0 -> 0 1"),
        ("(int8[2,4] x, float[4] s) => (y) { y = com.microsoft.DequantizeLinear(x, s) }", 21,
         "0 1, 1 -> 0 1"),
        ("(float[2,3,4] x, float[3] s) => (y) { y = BatchNormalization(x, s, s, s, s) }", 21,
         "0 1 2, 1, 1, 1, 1 -> 0 1 2"),
        ("(float[2,3] x, float[3] s) => (y) { y = BatchNormalization(x, s, s, s, s) }", 21,
         "0 1, 1, 1, 1, 1 -> 0 1"),
        ("(float[2,3,4] x, float[3] s) => (y) { y = BatchNormalization<spatial=0>(x, s, s, s, "
         "s) }", 7, "no: it has a scale for each element"),
        ("(float[3] x, float[3] s) => (y) { y = BatchNormalization(x, s, s, s, s) }", 21,
         "no: its rank is 1"),
        ("(float[2,3,4] x, float[3] s) => (y, m, v) { y, m, v = "
         "BatchNormalization<training_mode=1>(x, s, s, s, s) }", 21, "no: it is in training mode"),
    ):  # fmt: skip
        assert written(text, opset) == expected, text
