"""Partially known values: small integer tensors as far as shapes determine them.

onnx's inference gives types, not values. Exporters compute shapes by nodes (Shape, Gather, Concat,
...), and with dynamic dims these are no constants; yet each element is an integer or a polynomial
in the dims, and that is enough to answer most of what is asked.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.value import LARGEST, Elements, NotInferred
from tiered.graph.shape_inference.rules.data import OF_TYPES, RULES, each
from tiered.graph.shape_inference.symbolic_dims import Element, Poly

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

_RANGES: Final[dict[int | None, tuple[int, int]]] = {
    DataType.INT64: (-(1 << 63), (1 << 63) - 1),
    DataType.INT32: (-(1 << 31), (1 << 31) - 1),
    DataType.BOOL: (0, 1),
}


def elements_of(value: Value) -> Elements | None:
    """Return what is known of the elements of a small integer or boolean tensor."""
    elements = value._elements
    if isinstance(elements, NotInferred):
        _evaluate(value)
        elements = value._elements
        assert not isinstance(elements, NotInferred)
    return elements


def _evaluate(value: Value) -> None:
    # A stack, because chains of shape arithmetic may be longer than Python's own one is deep.
    pending = [value]
    while pending:
        top = pending[-1]
        if not isinstance(top._elements, NotInferred):
            pending.pop()
            continue
        node = top.producer
        if node is None or top._tensor is not None or node.op_type not in RULES or node.domain:
            top._elements = top.constant_elements()
            continue
        unknown = [
            read
            for read in node._inputs
            if read is not None and isinstance(read._elements, NotInferred)
        ]
        if unknown and node.op_type not in OF_TYPES:
            pending += unknown
            continue
        _apply(node)


def _apply(node: Node) -> None:
    is_small = not node.has_references
    for output in node._outputs:
        if output is not None:
            output._elements = None
            is_small = is_small and not _is_too_large(output)
    if not is_small:
        return
    try:
        result = RULES[node.op_type](node)
    except (IndexError, ValueError, TypeError, ZeroDivisionError):
        # The node would fail at run time too; nothing is known of what it gives.
        return
    results = result if isinstance(result, tuple) else (result,)
    for output, elements in zip(node._outputs, results, strict=False):
        if output is None or elements is None or elements.size > LARGEST:
            continue
        if output.dtype in _RANGES:
            output._elements = _held(elements, output.dtype)


def _is_too_large(value: Value) -> bool:
    shape = value.static_shape
    return shape is None or math.prod(shape) > LARGEST


def _held(elements: Elements, dtype: int | None) -> Elements:
    """Forget elements that the dtype cannot hold, or may not: they wrap at run time.

    Sizes fit 64 bits, and what is computed of them; of 32 bits that is said of a single dim only.
    """
    low, high = _RANGES[dtype]
    is_wide = dtype == DataType.INT64

    def is_held(element: Element) -> bool:
        if isinstance(element, Poly):
            return is_wide or element.symbol is not None
        return element is None or low <= element <= high

    if all(map(is_held, elements.ravel().tolist())):
        return elements
    return each(lambda element: element if is_held(element) else None, elements)
