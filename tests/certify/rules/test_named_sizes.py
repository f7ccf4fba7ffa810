"""Shapes with named sizes: what keeps an axis of one, what computes with it, and what does not."""

from typing import Any

import numpy as np
import onnx
import pytest

from tiered.certify.rules.named_sizes import (
    RULES,
    Dependent,
    Marks,
    NodeStep,
    marks_of,
    of_integers,
    sizes_of,
)
from tiered.graph.shape_inference.symbolic_dims import Size, multiply, size_of_dim

N, M = size_of_dim("N"), size_of_dim("M")


def data(*shape: Size) -> Marks:
    return Marks(shape)


def ints(*numbers: int) -> Marks:
    return marks_of(np.array(numbers, np.int64))


def sizes(*numbers: Size) -> Marks:
    return of_integers(sizes_of(numbers, [len(numbers)]))


def step(
    op: str, inputs: tuple[Marks | None, ...], opset: int, outputs: int, **held: Any
) -> NodeStep:
    names = ["" if x is None else f"x{at}" for at, x in enumerate(inputs)]
    made = [f"y{at}" for at in range(outputs)]
    return NodeStep(onnx.helper.make_node(op, names, made, **held), inputs, opset)


def made(
    op: str, *inputs: Marks | None, opset: int = 21, outputs: int = 1, **held: Any
) -> list[Any]:
    """Return the shapes of the results; of integers that are known, the integers."""
    found = RULES[op](step(op, inputs, opset, outputs, **held))
    return [(*each.shape,) if each.integers is None else each.integers.tolist() for each in found]


