"""Data propagation: the elements of small integer tensors, as far as shapes determine them.

onnx infers types, not values. Exporters compute shapes by nodes (Shape, Gather, Concat, ...), and
with dynamic dims these are not constants; yet each element is an integer or a polynomial in the
dims, which determines most shapes.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import numpy as np

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.value import LARGEST, Elements, NotInferred
from tiered.graph.shape_inference.rules.data import OF_TYPES, each
from tiered.graph.shape_inference.rules.shape_rule import INAPPLICABLE, VALUES
from tiered.graph.shape_inference.symbolic_dims import Element, Poly

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value
    from tiered.graph.shape_inference.rules.shape_rule import ValueRule

_RANGES: Final[dict[int | None, tuple[int, int]]] = {
    DataType.INT64: (-(1 << 63), (1 << 63) - 1),
    DataType.INT32: (-(1 << 31), (1 << 31) - 1),
    DataType.BOOL: (0, 1),
}


def elements_of(value: Value) -> Elements | None:
    """Return the known elements of a small integer or boolean tensor."""
    elements = value._elements
    if isinstance(elements, NotInferred):
        _evaluate(value)
        elements = value._elements
        assert not isinstance(elements, NotInferred)
    return elements


def _evaluate(value: Value) -> None:
    # A stack, because chains of shape arithmetic may exceed Python's recursion limit.
    pending = [value]
    while pending:
        top = pending[-1]
        if isinstance(top._elements, NotInferred):
            node = top.producer
            rule = None if node is None else VALUES.find((node.domain, node.op_type))
            if node is None or rule is None or top._tensor is not None:
                top._elements = top.constant_elements()
            elif unknown := [] if node.op_type in OF_TYPES else _unknown_operands(node):
                pending += unknown
                continue
            else:
                _apply(rule, node)
        pending.pop()


def _unknown_operands(node: Node) -> list[Value]:
    return [
        value
        for value in node._inputs
        if value is not None and isinstance(value._elements, NotInferred)
    ]


def _apply(rule: ValueRule, node: Node) -> None:
    outputs = [output for output in node._outputs if output is not None]
    # The type first: its inference may infer the model, and elements that depend on these.
    is_small = not node.has_references and not any(map(_is_too_large, outputs))
    for output in outputs:
        output._elements = None
    if not is_small:
        return
    try:
        result = rule(node)
    except INAPPLICABLE:
        return
    if result is None:
        return
    results = (result,) if isinstance(result, np.ndarray) else result
    for value, elements in zip(node._outputs, results, strict=False):
        if value is None or elements is None or elements.size > LARGEST:
            continue
        dtype = value.dtype
        if dtype in _RANGES:
            value._elements = _held(elements, dtype)


def _is_too_large(value: Value) -> bool:
    shape = value.static_shape
    return shape is None or math.prod(shape) > LARGEST


def _held(elements: Elements, dtype: int | None) -> Elements:
    """Return the elements, None for each that the dtype may not hold: it would wrap at run time.

    Sizes and their products fit 64 bits; in 32 bits only a single dim is assumed to fit.
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
