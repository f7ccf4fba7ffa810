"""Celu(x, alpha)  =>  Where(x > 0, x, alpha * Elu(x / alpha))"""

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var


@rewrite(op.Celu(var.x, alpha=var.alpha), opt_level=None, legalizes=True, numerics="reassociating")
def replace_celu(graph: Graph, x: Value, alpha: float) -> Value | Skip:
    """Scale x into an Elu, and its result back; Elu with the same alpha is another function.

    What is positive stays as it is: x / alpha may overflow where x does not.

    Rounds differently than the operator, and keeps -0.0, for which onnxruntime's kernel returns
    0.0.
    """
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    if not 0 < alpha < np.inf:
        return Skip("alpha is {}", alpha)
    if alpha == 1:
        return graph.op.Elu(x)
    dtype = DataType(x.dtype).numpy
    scale, zero = graph.constant(np.array(alpha, dtype), "alpha"), np.zeros((), dtype)
    scaled = graph.op.Mul(graph.op.Elu(graph.op.Div(x, scale)), scale)
    return graph.op.Where(graph.op.Greater(x, graph.constant(zero, "zero")), x, scaled)
