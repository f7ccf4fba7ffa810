"""Min(Max(x, low), high)  =>  Clip(x, low, high), also in the other order, and of a Relu"""

from typing import Final

import numpy as np

from tiered import Constant, DataType, Graph, Node, Skip, Value, const, op, rewrite, var
from tiered.rewriter.idioms.signs import zero_sign_matters

_FOR_DOUBLES: Final = 12

_low, _high = const(name="low"), const(name="high")


@rewrite(
    op.Min(op.Max(var.x, _low), _high)
    | op.Max(op.Min(var.x, _high), _low)
    | op.Min(op.Relu(var.x), _high),
    opt_level=3,
    numerics="reassociating",
)
def fuse_minmax_into_clip(
    graph: Graph, x: Value, low: Constant | None, high: Constant, node: Node
) -> Value | Skip:
    """Clip once: runtimes have a kernel for Clip, and fuse it into its producer.

    Clip keeps -0.0 at a bound of 0; Max may return +0.0.
    """
    if x.dtype is None:
        return Skip("the dtype of x is not known")
    if x.dtype == DataType.DOUBLE and graph.opset() < _FOR_DOUBLES:
        return Skip("before opset 12 Clip has no kernel for doubles")
    if not x.has_rank_of(node.output):
        return Skip("a bound may give x more dims")
    top = high.const
    bottom = np.zeros_like(top) if low is None else low.const
    if bottom.size != 1 or top.size != 1:
        return Skip("a bound is not one number")
    bottom, top = bottom.reshape(()), top.reshape(())
    if np.isnan(bottom) or np.isnan(top):
        return Skip("a bound is NaN")
    if (bottom == 0 or top == 0) and zero_sign_matters(node.output):
        return Skip("a consumer reads the sign of a zero")
    least: Value | np.ndarray = low if low is not None and low.rank == 0 else bottom
    most: Value | np.ndarray = high if high.rank == 0 else top
    if bottom > top:
        # The outer bound is always the result.
        decisive = least if node.op_type == "Max" else most
        least = most = graph.constant(decisive) if isinstance(decisive, np.ndarray) else decisive
    result: Value = graph.op.Clip(x, least, most)
    return result
