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
    """Multiply all rows as one matrix, and add to them at once, beside a Reshape.

    A vector is added row by row, and a row of few numbers takes as long as one of more: the sum of
    a narrow product takes a good part of its time, that of a wide one does not. Two new Reshapes
    take what the sum did, so one of them must become one with a Reshape that is there.
    """
    if x.shape is None:
        return Skip("the rank of x is not known")
    if len(x.shape) < 3:
        return Skip("a Gemm does not batch matrices")
    if x.dtype != DataType.FLOAT:
        return Skip("it is not of float32")
    shape = weight.static_shape
    if shape is None or len(shape) != 2:
        return Skip("the second factor is not a matrix of a known shape")
    depth, columns = shape
    if columns > _MOST_COLUMNS:
        return Skip("with {} columns the Reshapes cost more", columns)
    if c.shape != (columns,):
        return Skip("the addend is not per column")
    outer = [dim if isinstance(dim, int) else -1 for dim in x.shape[:-1]]
    if 0 in (*outer, depth, columns) or outer.count(-1) > 1:
        return Skip("the output shape has several unknown dims")
    if not (_is_reshaped(x) or _is_read_by_reshapes(node.output)):
        return Skip("there is no Reshape before or after it")
    flat, whole = np.array([-1, depth], np.int64), np.array([*outer, columns], np.int64)
    rows = graph.op.Reshape(x, flat)
    result: Value = graph.op.Reshape(graph.op.Gemm(rows, weight, c), whole)
    return result


def _is_reshaped(x: Value) -> bool:
    """Return whether a Reshape that nothing else needs makes a value."""
    return x.has_one_user and x.producer is not None and x.producer.is_op("Reshape")


def _is_read_by_reshapes(value: Value) -> bool:
    """Return whether all that read a value are Reshapes to shapes that do not depend on its own."""
    if value.is_graph_output or not value.users:
        return False
    return all(
        user.node.is_op("Reshape")
        and user.node.graph is value.graph
        and (shape := user.node.const(1)) is not None
        and 0 not in shape
        for user in value.users
    )
