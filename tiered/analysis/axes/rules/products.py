"""Matrix products, and Einsum."""

from __future__ import annotations

from tiered.analysis.axes.axis_map import (
    AXES,
    Axes,
    AxisMap,
    Dims,
    Kind,
    all_of,
    broadcast,
    dims_of,
    whole,
)
from tiered.graph import Node


@AXES.rule("MatMul")
def _matmul(node: Node) -> AxisMap | None:
    return matmul(node, 0, 1)


@AXES.rule("MatMulInteger")
def _matmul_integer(node: Node) -> AxisMap | None:
    return matmul(node, 0, 1)


@AXES.rule("QLinearMatMul")
def _quantized_matmul(node: Node) -> AxisMap | None:
    return matmul(node, 0, 3)


def matmul(node: Node, left: int, right: int) -> AxisMap | None:
    """Return the map of a product of two operands; all others must be one number each."""
    operands, result = node.operands, dims_of(node.output)
    others = [value for at, value in enumerate(operands) if at not in (left, right)]
    if any(value is not None and dims_of(value) not in ((), (1,)) for value in others):
        return None
    one, other = dims_of(operands[left]), dims_of(operands[right])
    if not one or not other:
        return None
    batch = whole(max(len(one), len(other), 2) - 2)
    row, inner, column = whole(3, len(batch))
    around = result[: len(batch)]
    inputs: list[Axes | None] = [None] * len(operands)
    inputs[left] = (inner,) if len(one) == 1 else (*_batch(one, batch, around), row, inner)
    inputs[right] = (inner,) if len(other) == 1 else (*_batch(other, batch, around), inner, column)
    ends = [row] * (len(one) > 1) + [column] * (len(other) > 1)
    kinds = all_of(Kind.REDUCTION, (inner,))
    return AxisMap(tuple(inputs), ((*batch, *ends),), kinds, broadcasts=True)


def _batch(dims: Dims, batch: tuple[int, ...], around: Dims) -> Axes:
    return broadcast(dims[:-2], batch, around)


@AXES.rule("Gemm")
def _gemm(node: Node) -> AxisMap | None:
    row, column, inner = 0, 1, 2
    bias, result = node.operand(2), dims_of(node.output)
    if bias is not None and node.version < 7:
        return None
    inputs: list[Axes | None] = [
        (inner, row) if node.attr("transA") else (row, inner),
        (column, inner) if node.attr("transB") else (inner, column),
        None if bias is None else broadcast(dims_of(bias), (row, column), result),
    ]
    kinds = all_of(Kind.REDUCTION, (inner,))
    return AxisMap(tuple(inputs[: len(node.operands)]), ((row, column),), kinds, broadcasts=True)


@AXES.rule("Einsum")
def _einsum(node: Node) -> AxisMap | None:
    """Einsum: the letters are the iterators."""
    equation = equation_of(node)
    if equation is None:
        return None
    terms, result = equation
    operands = [dims_of(value) for value in node.operands]
    if any(len(term) != len(dims) for term, dims in zip(terms, operands, strict=True)):
        return None
    sizes = dict(zip(result, dims_of(node.output), strict=True))
    inputs = tuple(
        tuple(
            None if dim == 1 and sizes.get(letter, 1) != 1 else ord(letter)
            for letter, dim in zip(term, dims, strict=True)
        )
        for term, dims in zip(terms, operands, strict=True)
    )
    summed = {ord(letter) for term in terms for letter in term if letter not in result}
    made = tuple(map(ord, result))
    return AxisMap(inputs, (made,), all_of(Kind.REDUCTION, summed), broadcasts=True)


def equation_of(node: Node) -> tuple[list[str], str] | None:
    """Return the terms of an Einsum and its result, without blanks.

    None if a letter is repeated in a term, or an ellipsis stands for axes.
    """
    raw = node.attr("equation")
    text = (raw.decode() if isinstance(raw, bytes) else str(raw)).replace(" ", "")
    left, arrow, result = text.partition("->")
    terms = left.split(",")
    if not arrow:
        letters = left.replace(",", "")
        result = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    if "." in text or any(len(set(term)) < len(term) for term in (*terms, result)):
        return None
    return terms, result
