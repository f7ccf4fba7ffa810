"""Squeeze(Unsqueeze(x, axes), axes)  =>  x, and Unsqueeze(Squeeze(x, axes), axes)  =>  x"""

from collections.abc import Sequence

import numpy as np

from tiered import Graph, Node, Skip, Value, non_negative_axes, op, rewrite, same_axes, var

_pairs = op.Squeeze(op.Unsqueeze(var.x, var.inner).shared(), var.outer) | op.Unsqueeze(
    op.Squeeze(var.x, var.inner).shared(), var.outer
)


@rewrite(_pairs, opt_level=1)
def eliminate_squeeze_unsqueeze(
    graph: Graph, x: Value, inner: Value, outer: Value, node: Node
) -> Value | Skip:
    """Drop two inverse operators; a Squeeze without axes may remove more dims than were added.

    A Squeeze of all added dims and others removes the others of x; of some added dims, an Unsqueeze
    adds the rest.
    """
    if inner.const is None or outer.const is None:
        return Skip("axes is not a constant")
    if not inner.const.size:
        return Skip("empty axes mean none or all")
    # Both axes count in the tensor with the dims of 1.
    rank = x.rank
    if rank is not None and node.op_type == "Squeeze":
        rank += inner.const.size
    if same_axes(inner.const.ravel(), outer.const.ravel(), rank):
        return x
    added = non_negative_axes(inner.const.ravel().tolist(), rank) or ()
    gone = non_negative_axes(outer.const.ravel().tolist(), rank) or ()
    if node.op_type == "Squeeze" and added and set(added) < set(gone):
        return graph.op.Squeeze(x, _without(gone, added))
    if node.op_type == "Squeeze" and gone and set(gone) < set(added):
        return graph.op.Unsqueeze(x, _without(added, gone))
    return Skip("the axes may differ")


def _without(axes: Sequence[int], dropped: Sequence[int]) -> np.ndarray:
    """Return the other axes as they count without the dropped dims; a Squeeze may repeat one."""
    gone = set(dropped)
    kept = sorted(set(axes) - gone)
    return np.array([axis - sum(each < axis for each in gone) for axis in kept], np.int64)
