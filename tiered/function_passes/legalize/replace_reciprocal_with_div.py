"""Reciprocal(x)  =>  Div(1, x)"""

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var


@rewrite(op.Reciprocal(var.x), opt_level=None, required=("infer_shapes",), legalizes=True)
def replace_reciprocal_with_div(graph: Graph, x: Value) -> Value | Skip:
    """Divide 1 by x, which rounds in the same way."""
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    one = graph.constant(np.ones((), DataType(x.dtype).numpy), "one")
    return graph.op.Div(one, x)
