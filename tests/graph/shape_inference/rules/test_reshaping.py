"""Output shapes that follow from elements of operands."""

import pytest

from tiered import Model
from tiered.testing import parse

RESIZED = """(float[batch,3,8,8] x, float[5,7] z) => (float[?,?,?,?] y) <int64[1] two = {{2}}> {{
    head = Shape<start=0, end=2>(x)  tail = Shape(z)  w = Shape<start=1>(z)
    less = Sub(two, w)  both = Concat<axis=0>(head, tail)
    y = Resize<{}>(x, , , {}) }}"""


def shape_by(attributes: str, sizes: str) -> tuple[int | str | None, ...] | None:
    model = Model.from_proto(parse(RESIZED.format(attributes, sizes)))
    return model.main.outputs[0].shape


@pytest.mark.parametrize(
    ("attributes", "sizes"),
    [
        ('mode = "linear"', "both"),
        ("axes = [2, 3]", "tail"),
        ("axes = [-2, -1]", "tail"),
        ('axes = [2, 3], mode = "cubic"', "tail"),
    ],
)
def test_sizes_of_resize_follow_from_other_shapes(attributes: str, sizes: str) -> None:
    assert shape_by(attributes, sizes) == ("batch", 3, 5, 7)


@pytest.mark.parametrize(
    ("attributes", "sizes"),
    [
        ('axes = [2, 3], keep_aspect_ratio_policy = "not_larger"', "tail"),
        ("axes = [3]", "less"),
    ],
)
def test_sizes_that_are_no_dims_stay_unknown(attributes: str, sizes: str) -> None:
    shape = shape_by(attributes, sizes)
    assert shape is None or not isinstance(shape[3], int)


def test_sizes_of_an_unpooled_image_follow_from_its_operand() -> None:
    text = """(float[batch,1,2,2] x, int64[batch,1,2,2] i) => (float[?,?,?,?] y) <int64[3] tail = {1,5,4}> {
        head = Shape<start=0, end=1>(x)  s = Concat<axis=0>(head, tail)
        y = MaxUnpool<kernel_shape=[2,2]>(x, i, s) }"""
    assert Model.from_proto(parse(text)).main.outputs[0].shape == ("batch", 1, 5, 4)
