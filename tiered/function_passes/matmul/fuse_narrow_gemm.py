"""Add(MatMul(x, w), c)  =>  Reshape(Gemm(Reshape(x), w, c)), where w has few columns"""

from typing import Final

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, const, op, rewrite, var

_MOST_COLUMNS: Final = 32


@rewrite(
    op.Add(op.MatMul(var.x, var.weight), const(name="c")),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_narrow_gemm(graph: Graph, node: Node, x: Value, weight: Value, c: Value) -> Value | Skip:
    """Multiply all rows as one matrix, and add to them at once.

    A vector is added row by row, and a row of few numbers takes as long as one of more: the sum of
    a narrow product takes a good part of its time, that of a wide one does not.
    """
    if x.rank is None or x.shape is None:
        return Skip("the rank of x is not known")
    if x.rank < 3:
        return Skip("a Gemm takes matrices as they are")
    if x.dtype != DataType.FLOAT:
        return Skip("it is not of floats of 32 bits")
    shape = weight.static_shape
    if shape is None or len(shape) != 2:
        return Skip("the second factor is not a matrix of a known shape")
    depth, columns = shape
    if columns > _MOST_COLUMNS:
        return Skip("of {} columns the Reshapes cost more than the sum", columns)
    if c.shape != (columns,):
        return Skip("what is added is not one number a column")
    outer = [dim if isinstance(dim, int) else -1 for dim in x.shape[:-1]]
    if 0 in (*outer, depth, columns) or outer.count(-1) > 1:
        return Skip("the shape of the result is not one with a single unknown dim")
    flat, whole = np.array([-1, depth], np.int64), np.array([*outer, columns], np.int64)
    rows = graph.op.Reshape(x, flat)
    result: Value = graph.op.Reshape(graph.op.Gemm(rows, weight, c), whole)
    return result
