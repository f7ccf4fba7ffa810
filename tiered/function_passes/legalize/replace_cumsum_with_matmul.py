"""CumSum(x, axis)  =>  MatMul(x, triangle of ones), along the last axis"""

from typing import Final

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var

_MOST_ELEMENTS: Final = 1 << 20
"""A larger triangle would make the model grow too much."""


@rewrite(
    op.CumSum(var.x, var.axis, exclusive=var.exclusive, reverse=var.reverse),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def replace_cumsum_with_matmul(
    graph: Graph, x: Value, axis: Value, exclusive: int, reverse: int
) -> Value | Skip:
    """Multiply by a triangle, for targets that have products and no running sums.

    x must be finite: the product of 0 and Inf is NaN, also in sums that the Inf is not in.
    """
    if x.dtype not in (DataType.FLOAT, DataType.DOUBLE):
        return Skip("x is not known to be float or double")
    if axis.number is None or x.rank is None:
        return Skip("the axis or the rank is not known")
    at, last = int(axis.number) % max(x.rank, 1), x.rank - 1
    size = x.dim(at)
    if not isinstance(size, int):
        return Skip("the dim is not a number")
    if size * size > _MOST_ELEMENTS:
        return Skip("the triangle would have {} elements", size * size)
    # Row i is what element i is added to.
    ones = np.ones((size, size), DataType(x.dtype).numpy)
    triangle = np.tril(ones, -exclusive) if reverse else np.triu(ones, exclusive)
    order = [*range(x.rank)]
    order[at], order[last] = last, at
    moved = x if at == last else graph.op.Transpose(x, perm=order)
    # A vector is a row.
    total = graph.op.MatMul(moved, graph.constant(triangle, "triangle"))
    return total if at == last else graph.op.Transpose(total, perm=order)
