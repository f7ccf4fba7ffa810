"""CumSum(x, axis < 0)  =>  CumSum(x, axis + rank)"""

import numpy as np

from tiered import Graph, Node, Skip, Value, op, rewrite, var


@rewrite(
    op.CumSum(var.x, var.axis, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
)
def legalize_cumsum(graph: Graph, node: Node, x: Value, axis: Value) -> Value | Skip:
    """Count the axis from the front, for targets that refuse a negative one."""
    if axis.const is None or axis.number is None or x.rank is None:
        return Skip("the axis or the rank is not known")
    number = int(axis.number)
    if number >= 0:
        return Skip("the axis is not negative")
    front = np.array(number + x.rank, axis.const.dtype).reshape(axis.const.shape)
    return graph.op.like(node, x, graph.constant(front, axis.name))
