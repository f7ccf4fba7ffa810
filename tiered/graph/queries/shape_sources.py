"""The first value with the shape of another one, and the value that an operand is the shape of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tiered.graph.queries.op_traits import NORMALIZATIONS, SOFTMAXES, UNARY

if TYPE_CHECKING:
    from tiered.graph.core.node import Node
    from tiered.graph.core.value import Value

KEEPS_SHAPE: Final = (
    (frozenset(UNARY) - {"Identity"})  # passes remove it
    | NORMALIZATIONS
    | {*SOFTMAXES, "DequantizeLinear", "QuantizeLinear"}
    | {"CumSum", "LRN", "PRelu", "Trilu"}
    | {"ScatterElements", "ScatterND"}
)
"""Operators with a first output that always has the shape of the first input."""


def shape_source(value: Value) -> Value:
    """Return the first value of the chain of operators that keep the shape."""
    while True:
        producer = value.producer
        if producer is None or not _keeps_shape(producer):
            return value
        before = producer.input(0)
        if value.index or before is None:
            return value
        value = before


def _keeps_shape(node: Node) -> bool:
    """Return whether the first output of a node always has the shape of its first input."""
    if node.domain == "com.microsoft":
        return node.op_type in ("DequantizeLinear", "QuantizeLinear")
    return not node.domain and node.op_type in KEEPS_SHAPE


def is_shape_of(shape: Value, x: Value) -> bool:
    """Return whether an operand is the whole shape of x, or of a value of the same shape."""
    node = shape.producer
    if node is None or not node.is_op("Shape") or node.settings or node.has_references:
        return False
    read = node.input(0)
    return read is not None and shape_source(read) is shape_source(x)
