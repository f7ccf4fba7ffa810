"""Einsum("bij,bjk->bik", a, b)  =>  MatMul(a, b), or Gemm or Transpose for other orders"""

import re
from collections.abc import Sequence
from typing import Final

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
def replace_einsum_with_matmul(
    graph: Graph, a: Value, b: Value, equation: str
) -> Value | Skip:
    """Multiply matrices: one label is summed over, each side has labels of its own.

    Two matrices of floats in another order are one Gemm, whose flags say the order.
    """
    found = re.fullmatch(r"([A-Za-z]+),([A-Za-z]+)->([A-Za-z]+)", equation.replace(" ", ""))
    if found is None:
        return Skip("the equation is implicit")
    left, right, out = found.groups()
    if any(len(set(labels)) != len(labels) for labels in (left, right, out)):
        return Skip("a label occurs twice in one operand")
    summed = [label for label in left if label in right and label not in out]
    shared = [label for label in out if label in left and label in right]
    rows = [label for label in out if label in left and label not in right]
    columns = [label for label in out if label in right and label not in left]
    if set(left) != {*shared, *rows, *summed} or set(right) != {*shared, *columns, *summed}:
        return Skip("a label occurs in one term only")
    if len(summed) != 1 or len(columns) != 1 or not rows or (shared and len(rows) != 1):
        return Skip("a single matrix product needs a Reshape")
    if a.dtype not in _DTYPES:
        return Skip("MatMul has no kernel for the dtype")
    for label in (*shared, *summed):
        size = a.dim(left.index(label))
        if size is None or size != b.dim(right.index(label)):
            return Skip("sizes of label {!r} may differ", label)
    plain = [*rows, *summed], [*summed, *columns], [*rows, *columns]
    if len(left) == len(right) == 2 and a.dtype in _GEMM and plain != (*map(list, found.groups()),):
        return _gemm(graph, a, b, found.groups(), summed[0])
    product = graph.op.MatMul(
        _ordered(graph, a, left, [*shared, *rows, *summed]),
        _ordered(graph, b, right, [*shared, *summed, *columns]),
    )
    return _ordered(graph, product, [*shared, *rows, *columns], out)


def _gemm(graph: Graph, a: Value, b: Value, labels: Sequence[str], summed: str) -> Value:
    """Return the product of two matrices, whatever the order of their axes and of its own."""
    left, right, out = labels
    if out[0] in right:
        a, b, left, right = b, a, right, left
    return graph.op.Gemm(
        a, b, transA=int(left[0] == summed), transB=int(right[1] == summed)
    )


def _ordered(graph: Graph, value: Value, has: Sequence[str], wanted: Sequence[str]) -> Value:
    """Return the value with its dims in another order."""
    perm = [has.index(label) for label in wanted]
    if perm == sorted(perm):
        return value
    return graph.op.Transpose(value, perm=perm)
