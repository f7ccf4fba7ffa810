"""Output shapes that follow from elements of operands."""

import re
from typing import Final

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


SIZED: Final = """(float[N,M,6] x, int64[2] i, int64 u, int64[1] v, int64[3] three, int64[L] w,
    float[1] f, int64[R] q) => (float[?] o) <int64[1] zero={0}, int64[1] one={1}, int64[1] two={2},
    int64[1] minus={-1}, int64[1] six={-6}, int64[1] far={-9}, int64[1] huge={2147483648},
    int64[1] big={2147483647}, int64 nought={0}, int64 unit={1}, int64 trio={3},
    int64[2] zeros={0,0}, int64[2] twos={2,2}> { s = Shape(x) n = Gather(s, zero)
    m = Gather(s, one) l = Gather(s, nought) n1 = Add(n, one) nm = Add(n, m) h = Reshape(x, q)
    r = Concat<axis=0>(v, one, two) y = CALL o = Neg(y) }"""


def shape_of(text: str, name: str) -> str | None:
    value = Model.from_proto(parse(text)).main.value(name)
    assert value is not None
    if value.shape is None:
        return None
    return re.sub(r"unk__[.\d]+", "?", ",".join(map(str, value.shape)))


RANGES: Final = {
    "Range(nought, l, unit)": "N",
    "Range(unit, l, unit)": "?",
    "Range(l, l, unit)": "0",
    "Range(nought, trio, unit)": "3",
    "Range(trio, nought, unit)": "0",
    "Range(nought, l, trio)": "?",
    "Range(nought, u, unit)": "?",
    "Range(u, l, unit)": "?",
    "Range(nought, l, u)": "?",
}
SLICES: Final = {
    "Slice(x, zero, two, two)": "N,M,2",
    "Slice(x, one, two, two)": "N,M,1",
    "Slice(x, far, two, two)": "N,M,2",
    "Slice(x, zero, huge, two, two)": "N,M,3",
    "Slice(x, minus, far, two, minus)": "N,M,6",
    "Slice(x, six, far, two, minus)": "N,M,1",
    "Slice(x, far, far, two, minus)": "N,M,1",
    # A dynamic dim is kept as a whole, or not known.
    "Slice(x, zero, huge)": "N,M,6",
    "Slice(x, zero, n)": "N,M,6",
    "Slice(x, zero, n1)": "N,M,6",
    "Slice(x, zero, nm)": "N,M,6",
    "Slice(x, zero, m)": "?,M,6",
    "Slice(x, zero, two)": "?,M,6",
    "Slice(x, zero, big)": "?,M,6",
    "Slice(x, zero, minus)": "?,M,6",
    "Slice(x, one, huge)": "?,M,6",
    "Slice(x, zero, huge, zero, two)": "?,M,6",
    "Slice(x, zeros, twos)": "?,?,6",
    "Slice(x, zeros, twos, , twos)": "?,?,6",
    # A static one is limited by a dynamic end.
    "Slice(x, zero, n, two)": "N,M,=min(6,N)",
    "Slice(x, n, huge, two)": "N,M,?",
    # Unknown operands.
    "Slice(x, v, n)": "?,M,6",
    "Slice(x, zero, v)": "?,M,6",
    "Slice(x, v, two, two)": "N,M,?",
    "Slice(x, zero, v, two)": "N,M,?",
    "Slice(x, zero, two, two, v)": "N,M,?",
    "Slice(x, zero, two, v)": "?,?,?",
    "Slice(h, zero, two)": None,
}
FILLED: Final = {
    "Tile(x, three)": "?,?,?",
    "Tile(x, r)": "?,M,12",
    "Expand(f, s)": "N,M,6",
    "Expand(x, i)": "N,?,6",
    "ConstantOfShape(s)": "N,M,6",
    "ConstantOfShape(i)": "?,?",
    "ConstantOfShape(w)": None,
}


def test_shapes_that_follow_from_elements() -> None:
    for call, expected in (RANGES | SLICES | FILLED).items():
        assert shape_of(SIZED.replace("CALL", call), "y") == expected, call


def test_the_value_of_a_filled_tensor_decides_its_dtype() -> None:
    for attribute, dtype in (("", 1), ("<value = int64[1] {3}>", 7)):
        text = SIZED.replace("CALL", f"ConstantOfShape{attribute}(s)")
        value = Model.from_proto(parse(text)).main.value("y")
        assert value is not None
        assert value.dtype == dtype


@pytest.mark.parametrize(
    ("inputs", "parts", "expected"),
    [
        ("float[N] x, float[M] z", "one, n", "1,N"),  # there is no dim to copy
        ("float[4,5,N] x, float[N] z", "zero, m, five", "4,N,5"),
        ("float[4,5,N] x, float[N] z", "m, m, five", "N,N,5"),
        ("float[4,N] x, float[N] z", "m, two, m", "N,2,N"),
        ("float[4,N] x, float[N] z", "m, rest", "?,?"),
        ("float[4,N] x, float[N] z", "m, some", "?,?"),
        ("float[1,N] x, float[N] z", "m, rest", "?,?"),
        ("float[5,0,N] x, float[N] z", "m, zero, five", "?,0,5"),
        ("float[N,4] x, float[N] z", "zero, m", "N,?"),
        ("float[4,M] x, float[M,K] z", "m, k", "M,?"),
        ("float[N,4] x, float[M] z", "n2, two", "=2*N,2"),
        ("float[N,4] x, float[M] z", "less, four", "?,4"),
        ("float[N,4] x, float[M] z", "m1, four", "=1+M,4"),
        ("float[N,4] x, float[M] z", "some, four", "?,4"),
        ("float[N,4] x, float[M] z", "some, rest", "?,?"),
        ("float[N,4] x, float[M] z", "two, rest", "2,=2*N"),
        ("float[N,4] x, float[M] z", "four, rest", "4,N"),
        ("float[N,5] x, float[M] z", "two, rest", "2,?"),
    ],
)
def test_a_dim_that_may_be_0_is_known_if_nothing_else_would_be_copied(
    inputs: str, parts: str, expected: str
) -> None:
    text = f"""({inputs}, int64[1] some) => (float[?] o) <int64[1] zero = {{0}}, int64[1] one = {{1}},
        int64[1] two = {{2}}, int64[1] four = {{4}}, int64[1] five = {{5}}, int64[1] rest = {{-1}}> {{
        s = Shape(x) n = Slice(s, zero, one) t = Shape(z) m = Slice(t, zero, one)
        k = Slice(t, one, two) n2 = Mul(n, two) m1 = Add(m, one) less = Sub(n, one)
        target = Concat<axis = 0>({parts}) y = Reshape(x, target) o = Neg(y) }}"""
    assert shape_of(text, "y") == expected


def test_a_reshape_of_an_unknown_rank_has_the_sizes_that_are_stated() -> None:
    nodes = "h = Reshape(x, t)  target = Concat<axis = 0>(rest, four)  r = Reshape(h, target)"
    found = reshaped(nodes, "float[N,4] x, float[M,4] z, int64[K] t")
    assert isinstance(found, tuple)
    assert found[1] == 4


def test_a_constant_0_is_a_size_with_allowzero() -> None:
    nodes = "target = Concat<axis = 0>(zero, four)  r = Reshape<allowzero = 1>(x, target)"
    assert reshaped(nodes) == (0, 4)
