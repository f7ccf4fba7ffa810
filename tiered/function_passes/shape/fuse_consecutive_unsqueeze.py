"""Unsqueeze(Unsqueeze(x, first), second)  =>  Unsqueeze(x, both)"""

from collections.abc import Iterable

import numpy as np

from tiered import Graph, Node, Skip, Value, non_negative_axes, op, rewrite, var


@rewrite(
    op.Unsqueeze(op.Unsqueeze(var.x, var.first).shared().bind("inner"), var.second), opt_level=1
)
def fuse_consecutive_unsqueeze(
    graph: Graph, inner: Node, x: Value, first: Value, second: Value
) -> Value | Skip:
    """Unsqueeze once; the second axes shift those of the first.

    Several consumers of the same Unsqueeze are all fused with it, so that it is removed.
    """
    middle_value = inner.output
    readers = {user.op_type for user, _ in middle_value.users}
    if readers != {"Unsqueeze"} or not middle_value.can_be_renamed or middle_value.is_captured:
        return Skip("the intermediate value has other consumers")
    if first.const is None or second.const is None:
        return Skip("axes is not a constant")
    middle = None if x.rank is None else x.rank + first.const.size
    made = non_negative_axes(first.const, middle)
    new = non_negative_axes(second.const, None if middle is None else middle + second.const.size)
    if made is None or new is None:
        return Skip("an axis counts from the end of an unknown rank")
    axes = sorted((*new, *(_moved(axis, new) for axis in made)))
    return graph.op.Unsqueeze(x, np.array(axes, np.int64))


def _moved(axis: int, new: Iterable[int]) -> int:
    """Return the index of an axis after others are inserted."""
    for other in sorted(set(new)):
        axis += other <= axis
    return axis
