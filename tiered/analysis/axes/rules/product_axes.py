"""Matrix products, and Einsum."""

from __future__ import annotations

from functools import lru_cache

from tiered.analysis.axes.axis_map import (
    AXES,
    Axes,
    AxisMap,
    IteratorKind,
    Labels,
    NoMap,
    all_of,
    broadcast,
    dims_of,
    whole,
)
from tiered.analysis.axes.axis_reading import terms_of
from tiered.graph import Node


@AXES.rule("MatMul")
def _matmul(node: Node) -> AxisMap:
    return product(node, 0, 1)


@AXES.rule("MatMulInteger")
def _matmul_of_integers(node: Node) -> AxisMap:
    return product(node, 0, 1, of_rows=(2,), of_columns=(3,))


@AXES.rule("QLinearMatMul")
def _quantized_matmul(node: Node) -> AxisMap:
    return product(node, 0, 3, of_rows=(1, 2), of_columns=(4, 5))


def product(
    node: Node, left: int, right: int, *, of_rows: Labels = (), of_columns: Labels = ()
) -> AxisMap:
    """Return the map of a product of matrices, or of one and a vector.

    Args:
        node: the product.
        left, right: the slots of the operands.
        of_rows, of_columns: those of numbers for all, or for each row or column; all others are
            one number.
    """
    operands = node.operands
    one, other = dims_of(operands[left]), dims_of(operands[right])
    if not one or not other:
        raise NoMap("an operand is a scalar")
    pair = _of_matrices(len(one), len(other))
    if len(operands) == 2:
        return pair
    inner = next(iter(pair.kinds))
    row, column = inner - 1, inner + 1
    inputs: list[Axes | None] = [None] * len(operands)
    for slot, value in enumerate(operands):
        dims = () if value is None or slot in (left, right) else dims_of(value)
        if dims not in ((), (1,)):
            label = row if slot in of_rows else column if slot in of_columns else None
            if label is None or len(dims) > 1:
                raise NoMap("a scale or zero point is neither a scalar nor 1-D")
            inputs[slot] = (label,)
    inputs[left], inputs[right] = pair.inputs
    slots = (left, right, *of_rows, *of_columns)
    return pair._replace(inputs=tuple(inputs), broadcasts=slots)


@lru_cache
def _of_matrices(left: int, right: int) -> AxisMap:
    """Return the map of a product of two operands of these ranks."""
    batch = whole(max(left, right, 2) - 2)
    row, inner, column = whole(3, len(batch))
    one = (inner,) if left == 1 else (*_last(batch, left - 2), row, inner)
    other = (inner,) if right == 1 else (*_last(batch, right - 2), inner, column)
    out = (*batch, *[row] * (left > 1), *[column] * (right > 1))
    return AxisMap((one, other), (out,), {inner: IteratorKind.REDUCTION}, broadcasts=(0, 1))


def _last(batch: Labels, count: int) -> Labels:
    return batch[len(batch) - count :]


@AXES.rule("Gemm")
def _gemm(node: Node) -> AxisMap:
    if node.version < 7:
        raise NoMap("its opset broadcasts in another way")
    return gemm(node)


def gemm(node: Node) -> AxisMap:
    """Return the map of a product of two matrices, and a bias that broadcasts to it."""
    row, column, inner = 0, 1, 2
    bias = node.operand(2)
    inputs: list[Axes | None] = [
        (inner, row) if node.attr("transA") else (row, inner),
        (column, inner) if node.attr("transB") else (inner, column),
        broadcast(bias, (row, column)),
    ]
    kinds = all_of(IteratorKind.REDUCTION, (inner,))
    return AxisMap(tuple(inputs[: len(node.operands)]), ((row, column),), kinds, broadcasts=(2,))


@AXES.rule("Einsum")
def _einsum(node: Node) -> AxisMap:
    """Einsum: the letters are the iterators; one that is twice in a term takes a diagonal."""
    equation = terms_of(node)
    if equation is None:
        raise NoMap("its equation has an ellipsis, or a letter twice in its result")
    terms, result = equation
    ranks = [len(dims_of(value)) for value in node.operands]
    if ranks != [len(term) for term in terms]:
        raise NoMap("its equation is for operands of other ranks")
    inputs = tuple(tuple(map(ord, term)) for term in terms)
    summed = {ord(letter) for term in terms for letter in term if letter not in result}
    twice = {ord(letter) for term in terms for letter in term if term.count(letter) > 1}
    kinds = {**all_of(IteratorKind.REDUCTION, summed), **all_of(IteratorKind.OPAQUE, twice)}
    return AxisMap(inputs, (tuple(map(ord, result)),), kinds)
