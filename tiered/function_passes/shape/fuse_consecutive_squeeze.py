"""Squeeze(Squeeze(x, first), second)  =>  Squeeze(x, both)"""

from itertools import count, islice

import numpy as np

from tiered import Graph, Skip, Value, non_negative_axes, op, opt, rewrite, var


@rewrite(op.Squeeze(op.Squeeze(var.x, opt.first), opt.second), opt_level=1)
def fuse_consecutive_squeeze(
    graph: Graph, x: Value, first: Value | None, second: Value | None
) -> Value | Skip:
    """Squeeze once; the second axes count in the result of the first Squeeze.

    If the second one names no axes, all dims of 1 are removed.
    """
    if second is None:
        return graph.op.Squeeze(x)
    if first is None:
        return Skip("the first one names no axes")
    if first.const is None or second.const is None:
        return Skip("axes is not a constant")
    if not first.const.size or not second.const.size:
        return Skip("empty axes mean none or all")
    named = non_negative_axes(first.const, x.rank)
    gone = set(named or ())  # a Squeeze may repeat an axis
    places = non_negative_axes(second.const, None if x.rank is None else x.rank - len(gone))
    if named is None or places is None:
        return Skip("an axis counts from the end of an unknown rank")
    left = list(islice((axis for axis in count() if axis not in gone), max(places) + 1))
    axes = sorted(gone.union(left[place] for place in places))
    return graph.op.Squeeze(x, np.array(axes, np.int64))
