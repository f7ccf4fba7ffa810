"""Where(c, x, y)  =>  Cast(c) * x + Cast(Not(c)) * y"""

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.comparison import is_integer


@rewrite(
    op.Where(var.c, var.x, var.y),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def replace_where_with_mul_add(
    graph: Graph, c: Value, x: Value, y: Value, *, assume_finite: bool = False
) -> Value | Skip:
    """Select by products with 0 and 1.

    The product of 0 and an Inf or NaN that was not selected would be NaN, so both operands must be
    finite: integers, or finite constants. A -0.0 may become 0.0.

    Args:
        assume_finite: x and y are finite wherever they are not selected.
    """
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    if x.dtype in (DataType.BOOL, DataType.STRING):
        return Skip("the dtype has no product")
    if not assume_finite and not (_is_finite(x) and _is_finite(y)):
        return Skip("x or y may be Inf or NaN")
    ops, dtype = graph.op, int(x.dtype)
    chosen, others = ops.Cast(c, to=dtype), ops.Cast(ops.Not(c), to=dtype)
    return ops.Add(ops.Mul(chosen, x), ops.Mul(others, y))


def _is_finite(value: Value) -> bool:
    if is_integer(value.dtype):
        return True
    return value.const is not None and bool(np.isfinite(value.const.astype(np.float64)).all())
