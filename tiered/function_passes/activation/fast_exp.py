"""Exp(x)  =>  2**n * p(x - n * log(2)), n = Floor(x / log(2) + 0.5)"""

from typing import Final

from tiered import DataType, Graph, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.polynomials import fast_exponential

_WHERE_SINCE: Final = 9
"""The opset of Where and IsNaN."""


@rewrite(
    op.Exp(var.x),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="approximate",
)
def fast_exp(graph: Graph, x: Value) -> Value | Skip:
    """Compute the exponential by a polynomial; off by 4.2e-6 of the result at most.

    Opt-in, for targets without Exp: on onnxruntime its 27 operators take many times as long as the
    kernel. Results that Exp rounds to 0 or to Inf are the same, and NaN stays NaN.

    Source: fast_exp of TVM.
    """
    if x.dtype != DataType.FLOAT:
        return Skip("the coefficients are for float")
    if graph.opset() < _WHERE_SINCE:
        return Skip("the opset has no Where")
    return fast_exponential(graph, x)
