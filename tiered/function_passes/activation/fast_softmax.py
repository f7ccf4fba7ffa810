"""Softmax(x)  =>  e / ReduceSum(e), e = Exp(x - ReduceMax(x)) by a polynomial"""

from typing import Final

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var
from tiered.rewriter.idioms.polynomials import fast_exponential

_WHERE_SINCE: Final = 9
"""The opset of Where and IsNaN."""


@rewrite(
    op.Softmax(var.x, axis=var.axis),
    opt_level=None,
    required=("infer_shapes",),
    numerics="approximate",
)
def fast_softmax(graph: Graph, x: Value, axis: int) -> Value | Skip:
    """Compute the softmax with the polynomial of `fast_exp`; off by 3e-6 at most.

    Opt-in, for targets without Exp: on onnxruntime its 31 operators take many times as long as the
    kernel. Elements of -Inf become 0. A row with NaN or Inf is NaN, and so is one of -Inf alone.

    Source: fast_softmax of TVM.
    """
    if x.dtype != DataType.FLOAT:
        return Skip("x is no float tensor")
    if graph.opset() < _WHERE_SINCE:
        return Skip("the opset lacks Where")
    over = graph.constant(np.array([axis], np.int64), "axes")
    apart = graph.op.Sub(x, graph.op.ReduceMax(x, over, keepdims=1))
    raised = fast_exponential(graph, apart)
    result: Value = graph.op.Div(raised, graph.op.ReduceSum(raised, over, keepdims=1))
    return result
