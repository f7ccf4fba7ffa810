"""Types of the operators that models are made of, told in Python.

onnx's own inference of one node takes 20 to 60 µs, most of it spent on carrying types to C++ and
back; a rule here takes 2 to 5, and sizes that depend on dynamic dims survive it. A rule states
nothing but what is sure. Where it cannot tell everything that onnx might, it gives None, or raises
IndexError, TypeError or ValueError, and onnx is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.types import Dim, Shape, TensorType, tensor_type
from tiered.graph.shape_inference import symbolic_dims

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value
    from tiered.graph.shape_inference.symbolic_dims import Dims, Size

Types = TensorType | list[TensorType] | None
"""The type of the first output, or of each; None where onnx is to be asked."""

Rule = Callable[["Node", list[TensorType]], Types]

OLDEST: Final = 7
"""Before this opset, broadcasting had its own rules."""


def shape_of(kind: TensorType) -> Shape:
    """Return the shape of an operand.

    Raises:
        ValueError: the rank is not known.
    """
    if kind.shape is None:
        raise ValueError("the rank is not known")
    return kind.shape


def static(shape: Shape) -> list[int]:
    """Return dims that are all numbers.

    Raises:
        ValueError: one is not.
    """
    sizes = [dim for dim in shape if isinstance(dim, int)]
    if len(sizes) < len(shape):
        raise ValueError("a dim is not known")
    return sizes


def numbers(value: Value | None) -> list[int]:
    """Return the elements of a shape-like constant.

    Raises:
        ValueError: it is none.
    """
    tensor = None if value is None else value.tensor
    if tensor is None or tensor.is_sparse or len(tensor.shape) > 1:
        raise ValueError("an operand is no constant list")
    found: list[int] = tensor.numpy().reshape(-1).tolist()
    return found


def axes_of(node: Node) -> list[int] | None:
    """Return the axes, which were an attribute before they were an operand; None if not given."""
    given = node.attribute_protos().get("axes")
    if given is not None:
        return list(given.ints)
    value = node.input(1)
    return None if value is None else numbers(value)


def axis_within(axis: int, rank: int) -> int:
    """Return an axis counted from the front.

    Raises:
        ValueError: there is none such.
    """
    if not -rank <= axis < rank:
        raise ValueError("no such axis")
    return axis + rank if axis < 0 else axis


def broadcast(dims: Dims, shapes: Sequence[Shape | None]) -> Shape | None:
    """Return what shapes broadcast to, None for an unknown rank; a dim that depends is None.

    Raises:
        ValueError: they do not broadcast.
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
    if column.count(column[0]) == len(column):
        return column[0]
    result: Dim = 1
    for dim in column:
        if dim in (1, result):
            continue
        if result == 1:
            result = dim
        elif isinstance(dim, int):
            if isinstance(result, int):
                raise ValueError("the dims do not broadcast")
            # Whatever the others are, they are 1 or this.
            result = dim
        elif not isinstance(result, int):
            result = None if result is None or dim is None else dims.broadcast(result, dim)
            if result is not None:
                continue
            if any(isinstance(other, int) and other != 1 for other in column):
                continue
            return None
    return result


# --- element by element ---------------------------------------------------------------------------


def _common_shape(node: Node, kinds: list[TensorType]) -> Shape | None:
    return broadcast(node.owner.model.dims, [kind.shape for kind in kinds])


def _as_first(_: Node, kinds: list[TensorType]) -> Types:
    return kinds[0]


def _bools(_: Node, kinds: list[TensorType]) -> Types:
    return tensor_type(DataType.BOOL, kinds[0].shape)


def _elementwise(node: Node, kinds: list[TensorType]) -> Types:
    first = kinds[0]
    shape = _common_shape(node, kinds)
    return first if shape == first.shape else tensor_type(first.dtype, shape)


def _compared(node: Node, kinds: list[TensorType]) -> Types:
    return tensor_type(DataType.BOOL, _common_shape(node, kinds))


def _where(node: Node, kinds: list[TensorType]) -> Types:
    return tensor_type(kinds[1].dtype, _common_shape(node, kinds))


def _cast(node: Node, kinds: list[TensorType]) -> Types:
    return tensor_type(node.attribute_protos()["to"].i, kinds[0].shape)


def _cast_like(_: Node, kinds: list[TensorType]) -> Types:
    return tensor_type(kinds[1].dtype, kinds[0].shape)


