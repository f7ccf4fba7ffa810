"""Data propagation: how the operators of shape arithmetic compute partially known elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.value import ELEMENT_DTYPES, LARGEST, Elements
from tiered.graph.opset.newest_form import operands_of
from tiered.graph.shape_inference import symbolic_dims
from tiered.graph.shape_inference.rules.shape_rule import AnyValueRule, ValueRule, shape_rule
from tiered.graph.shape_inference.symbolic_dims import Element, Poly, Size

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


def _read(node: Node, index: int) -> Elements | None:
    """Return the elements of an operand of the newest opset form; None if it is absent.

    Raises:
        ValueError: the operand is unknown, or too large.
    """
    operands = operands_of(node)
    value = operands[index] if index < len(operands) else None
    if value is None:
        return None
    elements = value.elements
    if elements is not None:
        return elements
    shape = value.static_shape
    if shape is None or math.prod(shape) > LARGEST:
        raise ValueError("an operand is unknown")
    return np.full(shape, None, object)


def _ints(node: Node, index: int) -> list[int] | None:
    """Return the elements of an operand as integers; None if it is absent.

    Raises:
        ValueError: an element is not a known integer.
    """
    elements = _read(node, index)
    if elements is None:
        return None
    if any(not isinstance(element, int) for element in elements.flat):
        raise ValueError("an element of an operand is not a known integer")
    return [int(element) for element in elements.flat]


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
    data = node._inputs[0]
    shape = None if data is None else data.shape
    if shape is None:
        return None
    dims = node.owner.model.dims
    start, end = node.attr("start", 0), node.attr("end", None)
    return _array([dims.size(dim) for dim in shape[start:end]])


@_rule("Size")
def _size(node: Node) -> Elements | None:
    data = node._inputs[0]
    shape = None if data is None else data.shape
    if shape is None:
        return None
    dims, total = node.owner.model.dims, 1
    product: Size | None = total
    for dim in shape:
        size = dims.size(dim)
        product = None if product is None or size is None else symbolic_dims.multiply(product, size)
    return _scalar(product)


@_rule("Gather")
def _gather(node: Node) -> Elements:
    data, indices = _read(node, 0), node._inputs[1]
    where = None if indices is None else indices.elements
    if data is None or where is None or any(not isinstance(at, int) for at in where.flat):
        raise ValueError("the indices are unknown")
    if data.ndim == 1 and where.ndim == 0:
        return _scalar(data[where.item()])
    return np.asarray(np.take(data, where.astype(np.int64), axis=node.attr("axis", 0)), object)


@_rule("Slice")
def _slice(node: Node) -> Elements:
    data = _read(node, 0)
    assert data is not None
    starts, ends = _ints(node, 1), _ints(node, 2)
    assert starts is not None
    assert ends is not None
    axes = _ints(node, 3) or list(range(len(starts)))
    steps = _ints(node, 4) or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        size = data.shape[axis]
        # With a negative step, ONNX clamps a start before the front to 0; Python takes nothing.
        first = max(start, -size) if step < 0 else start
        last = None if step < 0 and end < -size else end
        index: list[slice] = [slice(None)] * data.ndim
        index[axis] = slice(first, last, step)
        data = data[tuple(index)]
    return data


@_rule("Concat")
def _concat(node: Node) -> Elements:
    parts = [part for at in range(len(node._inputs)) if (part := _read(node, at)) is not None]
    return np.concatenate(parts, axis=node.attr("axis"))


@_rule("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze")
def _to_output_shape(node: Node) -> Elements | None:
    """The elements keep their order."""
    data, output = _read(node, 0), node._outputs[0]
    shape = None if output is None else output.static_shape
    return None if data is None or shape is None else data.reshape(shape)


@_rule("Cast")
def _cast(node: Node) -> Elements | None:
    return _as_dtype(node, node.attr("to"))


@_rule("CastLike")
def _cast_like(node: Node) -> Elements | None:
    like = node._inputs[1]
    return None if like is None or like.dtype is None else _as_dtype(node, like.dtype)


def _as_dtype(node: Node, to: int) -> Elements | None:
    value = node._inputs[0]
    assert value is not None
    data, source = _numbers_of_floats(value), value.dtype
    if data is None:
        data = _read(node, 0)
    assert data is not None
    if to == DataType.BOOL:
        return each(lambda element: bool(element) if isinstance(element, int) else None, data)
    if to in (DataType.INT64, source):
        return each(lambda element: int(element) if isinstance(element, int) else element, data)
    return each(_as_int32 if to == DataType.INT32 else _as_number, data)


def _numbers_of_floats(value: Value) -> Elements | None:
    """Return the integers of a constant of floats, None for each that is none; None for others."""
    tensor = value.tensor
    if tensor is None or tensor.is_sparse or tensor.size > LARGEST:
        return None
    if tensor.dtype not in (DataType.FLOAT, DataType.DOUBLE):
        return None
    array = tensor.numpy()
    # What does not fit the integers of the result is dropped where elements are kept.
    return each(
        lambda x: int(x) if math.isfinite(x) and x == math.trunc(x) else None,
        array.astype(object),
    )


def _as_number(element: Element) -> Element:
    return int(element) if isinstance(element, int) else None


def _as_int32(element: Element) -> Element:
    """Return an element that does not change as an int32, else None.

    A single dim is assumed to fit: exporters cast dims to int32 wherever they compute shapes, and
    their models fail for an axis of 2**31 elements. A product of dims may not fit.
    """
    is_dim = isinstance(element, Poly) and element.symbol is not None
    return element if is_dim else _as_number(element)


def _binary(function: Callable[[Any, Any], Element]) -> ValueRule:
    def rule(node: Node) -> Elements | None:
        a, b = _read(node, 0), _read(node, 1)
        if a is None or b is None:
            return None
        return each(lambda x, y: None if x is None or y is None else function(x, y), a, b)

    return rule


@_rule("Mod")
def _remainder(node: Node) -> Elements | None:
    # With fmod the sign is that of the dividend.
    if node.attr("fmod"):
        return None
    a, b = _read(node, 0), _read(node, 1)
    return None if a is None or b is None else each(_modulo, a, b)


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


def _or_equal(accepts: Callable[[int], bool]) -> Callable[[Size, Size], Element]:
    strict = _sign_test(accepts)

    def compare(a: Size, b: Size) -> Element:
        difference = symbolic_dims.subtract(a, b)
        if isinstance(difference, Poly) and difference.is_non_negative and accepts(1):
            return True
        return strict(a, b)

    return compare


def _smaller(a: Element, b: Element) -> Element:
    larger = _larger(a, b)
    return None if larger is None else (b if larger == a else a)


def _larger(a: Element, b: Element) -> Element:
    """Return the larger one of two elements; None if dims decide which one that is."""
    if a is None or b is None:
        return None
    for one, other in ((a, b), (b, a)):
        difference = symbolic_dims.subtract(one, other)
        if difference >= 0 if isinstance(difference, int) else difference.is_non_negative:
            return one
    return None


def _extreme(pick: Callable[[Element, Element], Element]) -> ValueRule:
    """Return the rule of Min or Max."""

    def rule(node: Node) -> Elements | None:
        parts = [part for at in range(len(node._inputs)) if (part := _read(node, at)) is not None]
        result = parts[0]
        for part in parts[1:]:
            result = each(pick, result, part)
        return result

    return rule


@_rule("Clip")
def _clip(node: Node) -> Elements | None:
    result = _read(node, 0)
    for at, pick in ((1, _larger), (2, _smaller)):
        if node.input(at) is not None:
            bound = _read(node, at)
            result = None if result is None or bound is None else each(pick, result, bound)
    return result


@_rule("Relu")
def _relu(node: Node) -> Elements | None:
    data = _read(node, 0)
    return None if data is None else each(lambda x: _larger(x, 0), data)


@_rule("Abs")
def _abs(node: Node) -> Elements | None:
    data = _read(node, 0)
    if data is None:
        return None
    return each(lambda x: None if x is None else _larger(x, symbolic_dims.multiply(-1, x)), data)


@_rule("Where")
def _where(node: Node) -> Elements | None:
    condition, x, y = (_read(node, at) for at in range(3))
    if condition is None or x is None or y is None:
        return None

    def choose(c: Element, a: Element, b: Element) -> Element:
        if c is None:
            return a if a is not None and a == b else None
        return a if c else b

    return each(choose, condition, x, y)


@_rule("Not")
def _not(node: Node) -> Elements | None:
    data = _read(node, 0)
    return None if data is None else each(lambda x: None if x is None else not x, data)


@_rule("Neg")
def _negate(node: Node) -> Elements | None:
    data = _read(node, 0)
    if data is None:
        return None
    return each(lambda x: None if x is None else symbolic_dims.multiply(-1, x), data)


@_rule("ConstantOfShape")
def _constant_of_shape(node: Node) -> Elements | None:
    sizes, value = _ints(node, 0), node.attr("value", None)
    if sizes is None or value is None or value.dtype not in ELEMENT_DTYPES:
        return None
    return np.full(sizes, value.numpy().ravel()[0].item(), object)


@_rule("Range")
def _range(node: Node) -> Elements | None:
    bounds = [_ints(node, at) for at in range(3)]
    if any(bound is None for bound in bounds):
        return None
    start, limit, delta = (bound[0] for bound in bounds if bound)
    values = range(start, limit, delta)
    return None if len(values) > LARGEST else _array(list(values))


def _reduce(combine: Callable[[Size, Size], Size], empty: int) -> ValueRule:
    """Return the rule of a reduction over all axes."""

    def rule(node: Node) -> Elements | None:
        data, axes = _read(node, 0), _ints(node, 1)
        if data is None:
            return None
        if node.attr("noop_with_empty_axes", 0) and not axes:
            return data
        if axes and len({axis % data.ndim for axis in axes}) < data.ndim:
            return None
        elements: list[Element] = data.ravel().tolist()
        total: Element = empty
        for element in elements:
            total = None if total is None or element is None else combine(total, element)
        return _scalar(total).reshape([1] * data.ndim if node.attr("keepdims", 1) else [])

    return rule


@_rule("Expand")
def _expand(node: Node) -> Elements | None:
    data, output = _read(node, 0), node._outputs[0]
    shape = None if output is None else output.static_shape
    return None if data is None or shape is None else np.broadcast_to(data, shape)


@_rule("Transpose")
def _transpose(node: Node) -> Elements | None:
    data = _read(node, 0)
    return None if data is None else np.transpose(data, node.attr("perm", None))


@_rule("Split")
def _split(node: Node) -> tuple[Elements, ...] | None:
    data = _read(node, 0)
    if data is None:
        return None
    axis, sizes = node.attr("axis", 0), []
    for output in node._outputs:
        shape = None if output is None else output.static_shape
        if shape is None:
            return None
        sizes.append(shape[axis])
    return tuple(np.split(data, np.cumsum(sizes)[:-1], axis=axis))


def _logic(absorbing: bool) -> ValueRule:
    """Return the rule of And (False) or Or (True); one operand of that value decides alone."""

    def combine(a: Element, b: Element) -> Element:
        if absorbing in (a, b):
            return absorbing
        return None if a is None or b is None else not absorbing

    def rule(node: Node) -> Elements | None:
        a, b = _read(node, 0), _read(node, 1)
        return None if a is None or b is None else each(combine, a, b)

    return rule


_rule("Add")(_binary(symbolic_dims.add))
_rule("And")(_logic(absorbing=False))
_rule("Div")(_binary(symbolic_dims.divide))
_rule("Equal")(_binary(symbolic_dims.equal))
_rule("Greater")(_binary(_sign_test(lambda sign: sign > 0)))
_rule("GreaterOrEqual")(_binary(_or_equal(lambda sign: sign >= 0)))
_rule("Less")(_binary(_sign_test(lambda sign: sign < 0)))
_rule("LessOrEqual")(_binary(_sign_test(lambda sign: sign <= 0)))
_rule("Max")(_extreme(_larger))
_rule("Min")(_extreme(_smaller))
_rule("Mul")(_binary(symbolic_dims.multiply))
_rule("Or")(_logic(absorbing=True))
_rule("ReduceProd")(_reduce(symbolic_dims.multiply, 1))
_rule("ReduceSum")(_reduce(symbolic_dims.add, 0))
_rule("Sub")(_binary(symbolic_dims.subtract))
