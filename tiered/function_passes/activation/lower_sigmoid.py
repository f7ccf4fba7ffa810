"""Sigmoid(x)  =>  1 / (1 + Exp(-x))"""

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var


@rewrite(
    op.Sigmoid(var.x),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def lower_sigmoid(graph: Graph, x: Value) -> Value | Skip:
    """Write a sigmoid by the exponential.

    Opt-in: for targets that have no Sigmoid.
    """
    if x.dtype not in (DataType.FLOAT, DataType.DOUBLE):
        return Skip("16-bit intermediates may overflow")
    one = graph.constant(np.array(1, DataType(x.dtype).numpy), "one")
    return graph.op.Div(one, graph.op.Add(graph.op.Exp(graph.op.Neg(x)), one))