@pytest.mark.parametrize(
    ("op", "inputs", "held", "expected"),
    [
        ("Relu", (data(N, 3),), {}, (N, 3)),
        ("Max", (data(N, 1), data(3), data(1, 1)), {}, (N, 3)),
        ("Add", (data(N, 1), data(1, N)), {}, (N, N)),
        ("Cast", (data(N),), {"to": 1}, (N,)),
        ("Transpose", (data(N, 2, M),), {"perm": [2, 0, 1]}, (M, N, 2)),
        ("Transpose", (data(N, 2),), {}, (2, N)),
        ("Unsqueeze", (data(N, 2), ints(0, -1)), {}, (1, N, 2, 1)),
        ("Squeeze", (data(1, N, 1), ints(-1)), {}, (1, N)),
        ("Squeeze", (data(1, 2, 1),), {}, (2,)),
        ("Reshape", (data(N, 2, 3), ints(0, 6)), {}, (N, 6)),
        ("Reshape", (data(N, 6), sizes(N, 2, -1)), {}, (N, 2, 3)),
        ("Reshape", (data(N, 6), ints(-1, 6)), {}, (N, 6)),
        ("Reshape", (data(2, N, 6), ints(1, 2, 0, 6)), {"allowzero": 0}, None),
        ("Flatten", (data(N, 2, 3),), {}, (N, 6)),
        ("Flatten", (data(2, 3, N),), {"axis": -1}, (6, N)),
        ("Expand", (data(1, 3), sizes(N, 3)), {}, (N, 3)),
        ("Concat", (data(N, 2), data(N, 3)), {"axis": -1}, (N, 5)),
        ("Slice", (data(N, 5), ints(1), ints(4), ints(1)), {}, (N, 3)),
        ("Slice", (data(N, 5), ints(-1), ints(-9), ints(1), ints(-2)), {}, (N, 3)),
        ("Gather", (data(N, 5), data(2, 4)), {"axis": 1}, (N, 2, 4)),
        ("ReduceSum", (data(N, 3), ints(1)), {}, (N, 1)),
        ("ReduceSum", (data(N, 3), ints(-1)), {"keepdims": 0}, (N,)),
        ("ReduceSum", (data(2, 3),), {}, (1, 1)),
        ("ReduceSum", (data(N, 3),), {"noop_with_empty_axes": 1}, (N, 3)),
        ("Softmax", (data(N, 3),), {}, (N, 3)),
        ("Softmax", (data(N, 3, 2),), {"axis": 1}, (N, 3, 2)),
        ("LayerNormalization", (data(N, 3), data(3), data(3)), {}, (N, 3)),
        ("MatMul", (data(N, 2, 3), data(3, 4)), {}, (N, 2, 4)),
        ("MatMul", (data(N, 3), data(3, M)), {}, (N, M)),
        ("Gemm", (data(N, 3), data(3, 4), data(4)), {}, (N, 4)),
        ("Gemm", (data(3, N), data(4, 3)), {"transA": 1, "transB": 1}, (N, 4)),
        ("Add", (data(1), data(1)), {}, (1,)),
        ("Concat", (data(2, N, 3), data(4, N, 3)), {"axis": 0}, (6, N, 3)),
        ("Concat", (data(N, 2, 3), data(N, 4, 3)), {"axis": 1}, (N, 6, 3)),
        ("Gather", (data(5, N, 3), data(2, 4)), {"axis": 0}, (2, 4, N, 3)),
        ("Gather", (data(5, N, 3), data(2, 4)), {}, (2, 4, N, 3)),
        ("Slice", (data(N, 5), ints(-1), ints(-9), ints(1), ints(-1)), {}, (N, 5)),
        ("LayerNormalization", (data(N, 3, 2), data(2)), {"axis": 2}, (N, 3, 2)),
        ("LayerNormalization", (data(N, M, 2), data(2)), {}, (N, M, 2)),
        ("LogSoftmax", (data(N, M, 2),), {}, (N, M, 2)),
        ("Flatten", (data(2, N),), {"axis": -1}, (2, N)),
        ("Clip", (data(N), None, data()), {}, (N,)),
        ("Clip", (data(N),), {}, (N,)),
        ("Unsqueeze", (data(N),), {}, (N,)),
        ("Reshape", (data(1),), {}, ()),
        ("Reshape", (data(N, 6), ints(0, 6)), {"allowzero": 0}, (N, 6)),
        ("Flatten", (data(N, 1),), {"axis": 0}, (1, N)),
        ("Expand", (data(N, 3),), {}, (N, 3)),
        ("Slice", (data(N, 5), ints(0), ints(-9), ints(1)), {}, (N, 0)),
        ("Slice", (data(N, 5), ints(-1), ints(-3), ints(1), ints(-1)), {}, (N, 2)),
        ("Slice", (data(N, 5), ints(-1), ints(-5), ints(1), ints(-2)), {}, (N, 2)),
        ("Slice", (data(N, 5), ints(-9), ints(-9), ints(1), ints(-1)), {}, (N, 1)),
        ("Slice", (data(N, 5), ints(9), ints(2), ints(1), ints(-1)), {}, (N, 2)),
        ("Conv", (data(N, 3, 4, 4), data(2, 3, 2, 2), None), {}, (N, 2, 3, 3)),
        ("Conv", (data(N, 3, 4), data(2, 3, 2), data(2)), {"auto_pad": "SAME_UPPER"}, (N, 2, 4)),
        ("MaxPool", (data(N, 3, 4, 5),), {"kernel_shape": [2, 2]}, (N, 3, 3, 4)),
        ("GlobalMaxPool", (data(N, M, 3, 4),), {}, (N, M, 1, 1)),
        ("BatchNormalization", (data(N, 3, M), *[data(3)] * 4), {}, (N, 3, M)),
        ("Pad", (data(N, 3), ints(0, 1, 0, 2)), {}, (N, 6)),
        ("Softmax", (data(2, N, 3),), {"axis": 0}, (2, N, 3)),
        ("MatMul", (data(2, 3), data(N, 3, 4)), {}, (N, 2, 4)),
        ("Reshape", (data(0, 3), ints(-1, 3)), {}, (0, 3)),
    ],
)
def test_an_axis_of_a_named_size_stays(
    op: str, inputs: tuple[Marks, ...], held: dict[str, Any], expected: tuple[Size, ...] | None
) -> None:
    if expected is None:
        with pytest.raises(Dependent):
            made(op, *inputs, **held)
    else:
        assert made(op, *inputs, **held) == [expected]


