"""Shapes where onnx's inference gives up: those that come from partially known values.

Run once over the whole model, after onnx. A dim that onnx could only invent a name for is often a
size that the shape arithmetic before it spells out; learning that replaces the name everywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tiered.graph import symbols
from tiered.graph.partial import elements_of
from tiered.graph.symbols import INVENTED, Size
from tiered.graph.types import Dim, Shape, TensorType, tensor_type
from tiered.graph.value import NOT_INFERRED, Value

if TYPE_CHECKING:
    from tiered.graph.graph import Graph
    from tiered.graph.model import Model
    from tiered.graph.node import Node

Rule = Callable[["Node"], Sequence["Size | None"] | None]


def refine_shapes(model: Model, infer: Callable[[Node], dict[str, object]]) -> None:
    """Complete the shapes of a model that onnx has inferred.

    Args:
        model: the model; only the types of the view change.
        infer: onnx's inference of one node, for what reads a shape that became known.
    """
    moved: set[Value] = set()
    for graph in model.graphs():
        for node in graph.topological_order():
            _refine(node, moved, infer)
    if model.dims.has_news or moved:
        _resolve(model)


def _refine(
    node: Node, moved: set[Value], infer: Callable[[Node], dict[str, object]]
) -> None:
    outputs = [value for value in node._outputs if value is not None]
    if not any(_is_vague(value) for value in outputs):
        return
    dims = node.owner.model.dims
    found: dict[str, object] = {}
    if any(value in moved for value in node._inputs if value is not None):
        found = infer(node)
    shape = own_shape(node)
    for value in outputs:
        inferred = found.get(value.name)
        if isinstance(inferred, TensorType) and inferred.shape is not None:
            _learn(value, [dims.size(dim) for dim in inferred.shape], inferred.dtype, moved)
    if shape is not None and outputs:
        _learn(outputs[0], shape, outputs[0].dtype, moved)


def own_shape(node: Node) -> Sequence[Size | None] | None:
    """Return the dims of the first output as far as the rules here tell; None for nothing."""
    rule = RULES.get(node.op_type) if node.domain == "" else None
    if rule is None or node.has_references:
        return None
    try:
        return rule(node)
    except (IndexError, ValueError, TypeError):
        return None


def _is_vague(value: Value) -> bool:
    """Tell whether a dim, or the rank, is unknown or has an invented name."""
    value_type = value._type
    if not isinstance(value_type, TensorType):
        return value_type is None or value_type is NOT_INFERRED
    shape = value_type.shape
    return shape is None or any(
        dim is None or (isinstance(dim, str) and dim.startswith(INVENTED)) for dim in shape
    )


def _learn(
    value: Value, sizes: Sequence[Size | None], dtype: int | None, moved: set[Value]
) -> None:
    """Take over what is now known of a value's dims, and what that says of invented names."""
    assert value.graph is not None
    dims = value.graph.model.dims
    if dtype is None:
        return
    before = value.shape
    if before is not None and len(before) != len(sizes):
        return
    after: list[Dim] = []
    for known, size in zip(before or [None] * len(sizes), sizes, strict=True):
        if isinstance(known, str) and size is not None:
            dims.learn(known, size)
        after.append(dims.resolve(known) if known is not None else dims.dim(size))
    new_type = tensor_type(dtype, tuple(after))
    if new_type != value.type:
        value._type = new_type
        value._elements = NOT_INFERRED
        moved.add(value)


def _resolve(model: Model) -> None:
    """Replace invented names by what they turned out to be, and forget values known by them."""
    resolve = model.dims.resolve
    for graph in model.graphs():
        for value in graph._values.values():
            value_type = value._type
            if isinstance(value_type, TensorType) and value_type.shape is not None:
                shape = tuple(resolve(dim) for dim in value_type.shape)
                if shape != value_type.shape:
                    value._type = tensor_type(value_type.dtype, shape)
            value._elements = NOT_INFERRED


# --- rules ----------------------------------------------------------------------------------------


def _sizes(value: Value | None) -> list[Size | None]:
    """Return the dims of a value as sizes.

    Raises:
        ValueError: its rank is not known.
    """
    shape: Shape | None = None if value is None else value.shape
    if value is None or shape is None:
        raise ValueError("the rank is not known")
    assert value.graph is None or value.graph.model is not None
    if value.graph is None:
        return [dim if isinstance(dim, int) else None for dim in shape]
    dims = value.graph.model.dims
    return [dims.size(dim) for dim in shape]


def _elements(node: Node, index: int) -> list[Size | None]:
    """Return the elements of a shape-like operand.

    Raises:
        ValueError: not even their number is known.
    """
    operands = node.operands
    value = operands[index] if index < len(operands) else None
    elements = None if value is None else elements_of(value)
    if elements is not None:
        return list(elements.ravel())
    shape = None if value is None else value.static_shape
    if shape is None or len(shape) != 1:
        raise ValueError("the number of elements is not known")
    return [None] * shape[0]


def _product(sizes: Sequence[Size | None]) -> Size | None:
    total: Size = 1
    for size in sizes:
        if size is None:
            return None
        total = symbols.multiply(total, size)
    return total


