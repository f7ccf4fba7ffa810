"""Axes and shapes: what is surely the same, and what is not."""

from typing import Any

import numpy as np
import onnx
import pytest

from tiered.graph import Model, Tensor, broadcasts_into, non_negative_axes, same_axes
from tiered.graph.types import Shape
from tiered.testing import parse


@pytest.mark.parametrize(
    ("axes", "rank", "expected"),
    [
        ([0, 2], 3, (0, 2)),
        ([-1, 0], 3, (2, 0)),
        ([0, 2], None, (0, 2)),
        ([0, -1], None, None),
        ([], None, ()),
    ],
)
def test_axes_count_from_the_front(
    axes: list[int], rank: int | None, expected: tuple[int, ...] | None
) -> None:
    assert non_negative_axes(np.array(axes, np.int64), rank) == expected


@pytest.mark.parametrize(
    ("one", "other", "rank", "expected"),
    [
        ([0, -1], [2, 0], 3, True),
        ([0], [1], 3, False),
        ([0], [0, 0], 3, False),
        ([-1], [-1], None, True),
        ([-1], [1], None, False),
        ([3], [0], 3, False),
        ([], [], 0, True),
    ],
)
def test_axes_are_the_same_in_any_order(
    one: list[int], other: list[int], rank: int | None, expected: bool
) -> None:
    assert same_axes(one, other, rank) is expected


@pytest.mark.parametrize(
    ("shape", "target", "expected"),
    [
        ((), None, True),
        ((), (2,), True),
        ((1, 3), (2, 3), True),
        ((3,), (2, 3), True),
        (("N", 1), ("N", 3), True),
        ((1,), None, False),
        (None, (2,), False),
        ((1, 3), (3,), False),
        ((2, 3), (1, 3), False),
        ((3,), ("N",), False),
        ((None,), (None,), False),
    ],
)
def test_a_shape_broadcasts_into_one_that_it_does_not_change(
    shape: Shape | None, target: Shape | None, expected: bool
) -> None:
    assert broadcasts_into(shape, target) is expected


def test_a_dim_is_known_or_none() -> None:
    model = Model.from_proto(parse("(float[2,N] x) => (float[2,N] y) { y = Relu(x) }"))
    (x,) = model.main.inputs
    assert [x.dim(axis) for axis in (0, 1, -1, 2, -3)] == [2, "N", "N", None, None]


def test_a_node_may_be_the_only_reader() -> None:
    model = Model.from_proto(
        parse(
            "(float[2] x, bool c) => (float[2] y, float[2] z, float[2] u)"
            " { a = Relu(x)  y = Add(a, a)  b = Exp(x)  z = Neg(b)"
            " u = If(c) <then_branch = t () => (float[2] p) { p = Neg(b) },"
            " else_branch = e () => (float[2] q) { q = Neg(z) }> }"
        )
    )
    (add,), (neg,) = model.main.nodes_of("Add"), model.main.nodes_of("Neg")
    a, b = add.input(0), neg.input(0)
    assert a is not None
    assert b is not None
    assert a.is_only_read_by(add)
    assert not a.is_only_read_by(neg)
    assert not b.is_only_read_by(neg)
    assert not add.output.is_only_read_by(neg)


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.array([1, 0], np.float32), onnx.TensorProto.BOOL),
        (np.array([3.0, -2.0], np.float32), onnx.TensorProto.INT32),
        (np.array([7], np.int64), onnx.TensorProto.FLOAT16),
        (np.array([np.inf, np.nan, -0.0], np.float32), onnx.TensorProto.DOUBLE),
    ],
)
def test_numbers_that_fit_are_converted(array: np.ndarray[Any, Any], dtype: int) -> None:
    converted = Tensor.of(array).converted(dtype)
    assert converted is not None
    assert converted.dtype == dtype
    assert np.array_equal(converted.numpy().astype(array.dtype), array, equal_nan=True)


@pytest.mark.parametrize(
    ("array", "dtype"),
    [
        (np.array([0.5], np.float32), onnx.TensorProto.INT32),
        (np.array([200], np.uint8), onnx.TensorProto.INT8),
        (np.array([2**53 + 1], np.int64), onnx.TensorProto.DOUBLE),
        (np.array([np.nan], np.float32), onnx.TensorProto.INT64),
        (np.array([2.0**63], np.float32), onnx.TensorProto.INT64),
        (np.array([1e5], np.float32), onnx.TensorProto.FLOAT16),
        (np.array([2], np.int64), onnx.TensorProto.BOOL),
        (np.array([1], np.int64), onnx.TensorProto.STRING),
    ],
)
def test_numbers_that_do_not_fit_are_not_converted(array: np.ndarray[Any, Any], dtype: int) -> None:
    assert Tensor.of(array).converted(dtype) is None


@pytest.mark.parametrize("opset", [11, 13])
def test_an_array_becomes_an_attribute_without_a_trace(opset: int) -> None:
    text = "(float[1,2] x) => (float[1,2] y) { y = Relu(x) }"
    graph = Model.from_proto(parse(text, opset=opset)).main
    squeezed = graph.op.Squeeze(graph.inputs[0], np.array([0], np.int64))
    assert len(graph.initializers) == (1 if opset == 13 else 0)
    (squeeze,) = graph.nodes_of("Squeeze")
    assert squeeze.output is squeezed
    axes = squeeze.operand("axes")
    assert axes is not None
    assert axes.const is not None
    assert axes.const.tolist() == [0]


def test_what_nobody_reads_is_discarded_with_what_only_it_needed() -> None:
    model = Model.from_proto(
        parse(
            "(float[2] x) => (float[2] y) <float[2] w = {1,2}, float[2] v = {3,4}>"
            " { a = Neg(w)  b = Add(a, v)  y = Add(x, v) }"
        )
    )
    graph = model.main
    for name in ("b", "v"):
        value = graph.value(name)
        assert value is not None
        graph.discard(value)
    assert [node.op_type for node in graph.nodes] == ["Add"]
    assert [value.name for value in graph.initializers] == ["v"]
