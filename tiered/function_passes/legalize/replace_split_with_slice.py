"""Split(x)  =>  Slice(x), Slice(x), ..."""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np

from tiered import Graph, Node, Skip, Value, op, rewrite, var


@rewrite(
    op.Split(var.x, ..., attrs=...), opt_level=None, required=("infer_shapes",), legalizes=True
)
def replace_split_with_slice(graph: Graph, node: Node, x: Value) -> Sequence[Value | None] | Skip:
    """Cut each part out on its own."""
    axis = node.attr("axis")
    sizes = _sizes(node, x, axis)
    if isinstance(sizes, Skip):
        return sizes
    axes = graph.constant(np.array([axis], np.int64), "axes")
    bounds = pairwise(accumulate(sizes, initial=0))
    return [
        None
        if part is None
        else graph.op.Slice(x, np.array([start], np.int64), np.array([end], np.int64), axes)
        for part, (start, end) in zip(node.outputs, bounds, strict=True)
    ]


def _sizes(node: Node, x: Value, axis: int) -> list[int] | Skip:
    """Return the size of each part."""
    split = node.operands[1] if len(node.operands) > 1 else None
    if split is not None:
        return Skip("split is not a constant") if split.const is None else split.const.tolist()
    dim, count = x.dim(axis), len(node.outputs)
    if not isinstance(dim, int):
        return Skip("the dim of the axis is not a number")
    whole = -(-dim // count)
    return [min(whole, max(dim - at * whole, 0)) for at in range(count)]
