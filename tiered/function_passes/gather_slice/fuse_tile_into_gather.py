"""Gather(Tile(x, repeats), i, axis)  =>  Gather(x, i modulo size, axis), and so for Slice"""

import numpy as np

from tiered import Constant, Graph, Node, Skip, Value, const, op, opt, rewrite, var

_tile = op.Tile(var.x, const(name="repeats"))


@rewrite(
    op.Gather(_tile, const(name="first"), axis=var.axis)
    | op.Slice(_tile, const(name="first"), const(name="ends"), opt.axes, opt.steps),
    opt_level=1,
    required=("infer_shapes",),
)
def fuse_tile_into_gather(
    graph: Graph,
    x: Value,
    repeats: Constant,
    first: Constant,
    ends: Constant | None,
    axes: Value | None,
    steps: Value | None,
    axis: int | None,
    node: Node,
) -> Value | Skip:
    """Select from the elements that are repeated, if they are repeated along that axis alone."""
    if x.rank is None:
        return Skip("the rank of x is not known")
    place = axis or 0
    if ends is not None:
        if any(value is not None and value.const is None for value in (axes, steps)):
            return Skip("axes or steps is not a constant")
        if first.const.size != 1 or (steps is not None and steps.const != 1):
            return Skip("the Slice cuts several axes, or its step is not 1")
        place = 0 if axes is None or axes.const is None else int(axes.const.item())
    place %= x.rank
    if any(count != 1 for at, count in enumerate(repeats.const.tolist()) if at != place):
        return Skip("another axis is repeated, too")
    size = x.dim(place)
    if not isinstance(size, int) or size == 0:
        return Skip("the size of the axis is not known")
    whole = size * int(repeats.const[place])
    if ends is None:
        indices = first.const
        if indices.size and not -whole <= indices.min() <= indices.max() < whole:
            return Skip("an index is out of range")
        found = np.asarray(np.mod(indices, size), np.int64)
        return graph.op.Gather(x, graph.constant(found, first.name), axis=place)
    taken = range(whole)[int(first.const.item()) : int(ends.const.item())]
    if not taken or taken[0] // size != taken[-1] // size:
        return Skip("it takes elements of several copies, or none")
    bounds = (taken[0] % size, taken[-1] % size + 1, place)
    return graph.op.Slice(x, *(np.array([number], np.int64) for number in bounds))