def _quantized(node: Node, kinds: list[TensorType]) -> Types:
    if len(kinds) != 3 or node.has_attr("output_dtype"):
        return None
    return tensor_type(kinds[2].dtype, kinds[0].shape)


def _dequantized(node: Node, kinds: list[TensorType]) -> Types:
    return None if node.has_attr("output_dtype") else tensor_type(kinds[1].dtype, kinds[0].shape)


# --- shapes ---------------------------------------------------------------------------------------


def _shape(node: Node, kinds: list[TensorType]) -> Types:
    shape = kinds[0].shape
    if shape is None:
        return tensor_type(DataType.INT64, (None,))
    if node.attribute_protos():
        shape = shape[node.attr("start", 0) : node.attr("end", None)]
    return tensor_type(DataType.INT64, (len(shape),))


def _size(_: Node, __: list[TensorType]) -> Types:
    return tensor_type(DataType.INT64, ())


def _transpose(node: Node, kinds: list[TensorType]) -> Types:
    shape = shape_of(kinds[0])
    proto = node.attribute_protos().get("perm")
    perm = range(len(shape))[::-1] if proto is None else list(proto.ints)
    if sorted(perm) != list(range(len(shape))):
        return None
    return tensor_type(kinds[0].dtype, tuple([shape[axis] for axis in perm]))


def _non_zero(_: Node, kinds: list[TensorType]) -> Types:
    shape = kinds[0].shape
    # A scalar has no places to tell by the standard, and one for onnxruntime.
    return tensor_type(DataType.INT64, (len(shape) if shape else None, None))


def _unsqueeze(node: Node, kinds: list[TensorType]) -> Types:
    shape, axes = list(shape_of(kinds[0])), axes_of(node)
    if axes is None:
        return None
    rank = len(shape) + len(axes)
    places = {axis_within(axis, rank) for axis in axes}
    if len(places) < len(axes):
        return None
    for place in sorted(places):
        shape.insert(place, 1)
    return tensor_type(kinds[0].dtype, tuple(shape))


def _squeeze(node: Node, kinds: list[TensorType]) -> Types:
    shape, axes = shape_of(kinds[0]), axes_of(node)
    if axes is None:
        return tensor_type(kinds[0].dtype, tuple(dim for dim in static(shape) if dim != 1))
    if not axes:
        # For onnx these are none, for onnxruntime all of size 1.
        return tensor_type(kinds[0].dtype, None)
    places = {axis_within(axis, len(shape)) for axis in axes}
    kept = [dim for at, dim in enumerate(shape) if at not in places]
    return tensor_type(kinds[0].dtype, tuple(kept))


def _reduce(node: Node, kinds: list[TensorType]) -> Types:
    shape, axes = shape_of(kinds[0]), axes_of(node)
    if not axes:
        if node.attr("noop_with_empty_axes", 0):
            return None
        axes = list(range(len(shape)))
    places = {axis_within(axis, len(shape)) for axis in axes}
    return tensor_type(kinds[0].dtype, _without(shape, places, node.attr("keepdims")))


def _arg_reduce(node: Node, kinds: list[TensorType]) -> Types:
    shape = shape_of(kinds[0])
    places = {axis_within(node.attr("axis"), len(shape))}
    return tensor_type(DataType.INT64, _without(shape, places, node.attr("keepdims")))


def _without(shape: Shape, places: set[int], keep: int) -> Shape:
    if keep:
        return tuple([1 if at in places else dim for at, dim in enumerate(shape)])
    return tuple([dim for at, dim in enumerate(shape) if at not in places])


def _gather(node: Node, kinds: list[TensorType]) -> Types:
    data, indices = shape_of(kinds[0]), shape_of(kinds[1])
    axis = axis_within(node.attr("axis"), len(data))
    return tensor_type(kinds[0].dtype, data[:axis] + indices + data[axis + 1 :])


def _gather_elements(_: Node, kinds: list[TensorType]) -> Types:
    return tensor_type(kinds[0].dtype, kinds[1].shape)


def _concat(node: Node, kinds: list[TensorType]) -> Types:
    shapes = [shape_of(kind) for kind in kinds]
    axis = axis_within(node.attr("axis"), len(shapes[0]))
    result: list[Dim] = []
    for at, column in enumerate(zip(*shapes, strict=True)):
        if at == axis:
            result.append(_total(node, column))
            continue
        if column.count(column[0]) == len(column):
            result.append(column[0])
            continue
        sizes = {dim for dim in column if isinstance(dim, int)}
        if len(sizes) > 1:
            return None
        # Dims that must be equal: a number says most.
        result.append(next(iter(sizes), column[0]))
    return tensor_type(kinds[0].dtype, tuple(result))


