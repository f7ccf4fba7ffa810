"""What the search for constraints asks of values: sizes that follow or are declared, numbers."""

import numpy as np
import pytest

from tests.small import named, parsed
from tiered.graph import Model
from tiered.runtime.inputs.graph_facts import axis_size, numbers_of, shape_of
from tiered.testing import parse

TEXT = """(float[2,N] x, int64[K] t) => (float[2,5] y) <float[2] w = {1,2}, float[1] o = {3}> {
    a = Neg(x)  c = Constant<value_int = 4>()  h = Reshape(x, t)  s = Constant<value_string = "a">()
    y = Neg(h) }"""


def test_sizes_follow_or_are_declared() -> None:
    model = parsed(TEXT)
    assert [shape_of(named(model, name)) for name in "xaw"] == [(2, None), (2, None), (2,)]
    assert shape_of(named(model, "y")) == (2, 5)
    assert shape_of(None) is None
    assert shape_of(named(parsed("(float[] x) => (float[] y) { y = Neg(x) }"), "x")) is None


def test_a_declared_size_below_zero_is_none() -> None:
    proto = parse("(float[0,1] x) => (float y) { y = Neg(x) }")
    proto.graph.input[0].type.tensor_type.shape.dim[1].dim_value = -1
    assert shape_of(named(Model.from_proto(proto), "x")) == (0, None)


def test_a_declared_size_fills_what_does_not_follow() -> None:
    proto = parse("(float[2,N] x) => (float[?,7] y) { a = Neg(x)  y = Abs(a) }")
    assert shape_of(named(Model.from_proto(proto), "y")) == (2, 7)


@pytest.mark.parametrize(
    ("axis", "size"), [(0, 2), (1, None), (-1, None), (-2, 2), (2, None), (-3, None)]
)
def test_an_axis_that_is_not_there_has_no_size(axis: int, size: int | None) -> None:
    assert axis_size(named(parsed(TEXT), "x"), axis) == size


def test_numbers_of_small_constants_and_defaults_are_read() -> None:
    model = parsed(TEXT.replace("int64[K] t)", "int64[K] t, float[1] o)"))
    found = {name: numbers_of(named(model, name)) for name in ("w", "c", "o", "x", "s", "a")}
    assert [name for name, array in found.items() if array is not None] == ["w", "c", "o"]
    assert numbers_of(None) is None
    large = model.main.constant(np.zeros(1025, np.float32))
    assert numbers_of(large) is None
    assert numbers_of(model.main.constant(np.zeros(1024, np.float32))) is not None
