"""Exp(x - max) / ReduceSum(Exp(x - max))  =>  Softmax(x), where max is ReduceMax(x)"""

from tiered import Graph, Skip, Value, non_negative_axes, op, rewrite, same_axes, var

_exp = op.Exp(op.Sub(var.x, op.ReduceMax(var.x, var.axes_of_max)))


@rewrite(
    op.Div(_exp, op.ReduceSum(_exp, var.axes)),
    opt_level=3,
    required=("infer_shapes",),
    numerics="reassociating",
)
def fuse_softmax(graph: Graph, x: Value, axes: Value, axes_of_max: Value) -> Value | Skip:
    """Compute the softmax over one axis at once."""
    if axes.const is None or axes_of_max.const is None:
        return Skip("the axes are not constant")
    over = non_negative_axes(axes.const.ravel(), x.rank)
    if over is None or len(over) != 1:
        return Skip("it is not over one axis that is known")
    if not same_axes(over, axes_of_max.const.ravel(), x.rank):
        return Skip("the sum and the maximum are over other axes")
    axis = over[0] if x.rank is None or over[0] != x.rank - 1 else -1
    return graph.op.Softmax(x, axis=axis)
