"""LpNormalization(x)  =>  x / Where(norm is 0, 1, norm)"""

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var


@rewrite(
    op.LpNormalization(var.x, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def lower_lpnormalization(graph: Graph, node: Node, x: Value) -> Value | Skip:
    """Divide by the norm; vectors of zeros stay zeros."""
    if x.dtype not in (DataType.FLOAT, DataType.DOUBLE):
        return Skip("x is not known to be float or double")
    ops, numpy = graph.op, DataType(x.dtype).numpy
    axes = np.array([node.attr("axis")], np.int64)
    norm = ops.named(f"ReduceL{node.attr('p')}")(x, axes, keepdims=1)
    zero, one = (graph.constant(np.array(n, numpy), "number") for n in (0, 1))
    return ops.Div(x, ops.Where(ops.Equal(norm, zero), one, norm))
