"""x / Sqrt(v)  =>  x * Pow(v, -0.5), where v is proven positive"""

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, ranges, rewrite, var


@rewrite(
    op.Div(var.x, op.Sqrt(var.v).shared()),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def replace_div_by_sqrt_with_pow(graph: Graph, x: Value, v: Value) -> Value | Skip:
    """Multiply by the reciprocal square root, which some targets have as one operator.

    Of v = -0.0 the quotient has the sign of -0.0, and the power is Inf; so v must be proven
    positive, as the variance of a normalization with its epsilon is.
    """
    if v.dtype not in (DataType.FLOAT, DataType.DOUBLE):
        return Skip("v may be neither float nor double")
    if not graph.model.analysis(ranges)[v].low > 0:
        return Skip("v may be zero or negative")
    root = graph.op.Pow(v, np.array(-0.5, DataType(v.dtype).numpy))
    one = x.const
    if one is not None and one.size == 1 and one.item() == 1 and one.ndim <= (v.rank or 0):
        return root
    return graph.op.Mul(x, root)
