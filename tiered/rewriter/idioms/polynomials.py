"""The polynomials of TVM's FastMath in elementary operators, for targets without the kernels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from tiered.graph.core.dtypes import DataType

if TYPE_CHECKING:
    from tiered.graph import Graph, Value

# 1 + r + r^2 * p(r) is the exponential between -ln 2 / 2 and ln 2 / 2.
_EXP: Final = (
    1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
    5.0000001201e-1,
)  # fmt: skip
_LOG2_E: Final = 1.44269504088896341
_LN_2: Final = 0.6931471805599453
_LOW: Final = -104.0
"""The exponential of a lower number is 0 in float."""
_HIGH: Final = 89.0
"""The exponential of a higher number is Inf in float."""
_FIRST_POWER, _LAST_POWER = -150, 128
"""Of two, for the numbers between the limits."""


def fast_exponential(graph: Graph, x: Value) -> Value:
    """Return Exp(x) as 2^n * p(r), where x = n ln 2 + r; off by 4.2e-6 of the result at most.

    ONNX shifts no bits into floats before opset 26, so 2^n is looked up in a table. It holds half
    of each power, as 2^128 is no float. Beyond the limits the result is 0 or Inf, and of NaN it is
    NaN; results below 1.2e-38 are off by one step of the denormals.

    Args:
        graph: the graph of x.
        x: a float tensor.

    Source: topi's fast_exp of TVM, whose polynomial is that of Cephes' expf.
    """
    ops = graph.op
    x = ops.Clip(x, number(graph, _LOW), number(graph, _HIGH))
    n = ops.Floor(ops.Add(ops.Mul(x, number(graph, _LOG2_E)), number(graph, 0.5)))
    r = ops.Sub(x, ops.Mul(n, number(graph, _LN_2)))
    curve = ops.Mul(polynomial(graph, r, _EXP), ops.Mul(r, r))
    fraction = ops.Add(ops.Add(curve, r), number(graph, 1.0))
    # NaN is no index; it comes into the result by the fraction.
    known = ops.Where(ops.IsNaN(n), number(graph, 0.0), n)
    index = ops.Cast(ops.Add(known, number(graph, -_FIRST_POWER)), to=int(DataType.INT32))
    powers = np.arange(_FIRST_POWER, _LAST_POWER + 1)
    halves = graph.constant(np.ldexp(0.5, powers).astype(np.float32), "powers")
    power = ops.Gather(halves, index)
    result: Value = ops.Mul(ops.Add(fraction, fraction), power)
    return result


def polynomial(graph: Graph, x: Value, coefficients: Sequence[float]) -> Value:
    """Return a polynomial of a float tensor, the coefficient of the highest power first."""
    total: Value = number(graph, coefficients[0])
    for coefficient in coefficients[1:]:
        total = graph.op.Add(graph.op.Mul(x, total), number(graph, coefficient))
    return total


def number(graph: Graph, value: float) -> Value:
    """Return a float constant without dims."""
    return graph.constant(np.array(value, np.float32))
