"""Data propagation: how the operators of shape arithmetic compute partially known elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.value import LARGEST, Elements
from tiered.graph.opset.newest_form import operands_of
from tiered.graph.shape_inference import symbolic_dims
from tiered.graph.shape_inference.rules.shape_rule import AnyValueRule, ValueRule, shape_rule
from tiered.graph.shape_inference.symbolic_dims import Element, Size

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value


def _rule(*op_types: str) -> Callable[[AnyValueRule], AnyValueRule]:
    return shape_rule(*op_types, infers="values")


OF_TYPES: Final = frozenset({"Shape", "Size"})
"""Operators that read only the types of their operands, not the elements."""


def each(function: Callable[..., Element], *operands: Elements) -> Elements:
    """Apply a function element by element, with broadcasting."""
    first = operands[0]
    if any(operand.shape != first.shape for operand in operands):
        operands = np.broadcast_arrays(*operands)
    result = np.empty(operands[0].shape, object)
    flat = [operand.ravel().tolist() for operand in operands]
    result.reshape(-1)[:] = list(map(function, *flat))
    return result


def is_given(node: Node, index: int) -> bool:
    """Return whether there is an operand of the newest opset form."""
    operands = operands_of(node)
    return index < len(operands) and operands[index] is not None


def operand(node: Node, index: int) -> Value:
    """Return an operand of the newest opset form.

    Raises:
        ValueError: it is absent.
    """
    value = operands_of(node)[index]
    if value is None:
        raise ValueError("an operand is absent")
    return value


def read(node: Node, index: int) -> Elements:
    """Return the elements of an operand.

    Raises:
        ValueError: the operand is absent, unknown or too large.
    """
    value = operand(node, index)
    elements = value.elements
    if elements is not None:
        return elements
    shape = value.static_shape
    if shape is None or math.prod(shape) > LARGEST:
        raise ValueError("an operand is unknown")
    return np.full(shape, None, object)


def _ints(node: Node, index: int) -> list[int]:
    """Return the elements of an operand as integers.

    Raises:
        TypeError: an element is not a known integer.
        ValueError: the operand is absent, unknown or too large.
    """
    elements: list[Any] = read(node, index).ravel().tolist()
    return list(map(int, elements))


def _array(elements: Sequence[Element]) -> Elements:
    result = np.empty(len(elements), object)
    result[:] = elements
    return result


def _scalar(element: Element) -> Elements:
    result = np.empty((), object)
    result[()] = element
    return result


@_rule("Shape")
def _shape(node: Node) -> Elements | None:
    shape = operand(node, 0).shape
    if shape is None:
        return None
    dims = node.owner.model.dims
    start, end = node.attr("start", 0), node.attr("end", None)
    return _array([dims.size(dim) for dim in shape[start:end]])


@_rule("Size")
def _size(node: Node) -> Elements | None:
    shape = operand(node, 0).shape
    if shape is None:
        return None
    dims = node.owner.model.dims
    return _scalar(symbolic_dims.combined(symbolic_dims.multiply, map(dims.size, shape), 1))


@_rule("Gather")
def _gather(node: Node) -> Elements:
    data, where = read(node, 0), read(node, 1)
    if data.ndim == 1 and where.ndim == 0:
        return _scalar(data[int(where.item())])  # that of None would be a new axis
    return np.asarray(np.take(data, where.astype(np.int64), axis=node.attr("axis", 0)), object)


@_rule("Slice")
def _slice(node: Node) -> Elements:
    data, starts, ends = read(node, 0), _ints(node, 1), _ints(node, 2)
    axes = (_ints(node, 3) if is_given(node, 3) else []) or list(range(len(starts)))
    steps = (_ints(node, 4) if is_given(node, 4) else []) or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        # With a negative step, ONNX clamps a start before the front to 0; Python takes nothing.
        first = max(start, -data.shape[axis]) if step < 0 else start
        index: list[slice] = [slice(None)] * data.ndim
        index[axis] = slice(first, end, step)
        data = data[tuple(index)]
    return data


@_rule("Concat")
def _concat(node: Node) -> Elements:
    parts = [read(node, at) for at in range(len(node._inputs))]
    return np.concatenate(parts, axis=node.attr("axis"))


@_rule("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
def _to_output_shape(node: Node) -> Elements:
    """The elements keep their order."""
    return read(node, 0).reshape(_static_shape(node.output))


def _static_shape(output: Value) -> tuple[int, ...]:
    """Return the shape of an output: a rule is asked where all of them are static."""
    shape = output.static_shape
    assert shape is not None
    return shape


@_rule("Cast")
def _cast(node: Node) -> Elements:
    return _as_dtype(node, node.attr("to"))


@_rule("CastLike")
def _cast_like(node: Node) -> Elements:
    return _as_dtype(node, operand(node, 1).dtype)


def _as_dtype(node: Node, to: int | None) -> Elements:
    """Return the elements as flags or integers; what the dtype does not hold is dropped later."""
    data = _numbers_of_floats(operand(node, 0))
    if data is None:
        data = read(node, 0)
    if to == DataType.BOOL:
        return each(lambda element: bool(element) if isinstance(element, int) else None, data)
    return each(lambda element: int(element) if isinstance(element, int) else element, data)


def _numbers_of_floats(value: Value) -> Elements | None:
    """Return the integers of a constant of floats, None for each that is none; None for others."""
    tensor = value.tensor
    floats = (DataType.FLOAT, DataType.DOUBLE)
    if tensor is None or tensor.is_sparse or tensor.dtype not in floats:
        return None
    array = tensor.numpy()
    # What does not fit the integers of the result is dropped where elements are kept.
    return each(
        lambda x: int(x) if math.isfinite(x) and x == math.trunc(x) else None,
        array.astype(object),
    )


def _binary(function: Callable[[Any, Any], Element]) -> ValueRule:
    def compute(a: Element, b: Element) -> Element:
        return None if a is None or b is None else function(a, b)

    def rule(node: Node) -> Elements:
        return each(compute, read(node, 0), read(node, 1))

    return rule


@_rule("Mod")
def _remainder(node: Node) -> Elements | None:
    # With fmod the sign is that of the dividend.
    if node.attr("fmod"):
        return None
    return each(_modulo, read(node, 0), read(node, 1))


def _modulo(a: Element, b: Element) -> Element:
    if a is None or b is None:
        return None
    if isinstance(a, int) and isinstance(b, int) and b != 0:
        return a % b
    return 0 if symbolic_dims.divide(a, b) is not None else None


def _sign_test(accepts: Callable[[int], bool]) -> Callable[[Size, Size], Element]:
    def compare(a: Size, b: Size) -> Element:
        sign = symbolic_dims.sign_of(symbolic_dims.subtract(a, b))
        return None if sign is None else accepts(sign)

    return compare


def _at_least(a: Size, b: Size) -> Element:
    difference = symbolic_dims.subtract(a, b)
    if symbolic_dims.is_non_negative(difference):
        return True
    sign = symbolic_dims.sign_of(difference)
    return None if sign is None else False


def _smaller(a: Element, b: Element) -> Element:
    larger = _larger(a, b)
    return None if larger is None else (b if larger == a else a)


def _larger(a: Element, b: Element) -> Element:
    """Return the larger one of two elements; None if dims decide which one that is."""
    if a is None or b is None:
        return None
    for one, other in ((a, b), (b, a)):
        difference = symbolic_dims.subtract(one, other)
        if symbolic_dims.is_non_negative(difference):
            return one
    return None


def _extreme(pick: Callable[[Element, Element], Element]) -> ValueRule:
    """Return the rule of Min or Max."""

    def rule(node: Node) -> Elements:
        parts = [read(node, at) for at in range(len(node._inputs))]
        return reduce(lambda a, b: each(pick, a, b), parts)

    return rule


@_rule("Clip")
def _clip(node: Node) -> Elements:
    result = read(node, 0)
    for at, pick in ((1, _larger), (2, _smaller)):
        if is_given(node, at):
            result = each(pick, result, read(node, at))
    return result


@_rule("Relu")
def _relu(node: Node) -> Elements:
    return each(lambda x: _larger(x, 0), read(node, 0))


@_rule("Abs")
def _abs(node: Node) -> Elements:
    def absolute(x: Element) -> Element:
        return None if x is None else _larger(x, symbolic_dims.multiply(-1, x))

    return each(absolute, read(node, 0))


@_rule("Where")
def _where(node: Node) -> Elements:
    def choose(c: Element, a: Element, b: Element) -> Element:
        if c is None:
            return a if a == b else None
        return a if c else b

    return each(choose, *(read(node, at) for at in range(3)))


@_rule("Not")
def _not(node: Node) -> Elements:
    return each(lambda x: None if x is None else not x, read(node, 0))


@_rule("Neg")
def _negate(node: Node) -> Elements:
    return each(lambda x: None if x is None else symbolic_dims.multiply(-1, x), read(node, 0))


@_rule("ConstantOfShape")
def _constant_of_shape(node: Node) -> Elements:
    return np.full(_ints(node, 0), node.attr("value").numpy().ravel()[0].item(), object)


@_rule("Range")
def _range(node: Node) -> Elements:
    start, limit, delta = (_ints(node, at)[0] for at in range(3))
    return _array(list(range(start, limit, delta)))


def _reduce(combine: Callable[[Size, Size], Size], empty: int) -> ValueRule:
    """Return the rule of a reduction over all axes."""

    def rule(node: Node) -> Elements | None:
        data = read(node, 0)
        axes = _ints(node, 1) if is_given(node, 1) else []
        if node.attr("noop_with_empty_axes", 0) and not axes:
            return data
        if axes and len({axis % data.ndim for axis in axes}) < data.ndim:
            return None
        total = symbolic_dims.combined(combine, data.ravel().tolist(), empty)
        return _scalar(total).reshape([1] * data.ndim if node.attr("keepdims") else [])

    return rule


@_rule("Expand")
def _expand(node: Node) -> Elements:
    return np.broadcast_to(read(node, 0), _static_shape(node.output))


@_rule("Transpose")
def _transpose(node: Node) -> Elements:
    return np.transpose(read(node, 0), node.attr("perm", None))


@_rule("Split")
def _split(node: Node) -> tuple[Elements, ...] | None:
    outputs = [output for output in node._outputs if output is not None]
    if len(outputs) < len(node._outputs):
        return None
    axis = node.attr("axis")
    sizes = [_static_shape(output)[axis] for output in outputs]
    return tuple(np.split(read(node, 0), np.cumsum(sizes)[:-1], axis=axis))


def _logic(absorbing: bool) -> ValueRule:
    """Return the rule of And (False) or Or (True); one operand of that value decides alone."""

    def combine(a: Element, b: Element) -> Element:
        if absorbing in (a, b):
            return absorbing
        return None if a is None or b is None else not absorbing

    def rule(node: Node) -> Elements:
        return each(combine, read(node, 0), read(node, 1))

    return rule


_rule("Add")(_binary(symbolic_dims.add))
_rule("And")(_logic(absorbing=False))
_rule("Div")(_binary(symbolic_dims.divide))
_rule("Equal")(_binary(symbolic_dims.equal))
_rule("Greater")(_binary(_sign_test(lambda sign: sign > 0)))
_rule("GreaterOrEqual")(_binary(_at_least))
_rule("Less")(_binary(_sign_test(lambda sign: sign < 0)))
_rule("LessOrEqual")(_binary(_sign_test(lambda sign: sign <= 0)))
_rule("Max")(_extreme(_larger))
_rule("Min")(_extreme(_smaller))
_rule("Mul")(_binary(symbolic_dims.multiply))
_rule("Or")(_logic(absorbing=True))
_rule("ReduceProd")(_reduce(symbolic_dims.multiply, 1))
_rule("ReduceSum")(_reduce(symbolic_dims.add, 0))
_rule("Sub")(_binary(symbolic_dims.subtract))
