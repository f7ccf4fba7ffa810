"""Reshape(Reduce(x, axes, keepdims=1), shape)  =>  Reduce(x, axes, keepdims=0), and back"""

import functools
import operator

from tiered import Graph, Node, Skip, Value, non_negative_axes, op, opt, rewrite, var
from tiered.graph.queries.op_traits import REDUCTIONS

Shape = tuple[int | str | None, ...]

_reduce = functools.reduce(
    operator.or_,
    (
        getattr(op, kind)(
            var.x, opt.axes, keepdims=var.keepdims, noop_with_empty_axes=var.noop
        ).bind("inner")
        for kind in REDUCTIONS
    ),
)


@rewrite(
    op.Reshape(_reduce, ...)
    | op.Flatten(_reduce, axis=var.axis)
    | op.Squeeze(_reduce, opt.gone)
    | op.Unsqueeze(_reduce, var.gone),
    opt_level=1,
    required=("infer_shapes",),
)
def fuse_reshape_into_reduce(
    graph: Graph,
    x: Value,
    axes: Value | None,
    keepdims: int | None,
    noop: int | None,
    node: Node,
    inner: Node,
) -> Value | Skip:
    """Drop or keep the reduced dims at once, where the Reshape does nothing else."""
    numbers = None if axes is None else axes.const
    if axes is not None and numbers is None:
        return Skip("axes is not a constant")
    if noop and (numbers is None or not numbers.size):
        return Skip("empty axes reduce nothing")
    if x.shape is None or node.output.shape is None:
        return Skip("the shape of x or of the result is not known")
    rank = len(x.shape)
    given = () if numbers is None else tuple(numbers.ravel().tolist())
    reduced = {*(non_negative_axes(given, rank) or range(rank))}
    other = 0 if keepdims else 1
    if not _are_same(node.output.shape, _reduced(x.shape, reduced, keeps=bool(other))):
        return Skip("the Reshape does more than to drop or add reduced dims")
    build = graph.op.named(inner.op_type)
    return build(x, axes, keepdims=other, noop_with_empty_axes=noop)


def _reduced(shape: Shape, axes: set[int], *, keeps: bool) -> Shape:
    """Return the shape after a reduction."""
    if keeps:
        return tuple(1 if at in axes else dim for at, dim in enumerate(shape))
    return tuple(dim for at, dim in enumerate(shape) if at not in axes)


def _are_same(one: Shape, other: Shape) -> bool:
    return None not in one and one == other
