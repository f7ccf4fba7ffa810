"""MeanVarianceNormalization(x)  =>  (x - mean) / (sqrt(variance) + 1e-9)"""

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, rewrite, var


@rewrite(
    op.MeanVarianceNormalization(var.x, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def lower_mean_variance(graph: Graph, node: Node, x: Value) -> Value | Skip:
    """Normalise with the variance of the differences; ONNX's body subtracts two squares.

    The number that ONNX adds to the deviation, 1e-9, keeps constant channels 0.
    """
    if x.dtype not in (DataType.FLOAT, DataType.DOUBLE):
        return Skip("x is not known to be float or double")
    ops, axes = graph.op, graph.constant(np.array(node.attr("axes"), np.int64), "axes")
    apart = ops.Sub(x, ops.ReduceMean(x, axes, keepdims=1))
    deviation = ops.Sqrt(ops.ReduceMean(ops.Mul(apart, apart), axes, keepdims=1))
    small = graph.constant(np.array(1e-9, DataType(x.dtype).numpy), "epsilon")
    return ops.Div(apart, ops.Add(deviation, small))
