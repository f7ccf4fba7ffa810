"""Types of the most frequent operators, and the helpers that rules share.

onnx's own inference of one node takes 20 to 60 µs, mostly to convert types to C++ and back. A rule
here takes 2 to 5 µs, and keeps sizes that depend on dynamic dims. A rule that may infer less
than onnx returns None or raises, and onnx is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.types import Dim, Shape, TensorType, tensor_type
from tiered.graph.shape_inference import symbolic_dims
from tiered.graph.shape_inference.rules.shape_rule import shape_rule

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value
    from tiered.graph.shape_inference.symbolic_dims import Dims

Types = TensorType | list[TensorType] | None
"""The type of the first output, or of each; None if unknown."""


def shape_of(kind: TensorType) -> Shape:
    """Return the shape of an operand.

    Raises:
        ValueError: the rank is unknown.
    """
    if kind.shape is None:
        raise ValueError("the rank is unknown")
    return kind.shape


def static(shape: Shape) -> list[int]:
    """Return the dims as integers.

    Raises:
        ValueError: a dim is not a known integer.
    """
    sizes = [dim for dim in shape if isinstance(dim, int)]
    if len(sizes) < len(shape):
        raise ValueError("a dim is not a known integer")
    return sizes


def numbers(value: Value | None) -> list[int]:
    """Return the elements of a shape-like value that are known: a constant, or computed of some.

    Raises:
        ValueError: the value is not a known scalar or list.
    """
    array = None if value is None else value.elements if value.const is None else value.const
    if array is None or array.ndim > 1:
        raise ValueError("an operand is not a constant list")
    return static(tuple(array.ravel().tolist()))


def axes_of(node: Node) -> list[int] | None:
    """Return the axes, an attribute or an operand depending on the opset; None if absent."""
    given = node.attribute_protos().get("axes")
    if given is not None:
        return list(given.ints)
    value = node.input(1)
    return None if value is None else numbers(value)


def axis_within(axis: int, rank: int) -> int:
    """Return an axis counted from the front.

    Raises:
        ValueError: the axis is out of range.
    """
    if not -rank <= axis < rank:
        raise ValueError("the axis is out of range")
    return axis + rank if axis < 0 else axis


def broadcast(dims: Dims, shapes: Sequence[Shape | None]) -> Shape | None:
    """Return the shape that shapes broadcast to; None for an unknown rank, and for unknown dims.

    Raises:
        ValueError: the shapes do not broadcast.
    """
    first = shapes[0]
    if shapes.count(first) == len(shapes):
        return first
    known = [shape for shape in shapes if shape is not None]
    if len(known) < len(shapes):
        return None
    rank = max(map(len, known))
    padded = [(1,) * (rank - len(shape)) + shape for shape in known]
    return tuple([_broadcast_dim(dims, column) for column in zip(*padded, strict=True)])


def _broadcast_dim(dims: Dims, column: Sequence[Dim]) -> Dim:
    sizes = {dim for dim in column if isinstance(dim, int) and dim != 1}
    if len(sizes) > 1:
        raise ValueError("the dims do not broadcast")
    if sizes:
        return sizes.pop()  # The others are 1 or equal to it.
    names = [dim for dim in column if not isinstance(dim, int)]
    result = names[0] if names else 1
    for name in names:
        result = None if result is None or name is None else dims.broadcast(str(result), name)
    return result


# --- element by element ---------------------------------------------------------------------------


def _common_shape(node: Node, operands: list[TensorType]) -> Shape | None:
    return broadcast(node.owner.model.dims, [kind.shape for kind in operands])


@shape_rule(
    "Abs", "Acos", "Asin", "Atan", "BatchNormalization", "BitwiseNot", "Ceil", "Celu", "Clip",
    "Cos", "Cosh", "CumSum", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu",
    "GroupNormalization", "HardSigmoid", "HardSwish", "Identity", "InstanceNormalization",
    "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "LRN", "Mish", "Neg", "PRelu",
    "RMSNormalization", "Reciprocal", "Relu", "Round", "ScatterElements", "ScatterND", "Selu",
    "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt", "Swish", "Tan",
    "Tanh", "ThresholdedRelu", "Trilu",
)  # fmt: skip
def _as_first(_: Node, operands: list[TensorType]) -> Types:
    return operands[0]


@shape_rule("IsInf", "IsNaN", "Not")
def _bools(_: Node, operands: list[TensorType]) -> Types:
    return tensor_type(DataType.BOOL, operands[0].shape)


@shape_rule(
    "Add", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Max", "Mean", "Min", "Mod", "Mul",
    "Pow", "Sub", "Sum",
)  # fmt: skip
def _elementwise(node: Node, operands: list[TensorType]) -> Types:
    return tensor_type(operands[0].dtype, _common_shape(node, operands))


@shape_rule("And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or", "Xor")
def _compared(node: Node, operands: list[TensorType]) -> Types:
    return tensor_type(DataType.BOOL, _common_shape(node, operands))


@shape_rule("Where")
def _where(node: Node, operands: list[TensorType]) -> Types:
    return tensor_type(operands[1].dtype, _common_shape(node, operands))


@shape_rule("Cast")
def _cast(node: Node, operands: list[TensorType]) -> Types:
    return tensor_type(node.attribute_protos()["to"].i, operands[0].shape)


@shape_rule("CastLike")
def _cast_like(_: Node, operands: list[TensorType]) -> Types:
    return tensor_type(operands[1].dtype, operands[0].shape)


@shape_rule("QuantizeLinear")
def _quantized(node: Node, operands: list[TensorType]) -> Types:
    if node.has_attr("output_dtype"):
        return None
    return tensor_type(operands[2].dtype, operands[0].shape)


@shape_rule("DequantizeLinear")
def _dequantized(node: Node, operands: list[TensorType]) -> Types:
    if node.has_attr("output_dtype"):
        return None
    return tensor_type(operands[1].dtype, operands[0].shape)


# --- constants ------------------------------------------------------------------------------------


@shape_rule("Constant")
def _constant(node: Node) -> TensorType | None:
    tensor = node.constant_tensor()
    return None if tensor is None else tensor_type(tensor.dtype, tensor.shape)


# --- shapes ---------------------------------------------------------------------------------------


@shape_rule("Shape")
def _shape(node: Node, operands: list[TensorType]) -> Types:
    shape = operands[0].shape
    if shape is None:
        return tensor_type(DataType.INT64, (None,))
    if node.attribute_protos():
        shape = shape[node.attr("start", 0) : node.attr("end", None)]
    return tensor_type(DataType.INT64, (len(shape),))


@shape_rule("Size")
def _size(_: Node, __: list[TensorType]) -> Types:
    return tensor_type(DataType.INT64, ())


@shape_rule("Transpose")
def _transpose(node: Node, operands: list[TensorType]) -> Types:
    shape = shape_of(operands[0])
    proto = node.attribute_protos().get("perm")
    perm = range(len(shape))[::-1] if proto is None else list(proto.ints)
    if sorted(perm) != list(range(len(shape))):
        return None
    return tensor_type(operands[0].dtype, tuple([shape[axis] for axis in perm]))


@shape_rule("NonZero")
def _non_zero(_: Node, operands: list[TensorType]) -> Types:
    shape = operands[0].shape
    # For a scalar, the standard returns no row of indices, and onnxruntime one.
    return tensor_type(DataType.INT64, (len(shape) if shape else None, None))


@shape_rule("Unsqueeze")
def _unsqueeze(node: Node, operands: list[TensorType]) -> Types:
    shape, axes = list(shape_of(operands[0])), axes_of(node)
    if axes is None:
        return None
    rank = len(shape) + len(axes)
    places = {axis_within(axis, rank) for axis in axes}
    if len(places) < len(axes):
        return None
    for place in sorted(places):
        shape.insert(place, 1)
    return tensor_type(operands[0].dtype, tuple(shape))


@shape_rule("Squeeze")
def _squeeze(node: Node, operands: list[TensorType]) -> Types:
    shape, axes = shape_of(operands[0]), axes_of(node)
    if axes is None:
        return tensor_type(operands[0].dtype, tuple(dim for dim in static(shape) if dim != 1))
    if not axes:
        # No axes mean none for onnx, and all of size 1 for onnxruntime.
        return tensor_type(operands[0].dtype, None)
    places = {axis_within(axis, len(shape)) for axis in axes}
    kept = [dim for at, dim in enumerate(shape) if at not in places]
    return tensor_type(operands[0].dtype, tuple(kept))


@shape_rule(
    "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
    "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
)  # fmt: skip
def _reduce(node: Node, operands: list[TensorType]) -> Types:
    shape, axes = shape_of(operands[0]), axes_of(node)
    if not axes:
        if node.attr("noop_with_empty_axes", 0):
            return None
        axes = list(range(len(shape)))
    places = {axis_within(axis, len(shape)) for axis in axes}
    return tensor_type(operands[0].dtype, _without(shape, places, node.attr("keepdims")))


@shape_rule("ArgMax", "ArgMin")
def _arg_reduce(node: Node, operands: list[TensorType]) -> Types:
    shape = shape_of(operands[0])
    places = {axis_within(node.attr("axis"), len(shape))}
    return tensor_type(DataType.INT64, _without(shape, places, node.attr("keepdims")))


def _without(shape: Shape, places: set[int], keep: int) -> Shape:
    if keep:
        return tuple([1 if at in places else dim for at, dim in enumerate(shape)])
    return tuple([dim for at, dim in enumerate(shape) if at not in places])


@shape_rule("Gather")
def _gather(node: Node, operands: list[TensorType]) -> Types:
    data, indices = shape_of(operands[0]), shape_of(operands[1])
    axis = axis_within(node.attr("axis"), len(data))
    return tensor_type(operands[0].dtype, data[:axis] + indices + data[axis + 1 :])


@shape_rule("GatherElements")
def _gather_elements(_: Node, operands: list[TensorType]) -> Types:
    return tensor_type(operands[0].dtype, operands[1].shape)


@shape_rule("Concat")
def _concat(node: Node, operands: list[TensorType]) -> Types:
    shapes = [shape_of(kind) for kind in operands]
    axis = axis_within(node.attr("axis"), len(shapes[0]))
    dims, result = node.owner.model.dims, list[Dim]()
    for at, column in enumerate(zip(*shapes, strict=True)):
        if at == axis:
            size = symbolic_dims.combined(symbolic_dims.add, map(dims.size, column), 0)
            result.append(dims.dim(size))
            continue
        sizes = {dim for dim in column if isinstance(dim, int)}
        if len(sizes) > 1:
            return None
        # The dims must be equal: a known integer is the most exact.
        result.append(next(iter(sizes), column[0]))
    return tensor_type(operands[0].dtype, tuple(result))


@shape_rule("Split")
def _split(node: Node, operands: list[TensorType]) -> Types:
    shape, count = list(shape_of(operands[0])), len(node._outputs)
    axis = axis_within(node.attr("axis"), len(shape))
    given, total = node.attribute_protos().get("split"), shape[axis]
    if given is not None:
        sizes = list(given.ints)
    elif node.input(1) is not None:
        sizes = numbers(node.input(1))
    elif isinstance(total, int) and total % count == 0:
        sizes = [total // count] * count
    else:
        return None
    if len(sizes) != count or (isinstance(total, int) and sum(sizes) != total):
        return None
    before, after = tuple(shape[:axis]), tuple(shape[axis + 1 :])
    return [tensor_type(operands[0].dtype, (*before, size, *after)) for size in sizes]


@shape_rule("Flatten")
def _flatten(node: Node, operands: list[TensorType]) -> Types:
    shape, axis = operands[0].shape, node.attr("axis")
    if shape is None:
        # A matrix whatever the rank was.
        return tensor_type(operands[0].dtype, (None, None))
    axis += len(shape) if axis < 0 else 0
    if not 0 <= axis <= len(shape):
        return None
    dims, result = node.owner.model.dims, list[Dim]()
    for part in (shape[:axis], shape[axis:]):
        size = symbolic_dims.combined(symbolic_dims.multiply, map(dims.size, part), 1)
        if size is None:
            return None
        result.append(dims.dim(size))
    return tensor_type(operands[0].dtype, tuple(result))


# --- products -------------------------------------------------------------------------------------


@shape_rule("MatMul")
def _matmul(node: Node, operands: list[TensorType]) -> Types:
    a, b = shape_of(operands[0]), shape_of(operands[1])
    right: Shape = b[-1:] if len(b) > 1 else ()
    inner, other = a[-1], b[-2] if len(b) > 1 else b[-1]
    if isinstance(inner, int) and isinstance(other, int) and inner != other:
        return None
    batch = broadcast(node.owner.model.dims, [a[:-2], b[:-2]])
    assert batch is not None
    return tensor_type(operands[0].dtype, batch + a[-2:-1] + right)


@shape_rule("Gemm")
def _gemm(node: Node, operands: list[TensorType]) -> Types:
    (rows, inner), (other, columns) = shape_of(operands[0]), shape_of(operands[1])
    if node.attr("transA"):
        rows, inner = inner, rows
    if node.attr("transB"):
        other, columns = columns, other
    if isinstance(inner, int) and isinstance(other, int) and inner != other:
        return None
    return tensor_type(operands[0].dtype, (rows, columns))
