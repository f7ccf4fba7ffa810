"""ReduceLogSumExp(x)  =>  m + Log(ReduceSum(Exp(x - m))), m the largest"""

import numpy as np

from tiered import DataType, Graph, Node, Skip, Value, op, opt, rewrite, var


@rewrite(
    op.ReduceLogSumExp(var.x, opt.axes, attrs=...),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
    numerics="reassociating",
)
def lower_logsumexp(graph: Graph, node: Node, x: Value, axes: Value | None) -> Value | Skip:
    """Subtract the largest number; in ONNX's body the exponentials overflow from 89 on.

    An infinite largest number is replaced by 0, so that Inf - Inf does not make NaN.
    """
    if x.dtype not in (DataType.FLOAT, DataType.DOUBLE):
        return Skip("x is not known to be float or double")
    if x.rank is None or (axes is not None and axes.const is None):
        return Skip("the rank or the axes are not known")
    given = [] if axes is None or axes.const is None else axes.const.ravel().tolist()
    if not given and node.attr("noop_with_empty_axes"):
        return Skip("no axis is reduced")
    along = graph.constant(np.array(given or range(x.rank), np.int64), "axes")
    ops, numpy = graph.op, DataType(x.dtype).numpy
    zero = graph.constant(np.array(0, numpy), "zero")
    largest = ops.ReduceMax(x, along, keepdims=1)
    middle = ops.Where(ops.IsInf(largest), zero, largest)
    total = ops.ReduceSum(ops.Exp(ops.Sub(x, middle)), along, keepdims=1)
    made = ops.Add(ops.Log(total), middle)
    return made if node.attr("keepdims") else ops.Squeeze(made, along)
