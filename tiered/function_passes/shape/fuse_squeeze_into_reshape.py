"""Squeeze(Reshape(x, shape), axes)  =>  Reshape(x, shape without axes), and so for Unsqueeze"""

import numpy as np

from tiered import (
    Constant,
    Graph,
    Node,
    Skip,
    Value,
    const,
    non_negative_axes,
    op,
    opt,
    rewrite,
    var,
)
from tiered.function_passes.shape._reshaping import moved_target

_reshape = op.Reshape(var.x, const(name="shape"), allowzero=var.allowzero)


@rewrite(
    op.Squeeze(_reshape, opt.axes) | op.Unsqueeze(_reshape, var.axes),
    opt_level=1,
    required=("infer_shapes",),
)
def fuse_squeeze_into_reshape(
    graph: Graph, node: Node, x: Value, shape: Constant, axes: Value | None, allowzero: int | None
) -> Value | Skip:
    """Reshape at once to the shape with or without the dims of 1.

    A 0 copies the dim at its own place, so it may need another form at the new one.
    """
    sizes = shape.const.ravel().tolist()
    if axes is not None and axes.const is None:
        return Skip("axes is not a constant")
    places = _kept(node, sizes) if node.op_type == "Squeeze" else _with_new(node, sizes)
    if isinstance(places, Skip):
        return places
    target = [1 if place is None else sizes[place] for place in places]
    if allowzero:
        return graph.op.Reshape(x, graph.constant(np.array(target, np.int64)), allowzero=1)
    copied = [None if place is None else x.dim(place) for place in places]
    stays = [
        place == axis or (copied[axis] is not None and copied[axis] == x.dim(axis))
        for axis, place in enumerate(places)
    ]
    moved = moved_target(target, copied, stays)
    if moved is None:
        return Skip("a 0 in shape would copy another dim")
    return graph.op.Reshape(x, graph.constant(np.array(moved, np.int64), shape.name))


def _kept(node: Node, sizes: list[int]) -> list[int | None] | Skip:
    """Return the places in the target that a Squeeze keeps."""
    middle = node.given(0)
    axes = node.operands[1] if len(node.operands) > 1 else None
    known = [size if size > 0 else middle.dim(axis) for axis, size in enumerate(sizes)]
    if axes is None:
        if not all(isinstance(dim, int) for dim in known):
            return Skip("an unknown dim may be 1")
        gone = {axis for axis, dim in enumerate(known) if dim == 1}
    else:
        assert axes.const is not None
        if not axes.const.size:
            return Skip("empty axes mean none or all")
        gone = set(non_negative_axes(axes.const, len(sizes)) or ())
        if not gone <= {*range(len(sizes))}:
            return Skip("a squeezed axis is out of range")
        if any(known[axis] != 1 for axis in gone):
            return Skip("a squeezed dim may not be 1")
    return [axis for axis in range(len(sizes)) if axis not in gone]


def _with_new(node: Node, sizes: list[int]) -> list[int | None] | Skip:
    """Return the places in the target that an Unsqueeze moves on, and None for each new dim."""
    axes = node.operands[1]
    assert axes is not None
    assert axes.const is not None
    rank = len(sizes) + axes.const.size
    new = set(non_negative_axes(axes.const, rank) or ())
    old = iter(range(len(sizes)))
    if len(new) < axes.const.size or not new <= {*range(rank)}:
        return Skip("a new axis is out of range or repeated")
    return [None if axis in new else next(old) for axis in range(rank)]
