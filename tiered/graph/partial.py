"""Partially known values: small integer tensors as far as shapes determine them.

onnx's inference gives types, not values. Exporters compute shapes by nodes (Shape, Gather, Concat,
...), and with dynamic dims these are no constants; yet each element is an integer or a polynomial
in the dims, and that is enough to answer most of what is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tiered.graph import symbols
from tiered.graph.forms import operands_of
from tiered.graph.symbols import Element, Poly, Size
from tiered.graph.types import DataType, TensorType
from tiered.graph.value import NOT_INFERRED, NotInferred

if TYPE_CHECKING:
    from tiered.graph.node import Node
    from tiered.graph.value import Value

Elements = np.ndarray[Any, np.dtype[Any]]
"""An object array of `Element`s, in the shape of the tensor."""

LARGEST: Final = 256
"""Tensors with more elements are not shapes, and are not looked into."""

ELEMENT_DTYPES: Final = frozenset({DataType.BOOL, DataType.INT32, DataType.INT64})
"""The dtypes whose elements are looked into."""

_RANGES: Final[dict[int | None, tuple[int, int]]] = {
    DataType.INT64: (-(1 << 63), (1 << 63) - 1),
    DataType.INT32: (-(1 << 31), (1 << 31) - 1),
    DataType.BOOL: (0, 1),
}


def elements_of(value: Value) -> Elements | None:
    """Return what is known of the elements of a small integer or boolean tensor."""
    if isinstance(value._elements, NotInferred):
        _evaluate(value)
    assert not isinstance(value._elements, NotInferred)
    return value._elements


def known_elements(value: Value) -> Elements | None:
    """Return the elements if each of them is known, as a number or as a polynomial."""
    elements = elements_of(value)
    if elements is None or any(element is None for element in elements.flat):
        return None
    return elements


def forget_elements(value: Value) -> None:
    """Forget the elements of a value whose type is known better now, and those computed from it."""
    _forget([value], vague=True)
    forget_elements_below(value)


def forget_elements_below(value: Value) -> None:
    """Forget the elements that were computed from a value of which more is known now."""
    for reader in value._users.values():
        _forget(reader._outputs)


def forget_guesses_below(value: Value) -> None:
    """Forget what was computed from a value while not all of its numbers were known."""
    elements = value._elements
    if not isinstance(elements, NotInferred) and not _are_numbers(elements):
        forget_elements_below(value)


def forget_elements_of(node: Node) -> None:
    """Forget the elements that a node and those below it gave: it reads something else now."""
    _forget(node._outputs)


def reconsider_elements_of(node: Node, before: Value | None, after: Value | None) -> None:
    """Forget those elements that may be known better as a node reads one value for another.

    What the node gives is still the same, so numbers stay: of them no more can be known.
    """
    if before is None or after is None or not _say_the_same(before, after):
        _forget(node._outputs, vague=True)


def _say_the_same(before: Value, after: Value) -> bool:
    one, other = before._elements, after._elements
    if isinstance(one, NotInferred):
        return before._type == after._type
    if _are_numbers(one):
        return True
    if before._type != after._type:
        return False
    if one is None or isinstance(other, NotInferred) or other is None:
        return one is None and other is None
    return one.shape == other.shape and one.ravel().tolist() == other.ravel().tolist()


def _forget(outputs: Iterable[Value | None], *, vague: bool = False) -> None:
    pending = [value for value in outputs if value is not None]
    while pending:
        value = pending.pop()
        elements = value._elements
        if isinstance(elements, NotInferred) or (vague and _are_numbers(elements)):
            continue
        value._elements = NOT_INFERRED
        if elements is not None or _may_have_elements(value):
            for reader in value._users.values():
                pending += [output for output in reader._outputs if output is not None]


def _are_numbers(elements: Elements | None) -> bool:
    return elements is not None and all(
        isinstance(element, int) for element in elements.ravel().tolist()
    )


def _may_have_elements(value: Value) -> bool:
    kind = value._type
    return not isinstance(kind, TensorType) or kind.dtype in ELEMENT_DTYPES


def _evaluate(value: Value) -> None:
    # A stack, because chains of shape arithmetic may be longer than Python's own one is deep.
    pending = [value]
    while pending:
        top = pending[-1]
        if not isinstance(top._elements, NotInferred):
            pending.pop()
            continue
        node = top.producer
        if node is None or top._tensor is not None or node.op_type not in _RULES or node.domain:
            top._elements = _constant(top)
            continue
        unknown = [
            read
            for read in node._inputs
            if read is not None and isinstance(read._elements, NotInferred)
        ]
        if unknown and node.op_type not in _OF_TYPES:
            pending += unknown
            continue
        _apply(node)


def _constant(value: Value) -> Elements | None:
    tensor = value.tensor
    if tensor is None or tensor.dtype not in _RANGES or tensor.is_sparse or tensor.size > LARGEST:
        return None
    array = tensor.numpy()
    return array.astype(object)


def _apply(node: Node) -> None:
    is_small = not node.has_references
    for output in node._outputs:
        if output is not None:
            output._elements = None
            is_small = is_small and not _is_too_large(output)
    if not is_small:
        return
    try:
        result = _RULES[node.op_type](node)
    except (IndexError, ValueError, TypeError, ZeroDivisionError):
        # The node would fail at run time too; nothing is known of what it gives.
        return
    results = result if isinstance(result, tuple) else (result,)
    for output, elements in zip(node._outputs, results, strict=False):
        if output is None or elements is None or elements.size > LARGEST:
            continue
        limits = _RANGES.get(output.dtype)
        if limits is not None:
            output._elements = _clamped(elements, limits)


def _is_too_large(value: Value) -> bool:
    shape = value.static_shape
    return shape is None or math.prod(shape) > LARGEST


def _clamped(elements: Elements, limits: tuple[int, int]) -> Elements:
    """Forget elements that the dtype cannot hold: they wrap at run time."""
    low, high = limits
    for element in elements.ravel().tolist():
        if isinstance(element, int) and not low <= element <= high:
            break
    else:
        return elements
    return _each(
        lambda element: None
        if isinstance(element, int) and not low <= element <= high
        else element,
        elements,
    )


def _each(function: Callable[..., Element], *operands: Elements) -> Elements:
    """Apply a function element by element, with broadcasting."""
    first = operands[0]
    if any(operand.shape != first.shape for operand in operands):
        operands = np.broadcast_arrays(*operands)
    result = np.empty(operands[0].shape, object)
    flat = [operand.ravel().tolist() for operand in operands]
    result.reshape(-1)[:] = list(map(function, *flat))
    return result


def _read(node: Node, index: int) -> Elements | None:
    """Return the elements of an operand in the newest form; unknown ones as None, where sized."""
    operands = operands_of(node)
    value = operands[index] if index < len(operands) else None
    if value is None:
        return None
    elements = elements_of(value)
    if elements is not None:
        return elements
    shape = value.static_shape
    if shape is None or math.prod(shape) > LARGEST:
        raise ValueError("nothing is known of an operand")
    return np.full(shape, None, object)


def _ints(node: Node, index: int) -> list[int] | None:
    """Return an operand whose every element is a number; None if it is absent."""
    elements = _read(node, index)
    if elements is None:
        return None
    if any(not isinstance(element, int) for element in elements.flat):
        raise ValueError("an operand is not known as numbers")
    return [int(element) for element in elements.flat]


# --- rules ----------------------------------------------------------------------------------------


def _array(elements: Sequence[Element]) -> Elements:
    result = np.empty(len(elements), object)
    result[:] = elements
    return result


def _scalar(element: Element) -> Elements:
    result = np.empty((), object)
    result[()] = element
    return result


def _shape(node: Node) -> Elements | None:
    data = node._inputs[0]
    shape = None if data is None else data.shape
    if shape is None:
        return None
    dims = node.owner.model.dims
    start, end = node.attr("start", 0), node.attr("end", None)
    return _array([dims.size(dim) for dim in shape[start:end]])


def _size(node: Node) -> Elements | None:
    data = node._inputs[0]
    shape = None if data is None else data.shape
    if shape is None:
        return None
    dims, total = node.owner.model.dims, 1
    product: Size | None = total
    for dim in shape:
        size = dims.size(dim)
        product = None if product is None or size is None else symbols.multiply(product, size)
    return _scalar(product)


def _gather(node: Node) -> Elements:
    data, indices = _read(node, 0), node._inputs[1]
    where = None if indices is None else elements_of(indices)
    if data is None or where is None or any(not isinstance(at, int) for at in where.flat):
        raise ValueError("the indices are not known")
    if data.ndim == 1 and where.ndim == 0:
        return _scalar(data[where.item()])
    return np.asarray(np.take(data, where.astype(np.int64), axis=node.attr("axis", 0)), object)


def _slice(node: Node) -> Elements:
    data = _read(node, 0)
    assert data is not None
    starts, ends = _ints(node, 1), _ints(node, 2)
    assert starts is not None
    assert ends is not None
    axes = _ints(node, 3) or list(range(len(starts)))
    steps = _ints(node, 4) or [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if step < 0 and end < -data.shape[axis]:
            chosen = slice(start, None, step)
        else:
            chosen = slice(start, end, step)
        index: list[slice] = [slice(None)] * data.ndim
        index[axis] = chosen
        data = data[tuple(index)]
    return data


def _concat(node: Node) -> Elements:
    parts = [part for at in range(len(node._inputs)) if (part := _read(node, at)) is not None]
    return np.concatenate(parts, axis=node.attr("axis"))


def _to_output_shape(node: Node) -> Elements | None:
    """Squeeze, Unsqueeze, Reshape, Flatten, Identity: the elements stay in their order."""
    data, output = _read(node, 0), node._outputs[0]
    shape = None if output is None else output.static_shape
    return None if data is None or shape is None else data.reshape(shape)


def _cast(node: Node) -> Elements | None:
    data, to = _read(node, 0), node.attr("to")
    assert data is not None
    source = node._inputs[0].dtype if node._inputs[0] is not None else None
    if to == DataType.BOOL:
        return _each(lambda element: bool(element) if isinstance(element, int) else None, data)
    if to in (DataType.INT64, source):
        return _each(lambda element: int(element) if isinstance(element, int) else element, data)
    # A polynomial may be too large for a narrower dtype.
    return _each(lambda element: int(element) if isinstance(element, int) else None, data)


def _binary(
    function: Callable[[Any, Any], Element],
) -> Callable[[Node], Elements | None]:
    def rule(node: Node) -> Elements | None:
        a, b = _read(node, 0), _read(node, 1)
        if a is None or b is None:
            return None
        return _each(lambda x, y: None if x is None or y is None else function(x, y), a, b)

    return rule


def _divide(a: Size, b: Size) -> Element:
    return symbols.divide(a, b)


def _remainder(node: Node) -> Elements | None:
    # With fmod the sign follows the dividend.
    return None if node.attr("fmod") else _binary(_modulo)(node)


def _modulo(a: Size, b: Size) -> Element:
    if isinstance(a, int) and isinstance(b, int) and b != 0:
        return a % b
    return 0 if symbols.divide(a, b) is not None else None


def _sign_test(accepts: Callable[[int], bool]) -> Callable[[Size, Size], Element]:
    def compare(a: Size, b: Size) -> Element:
        sign = symbols.sign_of(symbols.subtract(a, b))
        return None if sign is None else accepts(sign)

    return compare


def _or_equal(accepts: Callable[[int], bool]) -> Callable[[Size, Size], Element]:
    strict = _sign_test(accepts)

    def compare(a: Size, b: Size) -> Element:
        difference = symbols.subtract(a, b)
        if isinstance(difference, Poly) and difference.is_non_negative and accepts(1):
            return True
        return strict(a, b)

    return compare


def _extreme(sign: int) -> Callable[[Node], Elements | None]:
    """Min (-1) and Max (1) of any number of operands."""

    def pick(a: Element, b: Element) -> Element:
        if a is None or b is None:
            return None
        if a == b:
            return a
        difference = symbols.sign_of(symbols.subtract(a, b))
        return None if difference is None else (a if difference == sign else b)

    def rule(node: Node) -> Elements | None:
        parts = [part for at in range(len(node._inputs)) if (part := _read(node, at)) is not None]
        result = parts[0]
        for part in parts[1:]:
            result = _each(pick, result, part)
        return result

    return rule


def _where(node: Node) -> Elements | None:
    condition, x, y = (_read(node, at) for at in range(3))
    if condition is None or x is None or y is None:
        return None

    def choose(c: Element, a: Element, b: Element) -> Element:
        if c is None:
            return a if a is not None and a == b else None
        return a if c else b

    return _each(choose, condition, x, y)


def _not(node: Node) -> Elements | None:
    data = _read(node, 0)
    return None if data is None else _each(lambda x: None if x is None else not x, data)


def _negate(node: Node) -> Elements | None:
    data = _read(node, 0)
    if data is None:
        return None
    return _each(lambda x: None if x is None else symbols.multiply(-1, x), data)


def _constant_of_shape(node: Node) -> Elements | None:
    sizes, value = _ints(node, 0), node.attr("value", None)
    if sizes is None or value is None or value.dtype not in _RANGES:
        return None
    return np.full(sizes, value.numpy().ravel()[0].item(), object)


def _range(node: Node) -> Elements | None:
    bounds = [_ints(node, at) for at in range(3)]
    if any(bound is None for bound in bounds):
        return None
    start, limit, delta = (bound[0] for bound in bounds if bound)
    values = range(start, limit, delta)
    return None if len(values) > LARGEST else _array(list(values))


def _reduce(combine: Callable[[Size, Size], Size], empty: int) -> Callable[[Node], Elements | None]:
    """ReduceSum and ReduceProd over all axes."""

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


def _expand(node: Node) -> Elements | None:
    data, output = _read(node, 0), node._outputs[0]
    shape = None if output is None else output.static_shape
    return None if data is None or shape is None else np.broadcast_to(data, shape)


def _transpose(node: Node) -> Elements | None:
    data = _read(node, 0)
    return None if data is None else np.transpose(data, node.attr("perm", None))


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


def _logic(absorbing: bool) -> Callable[[Any, Any], Element]:
    def combine(a: bool, b: bool) -> Element:
        return absorbing if absorbing in (a, b) else not absorbing

    return combine


_RULES: dict[str, Callable[[Node], Elements | tuple[Elements, ...] | None]] = {
    "Add": _binary(symbols.add),
    "And": _binary(_logic(absorbing=False)),
    "Cast": _cast,
    "Concat": _concat,
    "ConstantOfShape": _constant_of_shape,
    "Div": _binary(_divide),
    "Equal": _binary(symbols.equal),
    "Expand": _expand,
    "Flatten": _to_output_shape,
    "Gather": _gather,
    "Greater": _binary(_sign_test(lambda sign: sign > 0)),
    "GreaterOrEqual": _binary(_or_equal(lambda sign: sign >= 0)),
    "Identity": _to_output_shape,
    "Less": _binary(_sign_test(lambda sign: sign < 0)),
    "LessOrEqual": _binary(_sign_test(lambda sign: sign <= 0)),
    "Max": _extreme(1),
    "Min": _extreme(-1),
    "Mod": _remainder,
    "Mul": _binary(symbols.multiply),
    "Neg": _negate,
    "Not": _not,
    "Or": _binary(_logic(absorbing=True)),
    "Range": _range,
    "ReduceProd": _reduce(symbols.multiply, 1),
    "ReduceSum": _reduce(symbols.add, 0),
    "Reshape": _to_output_shape,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Split": _split,
    "Squeeze": _to_output_shape,
    "Sub": _binary(symbols.subtract),
    "Transpose": _transpose,
    "Unsqueeze": _to_output_shape,
    "Where": _where,
}

_OF_TYPES: Final = frozenset({"Shape", "Size"})
"""Operators that read types alone: the elements of their operands do not matter."""
