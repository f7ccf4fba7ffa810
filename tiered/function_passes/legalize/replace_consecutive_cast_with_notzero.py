"""Cast(Cast(x, to=bool), to=t)  =>  Cast(Not(Equal(x, 0)), to=t)"""

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var


@rewrite(
    op.Cast(op.Cast(var.x, to=int(DataType.BOOL)), to=var.to, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
)
def replace_consecutive_cast_with_notzero(graph: Graph, x: Value, to: int) -> Value | Skip:
    """Compare with zero: a Cast to bool is true for all but zeros, for NaN too."""
    if x.dtype is None or x.dtype in (DataType.BOOL, DataType.STRING):
        return Skip("the dtype of x has no zero")
    zero = graph.constant(np.zeros((), DataType(x.dtype).numpy), "zero")
    return graph.op.Cast(graph.op.Not(graph.op.Equal(x, zero)), to=to)