def _total(node: Node, column: Sequence[Dim]) -> Dim:
    dims, total = node.owner.model.dims, 0
    if all(isinstance(dim, int) for dim in column):
        return sum(column)  # type: ignore[arg-type]  # narrowed by the line above
    size: Size = total
    for dim in column:
        more = dims.size(dim)
        if more is None:
            return None
        size = symbolic_dims.add(size, more)
    return dims.dim(size)


def _split(node: Node, kinds: list[TensorType]) -> Types:
    shape, count = list(shape_of(kinds[0])), len(node._outputs)
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
    return [tensor_type(kinds[0].dtype, (*before, size, *after)) for size in sizes]


def _flatten(node: Node, kinds: list[TensorType]) -> Types:
    shape, axis = shape_of(kinds[0]), node.attr("axis")
    axis += len(shape) if axis < 0 else 0
    if not 0 <= axis <= len(shape):
        return None
    dims, result = node.owner.model.dims, list[Dim]()
    for part in (shape[:axis], shape[axis:]):
        size: Size = 1
        for dim in part:
            factor = dims.size(dim)
            if factor is None:
                return None
            size = symbolic_dims.multiply(size, factor)
        result.append(dims.dim(size))
    return tensor_type(kinds[0].dtype, tuple(result))


# --- products -------------------------------------------------------------------------------------


def _matmul(node: Node, kinds: list[TensorType]) -> Types:
    a, b = shape_of(kinds[0]), shape_of(kinds[1])
    left: Shape = a[-2:-1] if len(a) > 1 else ()
    right: Shape = b[-1:] if len(b) > 1 else ()
    inner, other = a[-1], b[-2] if len(b) > 1 else b[-1]
    if isinstance(inner, int) and isinstance(other, int) and inner != other:
        return None
    batch = broadcast(node.owner.model.dims, [a[:-2], b[:-2]])
    assert batch is not None
    return tensor_type(kinds[0].dtype, batch + left + right)


def _gemm(node: Node, kinds: list[TensorType]) -> Types:
    (rows, inner), (other, columns) = shape_of(kinds[0]), shape_of(kinds[1])
    if node.attr("transA"):
        rows, inner = inner, rows
    if node.attr("transB"):
        other, columns = columns, other
    if isinstance(inner, int) and isinstance(other, int) and inner != other:
        return None
    return tensor_type(kinds[0].dtype, (rows, columns))


RULES: Final[dict[str, Rule]] = {
    **dict.fromkeys(
        (
            "Abs", "Acos", "Asin", "Atan", "BatchNormalization", "BitwiseNot", "Ceil", "Celu",
            "Clip", "Cos", "Cosh", "CumSum", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu",
            "GroupNormalization", "HardSigmoid", "HardSwish", "Identity", "InstanceNormalization",
            "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "LRN", "Mish", "Neg", "PRelu",
            "RMSNormalization", "Reciprocal", "Relu", "Round", "ScatterElements", "ScatterND",
            "Selu", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt",
            "Swish", "Tan", "Tanh", "ThresholdedRelu", "Trilu",
        ),
        _as_first,
    ),
    **dict.fromkeys(
        (
            "Add", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Max", "Mean", "Min", "Mod",
            "Mul", "Pow", "Sub", "Sum",
        ),
        _elementwise,
    ),
    **dict.fromkeys(
        ("And", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Or", "Xor"),
        _compared,
    ),
    **dict.fromkeys(("IsInf", "IsNaN", "Not"), _bools),
    **dict.fromkeys(
        (
            "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
            "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare",
        ),
        _reduce,
    ),
    **dict.fromkeys(("ArgMax", "ArgMin"), _arg_reduce),
    "Cast": _cast,
    "CastLike": _cast_like,
    "Concat": _concat,
    "DequantizeLinear": _dequantized,
    "Flatten": _flatten,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "Gemm": _gemm,
    "MatMul": _matmul,
    "NonZero": _non_zero,
    "QuantizeLinear": _quantized,
    "Shape": _shape,
    "Size": _size,
    "Split": _split,
    "Squeeze": _squeeze,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}  # fmt: skip
