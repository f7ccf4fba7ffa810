"""Products: how they are written by swapped operands, by flags, and by an equation.

Their axes follow from axis maps. That a constant factor is transposed at no cost, that B' A' is the
transpose of A B, and that flags transpose each operand of a Gemm alone, is said here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tiered.analysis.axes.axis_map import Axes, map_of, whole
from tiered.analysis.layout.axis_propagation import (
    LAYOUTS,
    AxisPropagation,
    KernelAccess,
    Labels,
    Permuted,
)
from tiered.analysis.layout.derived import derived, named
from tiered.graph import Node, Value
from tiered.rewriter import Skip

MAX_DISTANCE = 2
"""Swapped operands pay off near the removed Transpose only; models have many products."""


@LAYOUTS.rule("MatMul")
def matmul(node: Node) -> AxisPropagation | Skip:
    """MatMul: batch dims in any order; the transpose of A B is B' A'.

    If one operand is constant, the summed axis and the result's axis at its position have one
    label: a permutation of the operand is one of the result.
    """
    axes = map_of(node)
    left, right = (own or () for own in axes.inputs)
    if len(left) == 1 and len(right) == 1:
        return Skip("both operands are vectors")
    out = axes.outputs[0]
    if 1 in (len(left), len(right)):
        return _matmul_of_vector(left, right, out)
    return _matmul(left, right, out, (_is_constant(node, 0), _is_constant(node, 1)))


@lru_cache
def _matmul_of_vector(left: Labels, right: Labels, out: Labels) -> AxisPropagation:
    """Return the propagation of a product of matrices and a vector; the vector is fixed.

    `MatMul(X, v)` sums over the last axis of X, `MatMul(v, X)` over the second to last one; the
    other axes are those of the result, in any order.
    """
    matrices, (summed,) = (0, right) if len(right) == 1 else (1, left)
    return AxisPropagation(
        (left, None) if len(right) == 1 else (None, right),
        (out,),
        partial(_write_matmul_of_vector, matrices, summed),
        allows=lambda order: summed in order[-2:],
        max_distance=MAX_DISTANCE,
    )


def _write_matmul_of_vector(matrices: int, summed: int, op: Permuted) -> Sequence[Value]:
    pair = [op.operand(matrices), op.operands[1 - matrices]]
    if op.order[-1] != summed:
        pair.reverse()
    return op.emit(dict(enumerate(pair)))


def _is_constant(node: Node, slot: int) -> bool:
    return node.given(slot).tensor is not None


@lru_cache
def _matmul(
    left: Labels, right: Labels, out: Labels, constant: tuple[bool, bool]
) -> AxisPropagation:
    *batch, row, column = out
    inner, is_flat = left[-1], (len(right) == 2, len(left) == 2)
    if constant[0]:
        row = inner
    elif constant[1]:
        column = inner
    # A constant has no labels: it is permuted as the product needs it.
    return AxisPropagation(
        (None if row == inner else left, None if column == inner else right),
        ((*batch, row, column),),
        partial(_write_matmul, row, column),
        allows=partial(_allows, frozenset(batch), (row, inner, column)),
        max_distance=MAX_DISTANCE,
        kernel=KernelAccess("product", (row, column), is_flat),
    )


def _allows(batch: frozenset[int], matrices: Labels, order: Labels) -> bool:
    if set(order[: len(batch)]) != batch:
        return False
    rest = order[len(batch) :]
    return rest in (tuple(dict.fromkeys(matrices)), tuple(dict.fromkeys(reversed(matrices))))


def _write_matmul(row: int, column: int, op: Permuted) -> Sequence[Value]:
    out = op.propagation.result
    swapped = op.places[column] < op.places[row]
    batch = op.arranged(out[:-2])
    pair = [
        _constant(op, slot, out, batch, swapped)
        if labels is None
        else _spread(op, op.operand(slot), labels[:-2], batch)
        for slot, labels in enumerate(op.propagation.inputs[:2])
    ]
    if swapped:
        pair.reverse()
    return op.emit(dict(enumerate(pair)))


def _spread(op: Permuted, value: Value, own: Labels, batch: Labels) -> Value:
    """Return an operand whose batch dims broadcast to those of the product."""
    start = min((batch.index(label) for label in own), default=len(batch))
    missing = [at for at, label in enumerate(batch[start:]) if label not in own]
    return op.unsqueezed(value, missing)


def _constant(op: Permuted, slot: int, out: Labels, batch: Labels, swapped: bool) -> Value:
    """Return a constant operand with its batch dims in the new order, transposed if asked for."""
    value = op.operands[slot]
    assert value is not None
    array = value.const
    assert array is not None
    rank = array.ndim
    own = out[len(out) - rank : -2]
    arranged = tuple(label for label in batch if label in own)
    matrix = [rank - 1, rank - 2] if swapped else [rank - 2, rank - 1]
    perm = [*(own.index(label) for label in arranged), *matrix]
    if perm != list(range(rank)):
        value = op.graph.constant(np.ascontiguousarray(array.transpose(perm)), value.name)
    return _spread(op, value, arranged, batch)


# --- Gemm -----------------------------------------------------------------------------------------


@LAYOUTS.rule("Gemm")
def gemm(node: Node) -> AxisPropagation | Skip:
    """Gemm: the orders of each operand and of the result are independent.

    A flag transposes an operand; swapping the operands transposes the result.
    """
    axes = map_of(node)
    is_square = node.inputs[0] is node.inputs[1]
    return _gemm(is_square, axes.inputs[2:], axes.outputs[0])


@lru_cache
def _gemm(is_square: bool, bias: tuple[Axes | None, ...], out: Labels) -> AxisPropagation:
    first = whole(2, 10)
    second = first if is_square else whole(2, 20)
    return AxisPropagation(
        (first, second, *named(bias)), (out,), _write_gemm, max_distance=MAX_DISTANCE
    )


def _write_gemm(op: Permuted) -> Sequence[Value]:
    operands = [op.operand(0), op.operand(1)]
    flips = [
        op.node.attr(name) ^ (op.arranged(labels) != labels)
        for name, labels in (("transA", op.propagation.own(0)), ("transB", op.propagation.own(1)))
    ]
    out = op.propagation.result
    if op.arranged(out) != out:
        operands.reverse()
        flips = [1 - flip for flip in reversed(flips)]
    pair: dict[int, Value | np.ndarray[Any, Any] | None] = dict(enumerate(operands))
    if op.node.input(2) is not None:
        pair[2] = op.aligned(2, out)
    return op.emit(pair, transA=flips[0], transB=flips[1])


# --- Einsum ---------------------------------------------------------------------------------------


@LAYOUTS.rule("Einsum")
def einsum(node: Node) -> AxisPropagation | Skip:
    """Einsum: the letters are the labels; the equation is rewritten."""
    found = derived(node, _write_einsum)
    if any(len(set(own)) < len(own) for own in found.inputs if own):
        return Skip("its equation reads an operand along a diagonal")
    return found


def _write_einsum(op: Permuted) -> Sequence[Value]:
    count = len(op.propagation.inputs)
    terms = ["".join(map(chr, op.arranged(op.propagation.own(slot)))) for slot in range(count)]
    result = "".join(map(chr, op.arranged(op.propagation.result)))
    operands = {slot: op.operand(slot) for slot in range(count)}
    return op.emit(operands, equation=f"{','.join(terms)}->{result}")
