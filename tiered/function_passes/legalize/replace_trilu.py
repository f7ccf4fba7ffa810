"""Trilu(x, k)  =>  Where(outside of the triangle, 0, x)"""

from typing import Final

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, opt, rewrite, var

_MOST_ELEMENTS: Final = 1 << 20
"""A mask of more elements would make the model grow too much."""


@rewrite(
    op.Trilu(var.x, opt.k, upper=var.upper), opt_level=None, required=("infer_shapes",),
    legalizes=True,
)  # fmt: skip
def replace_trilu(graph: Graph, x: Value, k: Value | None, upper: int) -> Value | Skip:
    """Select by a constant mask of the last two dims; And with the mask for booleans.

    A product with the mask would make NaN of Inf. x is the last operand, as onnxruntime's Where
    makes 0.0 of a -0.0 in the other one.
    """
    if x.dtype is None or x.shape is None:
        return Skip("the dtype or the rank of x is not known")
    rows, columns = x.shape[-2:]
    if not isinstance(rows, int) or not isinstance(columns, int):
        return Skip("the last two dims are not numbers")
    if k is not None and k.number is None:
        return Skip("the diagonal is not a constant")
    if rows * columns > _MOST_ELEMENTS:
        return Skip("the mask would have {} elements", rows * columns)
    diagonal = 0 if k is None or k.number is None else int(k.number)
    # Diagonals further out than the matrix select all of it, or nothing.
    diagonal = max(-rows, min(columns, diagonal))
    triangle = np.tri(rows, columns, diagonal - 1, dtype=bool)
    outside = triangle if upper else ~np.tri(rows, columns, diagonal, dtype=bool)
    if x.dtype == DataType.BOOL:
        # onnxruntime has a kernel of Trilu for booleans, and none of Where.
        return graph.op.And(x, graph.constant(~outside, "inside"))
    zero = np.zeros((), DataType(x.dtype).numpy)
    return graph.op.Where(graph.constant(outside, "outside"), graph.constant(zero, "zero"), x)
