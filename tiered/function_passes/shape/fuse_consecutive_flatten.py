"""Flatten(Reshape(x))  =>  Reshape(x, shape), and so for Squeeze and Unsqueeze around a Flatten"""

import numpy as np

from tiered import Graph, Node, Skip, Value, op, opt, rewrite, var

_flatten = op.Flatten(var.x, axis=var.inner_axis)
_view = (
    _flatten
    | op.Reshape(var.x, var.shape, allowzero=var.allowzero)
    | op.Squeeze(var.x, opt.axes)
    | op.Unsqueeze(var.x, var.axes)
)


@rewrite(
    op.Flatten(_view, axis=var.axis)
    | op.Squeeze(_flatten, opt.more_axes)
    | op.Unsqueeze(_flatten, var.more_axes),
    opt_level=1,
    required=("infer_shapes",),
)
def fuse_consecutive_flatten(graph: Graph, x: Value, node: Node) -> Value | Skip:
    """View the elements in the last shape at once."""
    shape = node.output.shape
    if shape is None:
        return Skip("the rank of the result is not known")
    if None not in shape and shape == x.shape:
        return x
    if sum(not isinstance(size, int) for size in shape) > 1:
        return Skip("several dims have no size")
    target = [size if isinstance(size, int) else -1 for size in shape]
    if 0 in target:
        return Skip("a 0 in shape copies a dim of x")
    return graph.op.Reshape(x, np.array(target, np.int64))