@pytest.mark.parametrize(
    ("op", "inputs", "held", "because"),
    [
        ("Add", (data(N), data(M)), {}, "have one size only at some sizes"),
        ("Add", (data(N), data(3)), {}, "have one size only at some sizes"),
        ("Squeeze", (data(N, 1),), {}, "Squeeze over an axis of a named size"),
        ("Squeeze", (data(N, 1), ints(0)), {}, "Squeeze over an axis of a named size"),
        ("Reshape", (data(N, 2), ints(-1)), {}, "Reshape of an axis of a named size"),
        ("Reshape", (data(2, N), sizes(N, 2)), {}, "Reshape of an axis of a named size"),
        ("Reshape", (data(N, 2), sizes(M, 2)), {}, "Reshape of an axis of a named size"),
        ("Reshape", (data(N, 2), sizes(M, -1)), {}, "Reshape to another size"),
        ("Reshape", (data(N, 2), ints(3, -1)), {}, "Reshape of an axis of a named size"),
        ("Flatten", (data(2, N, 3),), {"axis": 2}, "Flatten of an axis of a named size"),
        ("Flatten", (data(N, M),), {"axis": 2}, "Flatten of an axis of a named size"),
        ("Concat", (data(N, 2), data(N, 2)), {"axis": 0}, "Concat over an axis of a named size"),
        ("Concat", (data(N, 2), data(M, 2)), {"axis": 1}, "fit only at some sizes"),
        ("Concat", (data(N, 2), data(N, 2)), {"axis": 2}, "Concat without an axis"),
        ("Concat", (data(N, 2, 3), data(N, 2, 4)), {"axis": 1}, "fit only at some sizes"),
        ("LayerNormalization", (data(3, 2, N), data(1)), {"axis": 1}, "Norm.* over an axis"),
        ("Reshape", (data(0, 3), ints(-1, 0)), {"allowzero": 1}, "Reshape of an axis"),
        ("Split", (data(N, 2),), {"axis": 0}, "Split over an axis of a named size"),
        ("Slice", (data(N, 5), ints(1), ints(4), ints(0)), {}, "Slice over an axis"),
        (
            "Slice",
            (data(N, 5), sizes(N), ints(4), ints(1)),
            {},
            "starts of Slice depends on a size",
        ),
        ("Slice", (data(5), data(1), ints(4)), {}, "starts of Slice is not known"),
        ("Gather", (data(N, 5), ints(1)), {"axis": 0}, "Gather over an axis"),
        ("ReduceSum", (data(N, 3), ints(0)), {}, "ReduceSum over an axis"),
        ("ReduceSum", (data(N, 3),), {}, "ReduceSum over an axis"),
        ("Softmax", (data(3, N),), {}, "Softmax over an axis"),
        ("LayerNormalization", (data(3, N), data(1)), {}, "LayerNormalization over an axis"),
        ("LayerNormalization", (data(3, 2), data(N)), {}, "LayerNormalization over an axis"),
        ("MatMul", (data(2, N), data(N, 3)), {}, "MatMul over an axis"),
        ("MatMul", (data(3), data(3, N)), {}, "MatMul of vectors"),
        ("MatMul", (data(2, 3), data(4, N)), {}, "MatMul of vectors"),
        ("Gemm", (data(2, N), data(N, 3)), {}, "Gemm over an axis of a named size"),
        ("Gemm", (data(N, 3), data(4, 3)), {}, "Gemm over an axis of a named size"),
        ("Gemm", (data(N, 3), data(3, 4), data(M, 4)), {}, "have one size only at some sizes"),
        ("Relu", (sizes(N),), {}, "Relu computes with a size"),
        ("Cast", (sizes(N),), {"to": 1}, "Cast of a size"),
        ("Add", (sizes(N), data(1)), {}, "Add computes with a size"),
        ("Concat", (sizes(N), data(1)), {"axis": 0}, "Concat of sizes and data"),
        ("Gather", (sizes(N, M), data(1)), {}, "Gather of sizes"),
        ("Gather", (Marks((3,), None, is_sized=True), ints(1)), {}, "Gather of sizes"),
        ("Reshape", (data(N, M), ints(-1)), {}, "Reshape of an axis of a named size"),
        ("MatMul", (data(2, 3), None), {}, "MatMul lacks an operand"),
        ("MatMul", (data(2, 3),), {}, "MatMul lacks an operand"),
        ("MatMul", (data(N, 3), data(3)), {}, "MatMul of vectors"),
        ("Add", (data(1), sizes(N)), {}, "Add computes with a size"),
        ("Concat", (data(2), data(2)), {}, "Concat without an axis"),
        ("Reshape", (data(N, 6), ints(0, 6, 0)), {}, "Reshape of an axis of a named size"),
        ("Reshape", (data(N, 6), ints(-1, 0)), {"allowzero": 1}, "Reshape of an axis"),
        ("Reshape", (data(5), ints(-1, 2)), {}, "Reshape of an axis of a named size"),
        ("Slice", (data(N, 5),), {}, "Slice without bounds"),
        ("Slice", (data(N, 5), ints(1)), {}, "Slice without bounds"),
        ("Slice", (data(N, 5), None, ints(1)), {}, "Slice without bounds"),
        ("Conv", (data(2, 3, N, 4), data(2, 3, 2, 2)), {}, "Conv over an axis"),
        ("Conv", (data(2, N, 4, 4), data(2, 3, 2, 2)), {}, "Conv over an axis"),
        ("Conv", (data(2, 3, 4), data(N, 3, 2)), {}, "Conv over an axis"),
        ("GlobalMaxPool", (data(N, 3, M),), {}, "GlobalMaxPool over an axis"),
        ("BatchNormalization", (data(N, M), *[data(3)] * 4), {}, "over an axis"),
        ("BatchNormalization", (data(N, 3), *[data(3)] * 3), {}, "lacks an operand"),
        ("BatchNormalization", (data(N, 3), data(M), *[data(3)] * 3), {}, "over an axis"),
        ("BatchNormalization", (data(N, 3), *[data(3)] * 3, data(M)), {}, "over an axis"),
        (
            "BatchNormalization",
            (data(N, 3), *[data(3)] * 4),
            {"training_mode": 1},
            "BatchNormalization in training",
        ),
        ("Pad", (data(N, 3), ints(1, 0, 0, 0)), {}, "Pad over an axis"),
        ("Pad", (data(N, 3), ints(0, 1), None, ints(1)), {}, "Pad of some axes"),
        ("Pad", (data(N, 3), ints(0, 1, 0, 1), None, ints(1)), {}, "Pad of some axes"),
        ("Pad", (data(N, 3), ints(0, 1)), {}, "Pad of some axes"),
        ("Pad", (data(N, 3),), {}, "Pad of some axes"),
    ],
)
def test_what_does_something_else_with_a_named_size(
    op: str, inputs: tuple[Marks | None, ...], held: dict[str, Any], because: str
) -> None:
    with pytest.raises(Dependent, match=because):
        made(op, *inputs, **held)


