"""Max(Max(a, b), c)  =>  Max(a, b, c), of constants and equal operands one, and so for Min"""

import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, rest, rewrite

Array = np.ndarray[Any, Any]

_INTEGERS: Final = frozenset(
    {DataType.INT16, DataType.INT32, DataType.INT64, DataType.INT8, DataType.UINT16,
     DataType.UINT32, DataType.UINT64, DataType.UINT8}
)  # fmt: skip

_MOST_ELEMENTS: Final = 64
"""Larger constants are left alone: others may read them, and would keep them alive."""


@rewrite(op.Max(rest.operands) | op.Min(rest.operands), opt_level=1)
def fuse_consecutive_minmax(graph: Graph, operands: Sequence[Value], node: Node) -> Value | Skip:
    """Compare all operands by one node, each once, and fold the constants.

    Operands are compared from left to right, and their order decides between two zeros: if two
    operands may be 0, only the first may be expanded, which keeps the order. NaN wins in any order.
    """
    flat, reason = _spelled_out(operands, node)
    distinct = list(dict.fromkeys(flat))
    if _are_integers(flat) or _meet_no_zeros(distinct, node.op_type):
        flat = distinct
    else:
        flat, first = _spelled_out(operands[:1], node)
        flat += operands[1:]
        is_left = any(_is_same_kind(value, node) for value in operands[1:])
        reason = Skip("zeros of two signs would be reordered") if is_left else first
    merged = _merged(flat, node.op_type)
    if len(merged) == len(operands) and all(map(operator.is_, merged, operands)):
        return reason or Skip("no operands can be merged")
    return graph.op.like(node, *merged)


def _is_same_kind(value: Value, node: Node) -> bool:
    return value.producer is not None and value.producer.is_op(node.op_type)


def _spelled_out(operands: Sequence[Value], node: Node) -> tuple[list[Value], Skip | None]:
    """Return the operands with inner nodes expanded, and why an inner node stays."""
    flat: list[Value] = []
    reason = None
    for value in operands:
        inner = value.producer
        if inner is None or not inner.is_op(node.op_type):
            flat.append(value)
        elif not value.is_only_read_by(node):
            flat.append(value)
            reason = Skip("the inner result has other consumers")
        else:
            flat += inner.reads
    return flat, reason


def _are_integers(operands: Sequence[Value]) -> bool:
    return operands[0].dtype in _INTEGERS


def _meet_no_zeros(operands: Sequence[Value], op_type: str) -> bool:
    """Return whether at most one operand may be 0, or no zero is the result."""
    constants = [_constant(value) for value in operands]
    if sum(array is None or _may_be_zero(array) for array in constants) <= 1:
        return True
    sign = 1 if op_type == "Max" else -1
    return any(array is not None and (array * sign > 0).all() for array in constants)


def _constant(value: Value) -> Array | None:
    """Return the elements of a constant that are not NaN."""
    array = value.const
    return None if array is None or np.isnan(array).any() else array


def _may_be_zero(array: Array) -> bool:
    """Return whether a number is a float zero."""
    return array.dtype.kind not in "iu" and bool((array == 0).any())


def _merged(operands: Sequence[Value], op_type: str) -> list[Value | Array]:
    """Return the operands with the constants folded, unless that reorders zeros."""
    merged: list[Value | Array] = []
    at: int | None = None
    last = np.empty(0)
    for value in operands:
        constant = _constant(value)
        if constant is None or constant.size > _MOST_ELEMENTS:
            merged.append(value)
            continue
        both = None if at is None else _pair(last, constant, op_type)
        if at is None or both is None or (at < len(merged) - 1 and _may_be_zero(both)):
            at, last = len(merged), constant
            merged.append(value)
        elif not _is_same(both, last):
            merged[at] = value if _is_same(both, constant) else both
            last = both
    return merged


def _pair(one: Array, other: Array, op_type: str) -> Array | None:
    """Return the result for two constants, None if it is larger or depends on their order."""
    pick = np.maximum if op_type == "Max" else np.minimum
    try:
        both = np.asarray(pick(one, other))
    except ValueError:
        return None
    is_mixed = (one == 0) & (other == 0) & (np.signbit(one) != np.signbit(other))
    return None if both.size > max(one.size, other.size) or is_mixed.any() else both


def _is_same(one: Array, other: Array) -> bool:
    return one.shape == other.shape and one.tobytes() == other.tobytes()
