"""Log(Softmax(x))  =>  LogSoftmax(x)"""

from tiered import Graph, Value, op, rewrite, var


@rewrite(
    op.Log(op.Softmax(var.x, axis=var.axis)), opt_level=3, numerics="reassociating"
)
def fuse_log_softmax(graph: Graph, x: Value, axis: int) -> Value:
    """Take the logarithm before the quotient is rounded: what was -Inf becomes a number."""
    return graph.op.LogSoftmax(x, axis=axis)
