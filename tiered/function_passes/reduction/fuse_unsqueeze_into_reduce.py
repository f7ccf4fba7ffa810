"""Unsqueeze(Reduce(x, axes, keepdims=0), axes)  =>  Reduce(x, axes, keepdims=1)"""

import functools
import operator

from tiered import Graph, Node, Skip, Value, op, opt, rewrite, same_axes, var

_KINDS = ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")

_reduce = functools.reduce(
    operator.or_,
    (
        getattr(op, f"Reduce{kind}")(
            var.x, opt.axes, keepdims=0, noop_with_empty_axes=var.noop
        ).bind("inner")
        for kind in _KINDS
    ),
)


@rewrite(op.Unsqueeze(_reduce, var.added), opt_level=1)
def fuse_unsqueeze_into_reduce(
    graph: Graph, x: Value, axes: Value | None, noop: int | None, added: Value, inner: Node
) -> Value | Skip:
    """Keep the dims that come back at once."""
    numbers = None if axes is None else axes.const
    if added.const is None or (axes is not None and numbers is None):
        return Skip("axes is not a constant")
    if numbers is None or not numbers.size:
        if noop:
            return Skip("it reduces nothing")
        if x.rank is None:
            return Skip("it reduces all of an unknown rank")
        reduced = [*range(x.rank)]
    else:
        reduced = numbers.tolist()
    if not same_axes(reduced, added.const, x.rank):
        return Skip("the axes may differ")
    if x.rank is not None and any(not -x.rank <= axis < x.rank for axis in reduced):
        return Skip("an axis is out of range")
    return graph.op.named(inner.op_type)(x, axes, noop_with_empty_axes=noop)
