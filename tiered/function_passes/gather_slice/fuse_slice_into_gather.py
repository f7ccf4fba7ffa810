"""Gather(Slice(x, ...), indices)  =>  Gather(x, indices of x), along one axis"""

import numpy as np

from tiered import Constant, Graph, Skip, Value, const, op, opt, rewrite, var


@rewrite(
    op.Gather(
        op.Slice(var.x, const(name="starts"), const(name="ends"), opt.axes, opt.steps).shared(),
        const(name="indices"),
        axis=var.axis,
    ),
    opt_level=1,
    required=("infer_shapes",),
)
def fuse_slice_into_gather(
    graph: Graph,
    x: Value,
    starts: Constant,
    ends: Constant,
    axes: Value | None,
    steps: Value | None,
    indices: Constant,
    axis: int,
) -> Value | Skip:
    """Take from x what the Gather takes of a part of it."""
    if starts.const.size != 1:
        return Skip("the Slice cuts several axes")
    place, step = 0 if axes is None else axes.number, 1 if steps is None else steps.number
    if place is None or step is None:
        return Skip("axes or steps is not a constant")
    if x.rank is None or place % x.rank != axis % x.rank:
        return Skip("the Slice cuts another axis, or the rank is not known")
    size = x.dim(axis)
    if not isinstance(size, int):
        return Skip("the size of the axis is not known")
    start, end = int(starts.const.item()), int(ends.const.item())
    if step < 0 and end >= (1 << 31) - 1:
        return Skip("runtimes read this end in different ways")
    taken = np.arange(size)[max(start, -size) : end : int(step)]
    places = indices.const
    if places.size and not -len(taken) <= places.min() <= places.max() < len(taken):
        return Skip("an index is out of range")
    found = np.asarray(taken[places], np.int64)
    return graph.op.Gather(x, graph.constant(found, indices.name), axis=axis)
