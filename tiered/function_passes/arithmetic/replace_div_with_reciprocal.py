"""x / c  =>  x * (1 / c)"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from tiered import Constant, DataType, Graph, Skip, Value, const, op, rewrite, var

_SMALLEST_NORMAL: Final[Mapping[int, float]] = {
    DataType.FLOAT16: 2.0**-14,
    DataType.BFLOAT16: 2.0**-126,
    DataType.FLOAT: 2.0**-126,
    DataType.DOUBLE: 2.0**-1022,
}


@rewrite(
    op.Div(var.x, const(name="divisor")),
    opt_level=4,
    legalizes=True,
    numerics="reassociating",
)
def replace_div_with_reciprocal(graph: Graph, x: Value, divisor: Constant) -> Value | Skip:
    """Multiply by the rounded reciprocal: two roundings instead of one, off by one ulp or two.

    For powers of two, `replace_div_with_mul` is exact and runs at level 2.
    """
    array = divisor.const
    tiny = _SMALLEST_NORMAL.get(divisor.tensor.dtype)
    if tiny is None:
        return Skip("the dividend is not a float")
    if array.size > 1 and divisor.n_users > 1:
        return Skip("the divisor is a shared tensor")
    with np.errstate(divide="ignore", over="ignore", under="ignore"):
        inverse = np.array(1 / array.astype(np.float64), array.dtype)
    sizes = np.abs([array.astype(np.float64), inverse.astype(np.float64)])
    if not (np.isfinite(sizes) & (sizes >= tiny)).all():
        return Skip("a divisor or its reciprocal is 0, not normal or not finite")
    return graph.op.Mul(x, inverse)
