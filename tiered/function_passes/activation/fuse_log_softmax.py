"""Log(Softmax(x))  =>  LogSoftmax(x), where no quotient can become 0"""

from tiered import Graph, Skip, Value, op, rewrite, var
from tiered.function_passes.activation._underflow import softmax_may_underflow


@rewrite(
    op.Log(op.Softmax(var.x, axis=var.axis)),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_log_softmax(graph: Graph, x: Value, axis: int) -> Value | Skip:
    """Take the logarithm before the quotient is rounded, where its range is known.

    Where elements of x are far apart, the original is -Inf and the operator a number.
    """
    if softmax_may_underflow(x, axis):
        return Skip("the quotient may underflow, as x has no known bounds that are close enough")
    return graph.op.LogSoftmax(x, axis=axis)
