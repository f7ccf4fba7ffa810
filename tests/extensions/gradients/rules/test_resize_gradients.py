"""The gradient of Resize."""

import numpy as np
import onnx
import pytest

from tests.extensions.gradients.differences import check, gradients_of
from tiered import get_pass
from tiered.extensions.gradients import NoGradient
from tiered.testing import parse


@pytest.mark.parametrize(
    ("settings", "operands", "y"),
    [('mode = "nearest"', 'x, "", s', "6,8"), ('mode = "linear"', 'x, "", "", t', "5,7"),
     ('mode = "cubic"', 'x, "", s', "6,8"),
     ('mode = "linear", coordinate_transformation_mode = "align_corners"', 'x, "", "", t', "5,7")],
)  # fmt: skip
def test_resize(settings: str, operands: str, y: str) -> None:
    check(
        f"(double[1,1,3,4] x) => (double[1,1,{y}] y) "
        f"<float[4] s = {{1,1,2,2}}, int64[4] t = {{1,1,5,7}}> "
        f"{{ y = Resize <{settings}> ({operands}) }}"
    )


@pytest.mark.parametrize("scales", ["float[1] k = {2}", "float[1] k = {0.5}"])
def test_only_the_written_axes_are_resized(scales: str) -> None:
    size = 6 if "{2}" in scales else 1
    text = f"""(double[3,2] x) => (double[{size},2] y) <{scales}> {{
        y = Resize <mode = "nearest", axes = [0], nearest_mode = "floor",
            coordinate_transformation_mode = "asymmetric"> (x, "", k) }}"""
    found = gradients_of(text, x=np.zeros((3, 2)), seed=np.arange(2 * size) + 1)["x"]
    expected = [[4, 6], [12, 14], [20, 22]] if size == 6 else [[1, 2], [0, 0], [0, 0]]
    np.testing.assert_array_equal(found, expected)


def test_axes_are_also_counted_from_the_end() -> None:
    text = """(float[2,3] x) => (float[2,6] y) <float[1] k = {2}> {
        y = Resize <mode = "nearest", axes = [-1]> (x, "", k) }"""
    found = gradients_of(text, x=np.zeros((2, 3)), seed=np.arange(12), in_float=True)["x"]
    np.testing.assert_array_equal(found, [[1, 5, 9], [13, 17, 21]])


def test_axes_of_the_same_size_are_left_alone() -> None:
    text = """(float[1,1,2,3] x) => (float[1,1,4,3] y) <float[4] k = {1,1,2,1}> {
        y = Resize <mode = "nearest"> (x, "", k) }"""
    made = get_pass("gradient", seed="input")(parse(text))
    assert isinstance(made, onnx.ModelProto)
    assert [node.op_type for node in made.graph.node].count("MatMul") == 1


@pytest.mark.parametrize("opset", [7, 9])
def test_an_upsample_adds_up_its_copies(opset: int) -> None:
    scales = '<mode = "nearest", scales = [1.0,1.0,1.0,2.0]> (x)' if opset == 7 else "(x, k)"
    constant = "" if opset == 7 else "<float[4] k = {1,1,1,2}>"
    text = f"(float[1,1,1,2] x) => (float[1,1,1,4] y) {constant} {{ y = Upsample {scales} }}"
    if opset == 7:
        with pytest.raises(NoGradient, match="convert_opset raises the opset"):
            get_pass("gradient", seed="input")(parse(text, opset=7))
        return
    found = gradients_of(
        text, x=np.zeros((1, 1, 1, 2)), seed=[1, 10, 100, 1000], opset=opset, in_float=True
    )["x"]
    np.testing.assert_array_equal(found.ravel(), [11, 1100])


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
def test_a_policy_chooses_one_scale(policy: str) -> None:
    sizes = "2,4" if policy == "not_larger" else "3,6"
    text = f"""(double[1,2] x) => (double[{sizes}] y) <int64[2] s = {{2,6}}> {{
        y = Resize <mode = "nearest", keep_aspect_ratio_policy = "{policy}",
            coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">
        (x, "", "", s) }}"""
    # By themselves the scales of the axes would be 2 and 3.
    expected = [4, 4] if policy == "not_larger" else [9, 9]
    np.testing.assert_allclose(gradients_of(text, x=[[1, 2]])["x"], [expected])


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_resize_with_one_scale_for_all_axes(mode: str, policy: str) -> None:
    check(
        "(double[1,1,3,4] x) => (double[1,1,P,Q] y) <int64[2] s = {7,5}> "
        f'{{ y = Resize <mode = "{mode}", axes = [2,3], keep_aspect_ratio_policy = "{policy}"> '
        '(x, "", "", s) }'
    )  # fmt: skip


def test_resize_of_a_region() -> None:
    check(
        "(double[1,1,4,5] x) => (double[1,1,3,4] y) "
        "<float[4] r = {0.2,-0.3,0.8,1.1}, int64[2] s = {3,4}> "
        '{ y = Resize <mode = "linear", axes = [2,3], extrapolation_value = 10.0, '
        'coordinate_transformation_mode = "tf_crop_and_resize"> (x, r, "", s) }'
    )


@pytest.mark.parametrize(
    ("settings", "operands"),
    [
        ('coordinate_transformation_mode = "tf_crop_and_resize"', 'x, r, "", s'),
        ('coordinate_transformation_mode = "asymmetric"', 'x, "", k'),
        ('keep_aspect_ratio_policy = "not_larger"', 'x, "", "", p'),
    ],
)
def test_elements_may_move_along_an_axis_that_keeps_its_size(settings: str, operands: str) -> None:
    check(
        "(double[1,1,4,5] x) => (double[1,1,P,Q] y) <float[4] r = {0.2,0,0.8,1}, "
        "int64[2] s = {4,5}, float[2] k = {1.2,1}, int64[2] p = {4,4}> "
        f'{{ y = Resize <mode = "linear", axes = [2,3], {settings}> ({operands}) }}'
    )
