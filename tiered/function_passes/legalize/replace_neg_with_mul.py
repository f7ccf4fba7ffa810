"""Neg(x)  =>  Mul(x, -1)"""

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var


@rewrite(op.Neg(var.x), opt_level=None, required=("infer_shapes",), legalizes=True)
def replace_neg_with_mul(graph: Graph, x: Value) -> Value | Skip:
    """Multiply by -1, which inverts the sign of zeros and infinities too."""
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    minus = graph.constant(np.full((), -1, DataType(x.dtype).numpy), "minus_one")
    return graph.op.Mul(x, minus)
