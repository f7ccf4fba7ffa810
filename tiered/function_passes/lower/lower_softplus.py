"""Softplus(x)  =>  Max(x, 0) + Log(1 + Exp(-Abs(x)))"""

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var


@rewrite(
    op.Softplus(var.x),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def lower_softplus(graph: Graph, x: Value) -> Value | Skip:
    """Take the exponential of a number that is not positive.

    In ONNX's body, Log(1 + Exp(x)), it overflows from 89 on.
    """
    if x.dtype not in (DataType.FLOAT, DataType.DOUBLE, DataType.FLOAT16):
        return Skip("the dtype of x is not known")
    ops, numpy = graph.op, DataType(x.dtype).numpy
    one = graph.constant(np.array(1, numpy), "one")
    small = ops.Log(ops.Add(ops.Exp(ops.Neg(ops.Abs(x))), one))
    return ops.Add(ops.Relu(x), small)
