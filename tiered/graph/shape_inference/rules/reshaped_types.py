"""Shapes that depend on the values of operands, which may be known partially."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.types import TensorType, tensor_type
from tiered.graph.shape_inference import symbolic_dims
from tiered.graph.shape_inference.rules.data import is_given, operand, read
from tiered.graph.shape_inference.rules.shape_rule import OperandRule, shape_rule
from tiered.graph.shape_inference.rules.standard_types import broadcast, shape_of
from tiered.graph.shape_inference.symbolic_dims import Poly, Size

if TYPE_CHECKING:
    from tiered.graph.core.node import Node


def _of_sizes(sizes: Callable[[Node], Sequence[Size | None]]) -> OperandRule:
    """Return the type rule of an output with these dims and the dtype of the first operand."""

    def rule(node: Node, operands: list[TensorType]) -> TensorType:
        return _sized(node, operands[0].dtype, sizes(node))

    return rule


def _sized(node: Node, dtype: int, sizes: Sequence[Size | None]) -> TensorType:
    dims = node.owner.model.dims
    return tensor_type(dtype, tuple([dims.dim(size) for size in sizes]))


def _sizes(node: Node) -> list[Size | None]:
    """Return the dims of the first operand as sizes.

    Raises:
        ValueError: its rank is unknown.
    """
    shape = operand(node, 0).shape
    if shape is None:
        raise ValueError("the rank is unknown")
    return [node.owner.model.dims.size(dim) for dim in shape]


def _elements(node: Node, index: int) -> list[Size | None]:
    found: list[Size | None] = read(node, index).ravel().tolist()
    return found


def _product(sizes: Sequence[Size | None]) -> Size | None:
    return symbolic_dims.combined(symbolic_dims.multiply, sizes, 1)


@shape_rule("Reshape")
@_of_sizes
def _reshape(node: Node) -> Sequence[Size | None]:
    target = _elements(node, 1)
    data = None if operand(node, 0).shape is None else _sizes(node)
    copies_zeros = not node.attr("allowzero", 0)
    at = next((axis for axis, size in enumerate(target) if size == -1), None)
    result: list[Size | None] = []
    for axis, size in enumerate(target):
        copied = data[axis] if data is not None and axis < len(data) else None
        if isinstance(size, int):
            result.append(copied if size == 0 and copies_zeros else size)
        elif size is None or not size.is_non_negative:
            result.append(None)
        elif (
            copies_zeros
            and not size.is_positive_if(node.owner.model.dims.positive)
            and not _is_kept(axis, size, target, data)
        ):
            # If it is 0, another dim may be copied.
            result.append(None)
        else:
            result.append(size)
    if at is not None:
        total = None if data is None else _product(data)
        others = _product([size for axis, size in enumerate(result) if axis != at])
        result[at] = None
        if total is not None and others is not None and others != 0:
            result[at] = symbolic_dims.divide(total, others)
    return result


def _is_kept(
    axis: int, size: Poly, target: Sequence[Size | None], data: Sequence[Size | None] | None
) -> bool:
    """Return whether a Reshape that copies a dim for a 0 has this size even if it is 0.

    It may be 0, as far as is known. Then the Reshape copies another 0, or it fails: it has no dim
    to copy, or no elements while no dim of the result is 0. Two unrelated dims that are both 0 are
    not considered.
    """
    if data is None:
        return False
    if axis >= len(data) or _is_zero_with(data[axis], size):
        return True
    if not any(_is_zero_with(dim, size) for dim in data):
        return False
    names = {name for term, _ in size.terms for name in term}
    for at, other in enumerate(target):
        dim = other
        if _is_zero_with(other, size):
            dim = data[at] if at < len(data) else 1
        if dim is None or dim in (0, -1):
            return False
        if isinstance(dim, Poly) and any(names & set(term) for term, _ in dim.terms):
            return False
    return True


def _is_zero_with(size: Size | None, other: Poly) -> bool:
    """Return whether a size is known to be 0 whenever another one is."""
    if size is None or isinstance(size, int):
        return size == 0
    return all(any(set(zero) <= set(names) for zero, _ in other.terms) for names, _ in size.terms)


@shape_rule("Expand")
def _expand(node: Node, operands: list[TensorType]) -> TensorType:
    dims = node.owner.model.dims
    target = tuple([dims.dim(size) for size in _elements(node, 1)])
    return tensor_type(operands[0].dtype, broadcast(dims, [shape_of(operands[0]), target]))


@shape_rule("ConstantOfShape")
def _constant_of_shape(node: Node, _: list[TensorType]) -> TensorType:
    value = node.attr("value", None)
    return _sized(node, DataType.FLOAT if value is None else value.dtype, _elements(node, 0))


@shape_rule("MaxUnpool")
@_of_sizes
def _max_unpool(node: Node) -> Sequence[Size | None]:
    """The last operand has the sizes; by the attributes, onnx is asked."""
    return _elements(node, 2)


@shape_rule("Tile")
@_of_sizes
def _tile(node: Node) -> Sequence[Size | None]:
    repeats = _elements(node, 1)
    return [_product(pair) for pair in zip(_sizes(node), repeats, strict=True)]


@shape_rule("Resize")
@_of_sizes
def _resize(node: Node) -> Sequence[Size | None]:
    """The last operand has the sizes, of the named axes or of all; by scales, onnx is asked."""
    if node.attr("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise ValueError("the sizes are bounds")
    made = [_as_size(size) for size in _elements(node, 3)]
    axes = node.attr("axes", None)
    if axes is None:
        return made
    sizes = _sizes(node)
    for axis, size in zip(axes, made, strict=True):
        sizes[axis] = size
    return sizes


def _as_size(size: Size | None) -> Size | None:
    """Return a size; None if it may be negative."""
    return size if size is not None and symbolic_dims.is_non_negative(size) else None


@shape_rule("Range", ask_onnx=True)
@_of_sizes
def _range(node: Node) -> Sequence[Size | None]:
    (start,), (limit,), (delta,) = (_elements(node, at) for at in range(3))
    if start is None or limit is None or delta != 1:
        return [None]
    return [_as_size(symbolic_dims.subtract(limit, start))]


@shape_rule("Slice", ask_onnx=True)
@_of_sizes
def _slice(node: Node) -> Sequence[Size | None]:
    sizes, starts, ends = _sizes(node), _elements(node, 1), _elements(node, 2)
    axes: list[Size | None] = list(range(len(starts)))
    if is_given(node, 3):
        axes = _elements(node, 3)
    steps: list[Size | None] = [1] * len(starts)
    if is_given(node, 4):
        steps = _elements(node, 4)
    if any(not isinstance(axis, int) for axis in axes):
        return [None] * len(sizes)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        assert isinstance(axis, int)
        sizes[axis] = _sliced(node, sizes[axis], start, end, step)
    return sizes


def _sliced(
    node: Node, dim: Size | None, start: Size | None, end: Size | None, step: Size | None
) -> Size | None:
    """Return the size that a slice takes of a dim; None if it is unknown."""
    if (
        isinstance(dim, int)
        and isinstance(start, int)
        and isinstance(end, int)
        and isinstance(step, int)
    ):
        # With a negative step, ONNX clamps a start before the front to 0; Python takes nothing.
        return len(range(dim)[start:end:step]) if step > 0 or start >= -dim else None
    if dim is None or end is None or start != 0 or step != 1:
        return None
    if isinstance(end, int) and end >= 1 << 31:
        return dim
    if symbolic_dims.is_non_negative(symbolic_dims.subtract(end, dim)):
        return dim
    if isinstance(dim, int):
        assert isinstance(end, Poly)
        return node.owner.model.dims.capped(end, dim)
    return None
