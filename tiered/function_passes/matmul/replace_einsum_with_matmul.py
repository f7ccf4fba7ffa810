"""Einsum("bij,bjk->bik", a, b)  =>  MatMul(a, b), or Gemm or Transpose for other orders"""

import math
import re
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var

_DTYPES: Final = (
    DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16, DataType.INT32, DataType.INT64
)  # fmt: skip

_GEMM: Final = (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16)


@rewrite(
    op.Einsum(var.a, var.b, equation=var.equation),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def replace_einsum_with_matmul(graph: Graph, a: Value, b: Value, equation: str) -> Value | Skip:
    """Multiply matrices: labels are summed over, each side may have labels of its own.

    Two matrices of floats in another order are one Gemm, whose flags say the order. Several labels
    of one kind become one dim by a Reshape, and labels that one side lacks a dim of 1.
    """
    found = re.fullmatch(r"([A-Za-z]+),([A-Za-z]+)->([A-Za-z]+)", equation.replace(" ", ""))
    if found is None:
        return Skip("the equation is implicit")
    left, right, out = found.groups()
    if any(len(set(labels)) != len(labels) for labels in (left, right, out)):
        return Skip("a label occurs twice in one operand")
    summed = [label for label in left if label not in out]
    shared = [label for label in out if label in left and label in right]
    rows = [label for label in out if label not in right]
    columns = [label for label in out if label not in left]
    if set(left) != {*shared, *rows, *summed} or set(right) != {*shared, *columns, *summed}:
        return Skip("a label occurs in one term only")
    if not summed:
        return Skip("no label is summed over")
    if a.dtype not in _DTYPES:
        return Skip("MatMul has no kernel for the dtype")
    for label in (*shared, *summed):
        size = a.dim(left.index(label))
        if size is None or size != b.dim(right.index(label)):
            return Skip("sizes of label {!r} may differ", label)
    plain = [*rows, *summed], [*summed, *columns], [*rows, *columns]
    is_gemm = len(left) == len(right) == 2 and not shared and a.dtype in _GEMM
    if is_gemm and plain != (*map(list, found.groups()),):
        return _gemm(graph, a, b, found.groups(), summed[0])
    is_plain = len(summed) == len(columns) == 1 and rows and (not shared or len(rows) == 1)
    sizes = {label: a.dim(left.index(label)) for label in left}
    sizes |= {label: b.dim(right.index(label)) for label in right}
    targets = None if is_plain else _targets((shared, rows, summed, columns), sizes)
    if isinstance(targets, Skip):
        return targets
    first = _ordered(graph, a, left, [*shared, *rows, *summed])
    second = _ordered(graph, b, right, [*shared, *summed, *columns])
    if targets is None:
        product = graph.op.MatMul(first, second)
    else:
        of_first, of_second, of_product = (np.array(each, np.int64) for each in targets)
        product = graph.op.Reshape(
            graph.op.MatMul(graph.op.Reshape(first, of_first), graph.op.Reshape(second, of_second)),
            of_product,
        )
    return _ordered(graph, product, [*shared, *rows, *columns], out)


def _targets(
    parts: Sequence[Sequence[str]], sizes: Mapping[str, object]
) -> tuple[list[int], list[int], list[int]] | Skip:
    """Return the shapes of both matrices and of the product with all its labels, or why not.

    A dynamic dim stays one where it is among the first, which all three tensors have at the same
    place; one other may be dynamic.

    Args:
        parts: the labels that are shared, those of the rows, those summed over, of the columns.
        sizes: the dim of each label.
    """
    shared, rows, summed, columns = parts
    if 0 in sizes.values():
        return Skip("a dim is 0")
    kept = [dim if isinstance(dim, int) else 0 for dim in map(sizes.__getitem__, shared)]

    def joined(labels: Sequence[str]) -> int:
        dims = [sizes[label] for label in labels]
        known = [dim for dim in dims if isinstance(dim, int)]
        return math.prod(known) if len(known) == len(dims) else -1

    found = (
        [*kept, joined(rows), joined(summed)],
        [*kept, joined(summed), joined(columns)],
        [*kept, *(joined([label]) for label in (*rows, *columns))],
    )
    if any(target.count(-1) > 1 or (-1 in target and 0 in target) for target in found):
        return Skip("several dims are not known")
    return found


def _gemm(graph: Graph, a: Value, b: Value, labels: Sequence[str], summed: str) -> Value:
    """Return the product of two matrices, whatever the order of their axes and of its own."""
    left, right, out = labels
    if out[0] in right:
        a, b, left, right = b, a, right, left
    return graph.op.Gemm(a, b, transA=int(left[0] == summed), transB=int(right[1] == summed))


def _ordered(graph: Graph, value: Value, has: Sequence[str], wanted: Sequence[str]) -> Value:
    """Return the value with its dims in another order."""
    perm = [has.index(label) for label in wanted]
    if perm == sorted(perm):
        return value
    return graph.op.Transpose(value, perm=perm)
