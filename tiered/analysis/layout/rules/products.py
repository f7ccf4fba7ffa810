"""Rules of matrix products: batch dims in any order; the last two by swapping the operands."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Any

import numpy as np

from tiered.analysis.axes.reading import terms_of
from tiered.analysis.layout.propagation import (
    LAYOUTS,
    NO_RANK,
    Kernel,
    Labels,
    Permuted,
    Propagation,
    rank_of,
    whole,
)
from tiered.graph import DataType, Node, Value
from tiered.rewriter import Skip

ROW, INNER, COLUMN = 1000, 1001, 1002
"""Labels of a product: rows of the first operand, the summed axis, columns of the second."""

FLOATS = frozenset(dtype for dtype in DataType if dtype.is_float)

MAX_DISTANCE = 2
"""Swapped operands pay off near the removed Transpose only; models have many products."""


@LAYOUTS.rule("MatMul")
def matmul(node: Node) -> Propagation | Skip:
    """MatMul: batch dims in any order; the transpose of A B is B' A'.

    If one operand is constant, the summed axis and the result's axis at its position have one
    label: a permutation of the operand is one of the result.
    """
    left, right = rank_of(node), rank_of(node, 1)
    if left is None or right is None:
        return NO_RANK
    if left == 1 and right == 1:
        return Skip("both operands are vectors")
    if 1 in (left, right):
        return _matmul_of_vector(left, right, not _is_float(node))
    constant = (_is_constant(node, 0), _is_constant(node, 1))
    can_swap = node.is_op("MatMul")
    return _matmul((left, right), constant, len(node.inputs) - 2, can_swap, not _is_float(node))


@lru_cache
def _matmul_of_vector(left: int, right: int, is_exact: bool) -> Propagation:
    """Return the propagation of a product of matrices and a vector; the vector is fixed.

    `MatMul(X, v)` sums over the last axis of X, `MatMul(v, X)` over the second to last one; the
    other axes are those of the result, in any order.
    """
    matrices, rank = (0, left) if right == 1 else (1, right)
    summed = rank - 1 if right == 1 else rank - 2
    labels = whole(rank)
    inputs = (labels, None) if right == 1 else (None, labels)
    return Propagation(
        inputs,
        ((*labels[:summed], *labels[summed + 1 :]),),
        partial(_write_matmul_of_vector, matrices, summed),
        allows=lambda order: summed in order[-2:],
        is_exact=is_exact,
        max_distance=MAX_DISTANCE,
    )


def _write_matmul_of_vector(matrices: int, summed: int, op: Permuted) -> Sequence[Value]:
    pair = [op.operand(matrices), op.operands[1 - matrices]]
    if op.order[-1] != summed:
        pair.reverse()
    return op.emit(dict(enumerate(pair)))


def _is_constant(node: Node, slot: int) -> bool:
    value = node.inputs[slot]
    return value is not None and value.tensor is not None


@lru_cache
def _matmul(
    ranks: tuple[int, int], constant: tuple[bool, bool], others: int, can_swap: bool, is_exact: bool
) -> Propagation:
    left, right = ranks
    most = max(ranks) - 2
    row, column = (INNER if constant[0] else ROW), COLUMN
    if constant[1] and not constant[0]:
        column = INNER
    batch = whole(most)
    is_flat = (right == 2, left == 2)
    one = (*batch[most + 2 - left :], row, INNER)
    other = (*batch[most + 2 - right :], INNER, column)
    # A constant has no labels: it is permuted as the product needs it.
    inputs = (None if row == INNER else one, None if column == INNER else other)
    return Propagation(
        (*inputs, *(None,) * others),
        ((*batch, row, column),),
        partial(_write_matmul, row, column),
        allows=partial(_allows, batch, row, column, can_swap),
        is_exact=is_exact,
        max_distance=MAX_DISTANCE,
        kernel=Kernel("product", (row, column), is_flat),
    )


def _is_float(node: Node) -> bool:
    value = node.input(0)
    return value is None or value.dtype is None or value.dtype in FLOATS


def _allows(batch: Labels, row: int, column: int, can_swap: bool, order: Labels) -> bool:
    if set(order[: len(batch)]) != set(batch):
        return False
    rest = order[len(batch) :]
    straight, swapped = (row, INNER, column), (column, INNER, row)
    return rest == tuple(dict.fromkeys(straight)) or (
        can_swap and rest == tuple(dict.fromkeys(swapped))
    )


def _write_matmul(row: int, column: int, op: Permuted) -> Sequence[Value]:
    (out,) = op.propagation.outputs
    assert out is not None
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
def gemm(node: Node) -> Propagation | Skip:
    """Gemm: the orders of each operand and of the result are independent.

    A flag transposes an operand; swapping the operands transposes the result.
    """
    bias = rank_of(node, 2) if node.input(2) is not None else 0
    if rank_of(node) is None or rank_of(node, 1) is None or bias is None:
        return NO_RANK
    is_square = node.inputs[0] is node.inputs[1]
    return _gemm(is_square, bias if len(node.inputs) > 2 else None, not _is_float(node))


@lru_cache
def _gemm(is_square: bool, bias: int | None, is_exact: bool) -> Propagation:
    first, out = whole(2), whole(2, 20)
    second = first if is_square else whole(2, 10)
    others = () if bias is None else (out[2 - bias :],)
    return Propagation(
        (first, second, *others),
        (out,),
        _write_gemm,
        is_exact=is_exact,
        max_distance=MAX_DISTANCE,
    )


def _write_gemm(op: Permuted) -> Sequence[Value]:
    operands = [op.operand(0), op.operand(1)]
    flips = [
        op.node.attr(name) ^ (op.arranged(labels) != labels)
        for name, labels in (("transA", op.propagation.own(0)), ("transB", op.propagation.own(1)))
    ]
    (out,) = op.propagation.outputs
    assert out is not None
    if op.arranged(out) != out:
        operands.reverse()
        flips = [1 - flip for flip in reversed(flips)]
    pair: dict[int, Value | np.ndarray[Any, Any] | None] = dict(enumerate(operands))
    if op.node.input(2) is not None:
        pair[2] = op.aligned(2, out)
    return op.emit(pair, transA=flips[0], transB=flips[1])


# --- Einsum ---------------------------------------------------------------------------------------


@LAYOUTS.rule("Einsum")
def einsum(node: Node) -> Propagation | Skip:
    """Einsum: the letters are the labels; the equation is rewritten."""
    equation = terms_of(node)
    if equation is None or any(len(set(term)) < len(term) for term in equation[0]):
        return Skip("its equation has an ellipsis or repeated letter")
    terms, result = equation
    inputs = tuple(tuple(map(ord, term)) for term in terms)
    sums = any(letter not in result for term in terms for letter in term)
    exact = not (sums and _is_float(node))
    return Propagation(inputs, (tuple(map(ord, result)),), _write_einsum, is_exact=exact)


def _write_einsum(op: Permuted) -> Sequence[Value]:
    terms = ["".join(map(chr, op.arranged(labels or ()))) for labels in op.propagation.inputs]
    (out,) = op.propagation.outputs
    result = "".join(map(chr, op.arranged(out or ())))
    operands = {slot: op.operand(slot) for slot in range(len(terms))}
    return op.emit(operands, equation=f"{','.join(terms)}->{result}")
