"""Axis maps of operators that compute each element from the elements at the same index."""

import pytest

from tests.analysis.axes.rules.maps import found
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
