"""x / 2**k  =>  x * 2**-k"""

from collections.abc import Mapping
from typing import Final

import numpy as np

from tiered import Constant, DataType, Graph, Skip, Value, const, op, rewrite, var

_LARGEST_EXPONENT: Final[Mapping[int, int]] = {
    DataType.FLOAT16: 14,
    DataType.BFLOAT16: 126,
    DataType.FLOAT: 126,
    DataType.DOUBLE: 1022,
}
"""The largest k for which 2**k and 2**-k are both normal."""


@rewrite(op.Div(var.x, const(name="divisor")), opt_level=2)
def replace_div_with_mul(graph: Graph, x: Value, divisor: Constant) -> Value | Skip:
    """Multiply by an exact reciprocal.

    The quotient and the product are then the same real number, rounded once: they have the same
    bits, even if that number is subnormal or overflows.
    """
    largest = _LARGEST_EXPONENT.get(divisor.tensor.dtype)
    if largest is None:
        return Skip("the dividend is not a float")
    if divisor.const.size > 1 and divisor.n_users > 1:
        return Skip("the divisor is a shared tensor")
    mantissa, exponent = np.frexp(divisor.const.astype(np.float64))
    if (np.abs(mantissa) != 0.5).any() or (np.abs(exponent - 1) > largest).any():
        return Skip("a divisor is not a power of two")
    return graph.op.Mul(x, np.array(1 / divisor.const.astype(np.float64), divisor.const.dtype))
