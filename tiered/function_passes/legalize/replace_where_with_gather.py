"""Where(c, x, y) of one condition  =>  Gather(Concat(y, x), c)"""

import numpy as np

from tiered import DataType, Graph, Skip, Value, op, rewrite, var


@rewrite(
    op.Where(var.c, var.x, var.y),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def replace_where_with_gather(graph: Graph, c: Value, x: Value, y: Value) -> Value | Skip:
    """Select one of two tensors by an index, without arithmetic: NaN and Inf keep their places.

    Opt-in: for targets that have no Where, as Core ML; `legalize` uses it for them. Both tensors
    are copied. Exact by the standard; onnxruntime's Where makes 0.0 of a -0.0 in its first branch.
    """
    if c.shape is None or any(dim != 1 for dim in c.shape):
        return Skip("the condition is not known to be one element")
    if x.shape is None or x.shape != y.shape or None in x.shape:
        return Skip("x and y are not known to have one shape")
    if len(c.shape) > len(x.shape):
        return Skip("the condition adds dims to the result")
    axis = np.array([0], np.int64)
    both = graph.op.Concat(graph.op.Unsqueeze(y, axis), graph.op.Unsqueeze(x, axis), axis=0)
    index = graph.op.Cast(c, to=int(DataType.INT64))
    if c.shape:
        index = graph.op.Reshape(index, np.array([], np.int64))
    chosen: Value = graph.op.Gather(both, index, axis=0)
    return chosen
