"""Shapes where onnx's inference gives up: those that come from partially known values.

A dim that onnx could only invent a name for is often a size that the shape arithmetic before it
spells out; learning that replaces the name everywhere.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tiered.graph import symbols
from tiered.graph.partial import ELEMENT_DTYPES, elements_of
from tiered.graph.symbols import INVENTED, Size
from tiered.graph.type_rules import has_type_rule
from tiered.graph.types import Dim, Shape, TensorType, ValueType, tensor_type
from tiered.graph.value import NOT_INFERRED, Value

if TYPE_CHECKING:
    from tiered.graph.model import Model
    from tiered.graph.node import Node

Rule = Callable[["Node"], Sequence["Size | None"] | None]


class Refiner:
    """Completes the shapes of a model, node by node, until nothing more follows.

    Args:
        model: the model; only the types of the view change.
        infer: onnx's inference of one node, for what reads a shape that became known.
        state: writes a type.
    """

    def __init__(
        self,
        model: Model,
        infer: Callable[[Node], Mapping[str, ValueType | None]],
        state: Callable[[Value, ValueType | None], None],
    ) -> None:
        self.model = model
        self.infer = infer
        self._write = state
        # Values that are known better than when onnx looked at the nodes that read them.
        self.changed: set[Value] = set()

    def run(self, nodes: Iterable[Node], *, inferred: bool) -> None:
        """Look at nodes, and at whatever reads a value that they made more exact.

        Args:
            nodes: where to begin, in topological order.
            inferred: whether onnx has inferred these nodes as they are.
        """
        queue = deque(nodes)
        while queue:
            node = queue.popleft()
            if not node.is_live:
                continue
            for value in self._refine(node, inferred=inferred):
                self._forget_below(value)
                queue.extend(value._users.values())
            if not queue and self.model.dims.has_news:
                queue.extend(self._resolve())

    def state(self, value: Value, value_type: ValueType | None) -> None:
        """Write a type that is more exact than the one before."""
        self._write(value, value_type)
        self.changed.add(value)

    def _refine(self, node: Node, *, inferred: bool) -> list[Value]:
        """Infer the vague outputs of a node; return those that became more exact."""
        outputs = [value for value in node._outputs if value is not None]
        vague = [value for value in outputs if _is_vague(value)]
        if not vague:
            return []
        moved = [value for value in vague if self._resolve_value(value)]
        passed_on = {
            dim for value in node._inputs if value is not None for dim in value.shape or ()
        }
        dims = self.model.dims
        found: Mapping[str, ValueType | None] = {}
        # What is vague about the operands too, onnx finds out there or nowhere.
        if any(_is_vague(value, passed_on) for value in vague) and (
            not inferred
            or has_type_rule(node)
            or any(value in self.changed for value in node._inputs if value)
        ):
            found = self.infer(node)
        for value in outputs:
            news = found.get(value.name)
            if isinstance(news, TensorType):
                shape = news.shape
                sizes = None if shape is None else [dims.size(dim) for dim in shape]
                if self._learn(value, sizes, news.dtype):
                    moved.append(value)
            elif news is not None and value.type is None:
                self.state(value, news)
        own = own_shape(node)
        if own is not None and outputs and self._learn(outputs[0], own, outputs[0].dtype):
            moved.append(outputs[0])
        return moved

    def _learn(self, value: Value, sizes: Sequence[Size | None] | None, dtype: int | None) -> bool:
        """Take over what is known of a value's dims, and what that says of invented names."""
        if dtype is None:
            return False
        before = value.type
        if sizes is None:
            if before is None:
                self.state(value, tensor_type(dtype, None))
            return before is None
        known = before.shape if isinstance(before, TensorType) else None
        if known is not None and len(known) != len(sizes):
            return False
        dims, after = self.model.dims, []
        for old, size in zip(known or [None] * len(sizes), sizes, strict=True):
            if isinstance(old, str) and size is not None:
                dims.learn(old, size)
            after.append(dims.resolve(old) if old is not None else dims.dim(size))
        refined = tensor_type(dtype, tuple(after))
        if refined == before:
            return False
        self.state(value, refined)
        return True

    def _resolve(self) -> list[Node]:
        """Replace invented names by what they turned out to be; return the nodes that read such."""
        self.model.dims.has_news = False
        readers: dict[Node, None] = {}
        for graph in self.model.graphs():
            for value in graph._values.values():
                if self._resolve_value(value):
                    self._forget_below(value)
                    readers.update(dict.fromkeys(value._users.values()))
        return sorted(readers, key=lambda node: node.id)

    def _resolve_value(self, value: Value) -> bool:
        """Replace the invented names in a type by what is known of them; tell whether any was."""
        value_type, resolve = value._type, self.model.dims.resolve
        if not isinstance(value_type, TensorType) or value_type.shape is None:
            return False
        shape = tuple([resolve(dim) for dim in value_type.shape])
        if shape == value_type.shape:
            return False
        self.state(value, tensor_type(value_type.dtype, shape))
        return True

    @staticmethod
    def _forget_below(value: Value) -> None:
        """Forget the elements that were computed from a type that is more exact now."""
        pending = [value]
        while pending:
            for reader in pending.pop()._users.values():
                for output in reader._outputs:
                    if output is not None and output._elements is not NOT_INFERRED:
                        if output._elements is not None or output.dtype in ELEMENT_DTYPES:
                            pending.append(output)
                        output._elements = NOT_INFERRED


def own_shape(node: Node) -> Sequence[Size | None] | None:
    """Return the dims of the first output as far as the rules here tell; None for nothing."""
    rule = RULES.get(node.op_type) if node.domain == "" else None
    if rule is None or node.has_references:
        return None
    try:
        return rule(node)
    except (IndexError, ValueError, TypeError):
        return None


def complete_shape(node: Node) -> None:
    """Fill in the dims of a first output that onnx left open, as far as the rules here tell."""
    value = node._outputs[0] if node._outputs else None
    kind = None if value is None else value._type
    if value is None or not isinstance(kind, TensorType) or not _is_vague(value):
        return
    own = own_shape(node)
    if own is None or (kind.shape is not None and len(kind.shape) != len(own)):
        return
    dims = node.owner.model.dims
    known = kind.shape or (None,) * len(own)
    shape = tuple(
        dims.dim(size) if dim is None else dim for dim, size in zip(known, own, strict=True)
    )
    value._type = tensor_type(kind.dtype, shape)


def _is_vague(value: Value, passed_on: Container[Dim] = ()) -> bool:
    """Tell whether a dim, or the rank, is unknown or has an invented name.

    Invented names that are passed on from an operand do not count.
    """
    value_type = value._type
    if not isinstance(value_type, TensorType):
        return value_type is None or value_type is NOT_INFERRED
    shape = value_type.shape
    return shape is None or any(
        dim is None
        or (isinstance(dim, str) and dim.startswith(INVENTED) and dim not in passed_on)
        for dim in shape
    )


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


def _sliced(
    dim: Size | None, start: Size | None, end: Size | None, step: Size | None
) -> Size | None:
    """Return how much of a dim a slice takes, if that does not depend on which end comes first."""
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
    ones: list[Size | None] = [1] * rank
    padded = [ones[len(shape) :] + list(shape) for shape in shapes]
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