def test_a_softmax_before_opset_13_is_over_all_axes_from_its_axis_on() -> None:
    with pytest.raises(Dependent):
        made("Softmax", data(2, 3, N), opset=12, axis=1)
    with pytest.raises(Dependent):
        made("Softmax", data(3, N, 2), opset=12)
    assert made("Softmax", data(N, 3, 2), opset=12) == [(N, 3, 2)]
    assert made("Softmax", data(2, N, 3), opset=13) == [(2, N, 3)]


def test_sizes_are_computed_with() -> None:
    (shape,) = RULES["Shape"](step("Shape", (data(N, 3, M),), 21, 1, start=0, end=-1))
    assert shape.is_sized
    assert made("Shape", data(N, 3, M), start=1) == [[3, M]]
    assert made("Shape", data(N, 3, M)) == [[N, 3, M]]
    assert made("Gather", shape, ints(1, 0)) == [[3, N]]
    assert made("Mul", shape, ints(2)) == [[multiply(2, N), 6]]
    assert made("Sub", shape, sizes(N, 1)) == [[0, 2]]
    assert made("Concat", shape, ints(-1), axis=0) == [[N, 3, -1]]
    assert made("Slice", shape, ints(0), ints(1)) == [[N]]
    assert made("Unsqueeze", marks_of(np.array(5)), ints(0)) == [[5]]
    assert made("Cast", shape, to=onnx.TensorProto.INT32) == [[N, 3]]


def test_a_split_is_of_equal_parts_or_of_the_parts_that_it_has() -> None:
    assert made("Split", data(N, 5), axis=1, outputs=2) == [(N, 3), (N, 2)]
    assert made("Split", data(N, 5), ints(1, 4), axis=-1, outputs=2) == [(N, 1), (N, 4)]
    assert made("Split", data(4), outputs=4) == [(1,)] * 4
    assert made("Split", data(4, 3), outputs=3) == [(2, 3), (2, 3), (0, 3)]


def test_only_small_integers_of_a_constant_are_followed() -> None:
    for numbers, is_followed in (
        (np.arange(64), True),
        (np.arange(65), False),
        (np.ones(2, np.float32), False),
    ):
        tensor = onnx.numpy_helper.from_array(numbers)
        (found,) = RULES["Constant"](step("Constant", (), 21, 1, value=tensor))
        assert (found.integers is not None) is is_followed
        assert found.shape == numbers.shape
    with pytest.raises(Dependent, match="without a tensor"):
        made("Constant", value_int=3)


def test_axes_may_be_an_attribute() -> None:
    assert made("Squeeze", data(1, N, 1), opset=11, axes=[0]) == [(N, 1)]


def test_results_beside_the_first_are_not_followed() -> None:
    with pytest.raises(Dependent, match="MaxPool with indices"):
        made("MaxPool", data(N, 3, 4), outputs=2, kernel_shape=[2])
    with pytest.raises(Dependent, match="BatchNormalization in training"):
        made("BatchNormalization", data(N, 3), *[data(3)] * 4, outputs=2)
