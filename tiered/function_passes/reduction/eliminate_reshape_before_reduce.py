"""Reduce(Reshape(x))  =>  Reduce(x), over all elements, and so for other orders of elements"""

import functools
import operator

from tiered import Graph, Node, Skip, Value, non_negative_axes, op, opt, rewrite, var
from tiered.graph.queries.op_traits import REDUCTIONS

_moved = (
    op.Reshape(var.x, ...)
    | op.Flatten(var.x, attrs="ignored")
    | op.Squeeze(var.x, ...)
    | op.Unsqueeze(var.x, ...)
    | op.Transpose(var.x, attrs="ignored")
)
_reduce = functools.reduce(
    operator.or_,
    (
        getattr(op, kind)(_moved, opt.axes, keepdims=var.keepdims, noop_with_empty_axes=var.noop)
        for kind in REDUCTIONS
    ),
)


@rewrite(_reduce, opt_level=3, required=("infer_shapes",), numerics="reassociating")
def eliminate_reshape_before_reduce(
    graph: Graph,
    x: Value,
    axes: Value | None,
    keepdims: int | None,
    noop: int | None,
    node: Node,
) -> Value | Skip:
    """Reduce all elements as they are: neither their dims nor their order count."""
    is_float = x.is_float
    if node.op_type == "ReduceLogSumExp" and not is_float:
        return Skip("newer forms take no integers")
    numbers = None if axes is None else axes.const
    if axes is not None and numbers is None:
        return Skip("axes is not a constant")
    given = [] if numbers is None else numbers.ravel().tolist()
    if noop and not given:
        return Skip("empty axes reduce nothing")
    moved = node.given(0)
    if moved.rank is None or x.rank is None:
        return Skip("a rank is not known")
    if given and len({*(non_negative_axes(given, moved.rank) or ())}) < moved.rank:
        return Skip("it does not reduce all dims")
    if keepdims != 0 and x.rank != moved.rank:
        return Skip("the result has the rank of the Reshape")
    return graph.op.named(node.op_type)(x, None, keepdims=keepdims)
