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


def reshaped(nodes: str, inputs: str = "float[N,4] x, float[M,4] z") -> object:
    text = f"""({inputs}) => (float[?,?] y) <int64[1] zero = {{0}}, int64[1] one = {{1}},
        int64[1] four = {{4}}, int64[1] rest = {{-1}}, int64[1] two = {{2}}> {{
        shape = Shape(x)  n = Slice(shape, zero, one)  other = Shape(z)  m = Slice(other, zero, one)
        {nodes}  y = Neg(r) }}"""
    model = Model.from_proto(parse(text))
    value = model.main.value("r")
    assert value is not None
    return value.shape


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ("zero, rest", ("N", 4)),  # 0 copies the dim
        ("n, four", ("N", 4)),
        ("four, n", (4, "N")),  # if N is 0, no elements become 16
        ("n, two, rest", ("N", 2, 2)),
        ("rest, two", (None, 2)),
        ("two, zero, rest", (2, 4, None)),
        ("one, n, four", (1, "N", 4)),
        ("m, four", (None, 4)),
    ],
)
def test_sizes_of_a_reshape_stay_known_unless_a_zero_would_copy(
    parts: str, expected: tuple[object, ...]
) -> None:
    found = reshaped(f"target = Concat<axis = 0>({parts})  r = Reshape(x, target)")
    assert isinstance(found, tuple)
    known = ("N", "M")
    assert expected == tuple(dim if isinstance(dim, int) or dim in known else None for dim in found)


def test_with_allowzero_a_zero_is_a_size() -> None:
    nodes = "target = Concat<axis = 0>(m, four)  r = Reshape<allowzero = 1>(x, target)"
    assert reshaped(nodes) == ("M", 4)


def test_a_dynamic_size_is_not_known_where_the_operand_has_no_known_rank() -> None:
    nodes = "h = Reshape(x, t)  target = Concat<axis = 0>(n, four)  r = Reshape(h, target)"
    found = reshaped(nodes, "float[N,4] x, float[M,4] z, int64[K] t")
    assert isinstance(found, tuple)
    assert found[0] != "N"
    assert found[1] == 4
