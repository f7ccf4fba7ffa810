"""Slice(x, steps of s)  =>  Reshape(Slice(Reshape(x), steps of 1))"""

import math

import numpy as np

from tiered import Graph, Node, Skip, Value, op, opt, rewrite, var


@rewrite(
    op.Slice(var.x, var.starts, var.ends, opt.axes, var.steps),
    opt_level=None,
    required=("infer_shapes",),
    legalizes=True,
)
def replace_strided_slice(
    graph: Graph, node: Node, x: Value, starts: Value, axes: Value | None, steps: Value
) -> Value | Skip:
    """Take one of s neighbours from an axis of their own, one cut axis after the other.

    So are the pairs of a rotary embedding read, and the neighbouring pixels of an image.
    """
    if starts.const is None or steps.const is None or (axes is not None and axes.const is None):
        return Skip("starts, axes or steps is not a constant")
    shape, made = x.static_shape, node.output.static_shape
    if shape is None or made is None or 0 in shape:
        return Skip("the shape is not known, or has no elements")
    every = np.arange(steps.const.size)
    given = every if axes is None or axes.const is None else axes.const.ravel()
    sizes, taken = list(shape), list[tuple[int, int, int]]()
    for axis, start, step in zip(given, starts.const.ravel(), steps.const.ravel(), strict=True):
        size = sizes[axis]
        first = int(start) + (size if start < 0 else 0)
        if step < 2 or size % step or not 0 <= first < step or made[axis] != size // step:
            return Skip("it does not take one of each {} neighbours", int(step))
        taken.append((int(axis) % len(shape), first, int(step)))
    for axis, first, step in taken:
        sizes[axis] //= step
        outer, inner = math.prod(sizes[: axis + 1]), math.prod(sizes[axis + 1 :])
        flat = graph.op.Reshape(x, np.array([outer, step, inner], np.int64))
        bounds = [np.array([each], np.int64) for each in (first, first + 1, 1)]
        x = graph.op.Reshape(graph.op.Slice(flat, *bounds), np.array(sizes, np.int64))
    return x
