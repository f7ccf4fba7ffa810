"""Tanh(x)  =>  c * p(c**2) / q(c**2), c = Clip(x, -9, 9)"""

from typing import Final

from tiered import DataType, Graph, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.polynomials import number, polynomial

_ABOVE: Final = (
    -2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08,
    1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03,
)  # fmt: skip
_BELOW: Final = (
    1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03,
)  # fmt: skip
_SATURATED: Final = 9.0


@rewrite(
    op.Tanh(var.x),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="approximate",
)
def fast_tanh(graph: Graph, x: Value) -> Value | Skip:
    """Compute the hyperbolic tangent by a quotient of polynomials; off by 4e-7 at most.

    Opt-in, for targets without Tanh: on onnxruntime its 23 operators take many times as long as the
    kernel. The quotient may be a step above 1, so it is clipped. That of -Inf and Inf is -1 and 1,
    and NaN stays NaN.

    Source: fast_tanh of TVM, with the coefficients of Eigen.
    """
    if x.dtype != DataType.FLOAT:
        return Skip("the coefficients are those of float")
    c = graph.op.Clip(x, number(graph, -_SATURATED), number(graph, _SATURATED))
    square = graph.op.Mul(c, c)
    above = graph.op.Mul(c, polynomial(graph, square, _ABOVE))
    quotient = graph.op.Div(above, polynomial(graph, square, _BELOW))
    result: Value = graph.op.Clip(quotient, number(graph, -1.0), number(graph, 1.0))
    return result