def _reshape(node: Node) -> Sequence[Size | None]:
    target = _elements(node, 1)
    data: list[Size | None] | None = None
    value = node._inputs[0]
    if value is not None and value.shape is not None:
        data = _sizes(value)
    result: list[Size | None] = []
    for axis, size in enumerate(target):
        if isinstance(size, int) and size == 0 and not node.attr("allowzero", 0):
            result.append(data[axis] if data is not None and axis < len(data) else None)
        elif size is None or (not isinstance(size, int) and not _may_be_zero_safely(size)):
            result.append(None)
        else:
            result.append(size)
    if any(isinstance(size, int) and size == -1 for size in result):
        at = result.index(-1)
        total = None if data is None else _product(data)
        others = _product([size for place, size in enumerate(result) if place != at])
        result[at] = None
        if total is not None and others is not None and others != 0:
            result[at] = symbols.divide(total, others)
    return result


def _may_be_zero_safely(size: Size) -> bool:
    """Tell whether a computed size may stand as a dim.

    A size that is 0 at run time copies a dim instead; then the tensor is empty, and the name still
    means the size of an empty dim, or of one that the copied dim agrees with in its product.
    """
    return not isinstance(size, int) and size.is_non_negative


def _expand(node: Node) -> Sequence[Size | None]:
    return broadcast([_sizes(node._inputs[0]), _elements(node, 1)])


def _constant_of_shape(node: Node) -> Sequence[Size | None]:
    return _elements(node, 0)


def _tile(node: Node) -> Sequence[Size | None]:
    repeats = _elements(node, 1)
    return [
        None if dim is None or repeat is None else symbols.multiply(dim, repeat)
        for dim, repeat in zip(_sizes(node._inputs[0]), repeats, strict=True)
    ]


def _range(node: Node) -> Sequence[Size | None]:
    (start,), (limit,), (delta,) = (_elements(node, at) for at in range(3))
    if start is None or limit is None or delta != 1:
        return [None]
    length = symbols.subtract(limit, start)
    is_sure = length >= 0 if isinstance(length, int) else length.is_non_negative
    return [length if is_sure else None]


def _concat(node: Node) -> Sequence[Size | None]:
    parts = [_sizes(value) for value in node._inputs]
    axis = node.attr("axis")
    axis += len(parts[0]) if axis < 0 else 0
    result: list[Size | None] = []
    for at, column in enumerate(zip(*parts, strict=True)):
        if at == axis:
            total: Size | None = 0
            for size in column:
                total = None if total is None or size is None else symbols.add(total, size)
            result.append(total)
        else:
            result.append(_agreed(column))
    return result


def _agreed(column: Sequence[Size | None]) -> Size | None:
    """Return the one size of dims that must be equal: a number if one is known."""
    known = [size for size in column if size is not None]
    return next((size for size in known if isinstance(size, int)), known[0] if known else None)


def _slice(node: Node) -> Sequence[Size | None]:
    sizes = _sizes(node._inputs[0])
    starts, ends = _elements(node, 1), _elements(node, 2)
    operands = node.operands
    axes: list[Size | None] = list(range(len(starts)))
    if len(operands) > 3 and operands[3] is not None:
        axes = _elements(node, 3)
    steps: list[Size | None] = [1] * len(starts)
    if len(operands) > 4 and operands[4] is not None:
        steps = _elements(node, 4)
    if any(not isinstance(axis, int) for axis in axes):
        return [None] * len(sizes)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        assert isinstance(axis, int)
        sizes[axis] = _sliced(sizes[axis], start, end, step)
    return sizes


def _sliced(dim: Size | None, start: Size | None, end: Size | None, step: Size | None) -> Size | None:
    """Return how much of a dim a slice takes, where that does not depend on which end is reached."""
    if dim is None or start is None or end is None or step != 1:
        return None
    if isinstance(dim, int) and isinstance(start, int) and isinstance(end, int):
        return len(range(dim)[start:end])
    if start != 0:
        return None
    reaches_end = symbols.subtract(end, dim)
    is_all = end == dim or (isinstance(end, int) and end >= 1 << 31)
    if is_all or (not isinstance(reaches_end, int) and reaches_end.is_non_negative):
        return dim
    return None


def _elementwise(node: Node) -> Sequence[Size | None]:
    return broadcast([_sizes(value) for value in node._inputs])


def broadcast(shapes: Sequence[Sequence[Size | None]]) -> list[Size | None]:
    """Return the dims that shapes broadcast to, those that are sure."""
    rank = max(len(shape) for shape in shapes)
    padded = [[1] * (rank - len(shape)) + list(shape) for shape in shapes]
    return [_broadcast_dim(column) for column in zip(*padded, strict=True)]


def _broadcast_dim(column: Sequence[Size | None]) -> Size | None:
    others = [size for size in column if not (isinstance(size, int) and size == 1)]
    if not others:
        return 1
    for size in others:
        if isinstance(size, int):
            # Whatever the others are, they are 1 or this.
            return size
    first = others[0]
    return first if all(size is not None and size == first for size in others) else None


RULES: dict[str, Rule] = {
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Expand": _expand,
    "Range": _range,
    "Reshape": _reshape,
    "Slice": _slice,
    "Tile": _tile,
    **dict.fromkeys(
        (
            "Add", "And", "Div", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual",
            "Max", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Where", "Xor",
        ),
        _elementwise,
    ),
}  # fmt: skip
