"""What the search for constraints asks of values: sizes that follow or are declared, numbers."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.small import loaded_apart, named, parsed
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
    ("text", "shape"),
    [
        # What follows counts where the declaration has another rank, or none.
        ("(float[2,N] x) => (float[2,3,4] y) { y = Neg(x) }", (2, None)),
        ("(float[2,N] x) => (float[] y) { y = Neg(x) }", (2, None)),
        ("(float[M,N] x) => (float[M,0] y) { y = Neg(x) }", (None, 0)),
        ("(float[] x) => (float[] y) { y = Neg(x) }", None),
        ("(seq(float[3]) x) => (seq(float[3]) y) { y = Identity(x) }", None),
    ],
)
def test_a_declaration_does_not_replace_what_follows(
    text: str, shape: tuple[int | None, ...] | None
) -> None:
    value = named(parsed(text), "y")
    assert shape_of(value) == shape
    assert axis_size(value, 0) == (shape and shape[0])


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


def test_numbers_that_are_sparse_or_on_disk_are_not_read(tmp_path: Path) -> None:
    text = "(float[2] x) => (float[2] y) <float[2] w = {1,2}> { y = Add(x, w) }"
    assert numbers_of(named(loaded_apart(parse(text), tmp_path), "w")) is None
    proto = parse(text)
    values = proto.graph.initializer.pop()
    indices = onnx.numpy_helper.from_array(np.array([0, 1], np.int64), "indices")
    proto.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [2]))
    assert numbers_of(named(Model.from_proto(proto), "w")) is None
