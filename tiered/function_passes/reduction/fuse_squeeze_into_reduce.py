"""Squeeze(Reduce(x, axes, keepdims=1), axes)  =>  Reduce(x, axes, keepdims=0)"""

import functools
import operator

from tiered import Graph, Node, Skip, Value, op, rewrite, same_axes, var

_KINDS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

_reduce = functools.reduce(
    operator.or_,
    (
        getattr(op, f"Reduce{kind}")(var.x, var.axes, noop_with_empty_axes=var.noop).bind("inner")
        for kind in _KINDS
    ),
)


@rewrite(op.Squeeze(_reduce, var.gone), opt_level=1)
def fuse_squeeze_into_reduce(
    graph: Graph, x: Value, axes: Value, noop: int | None, gone: Value, inner: Node
) -> Value | Skip:
    """Drop the dims that are not wanted at once."""
    if gone.const is None or axes.const is None:
        return Skip("axes is not a constant")
    if not axes.const.size or not same_axes(axes.const, gone.const, x.rank):
        return Skip("the axes may differ")
    build = graph.op.named(inner.op_type)
    return build(x, axes, keepdims=0, noop_with_empty_axes=noop)
