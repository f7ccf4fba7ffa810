"""Slice(x, starts=0, ends=all, steps=1)  =>  x"""

from typing import Final

from tiered import Graph, Skip, Value, op, opt, rewrite, var

# "For slicing to the end of a dimension with unknown size, it is recommended to pass in INT_MAX":
# the operator's own words, which are taken at them.
_INT_MAX: Final = (1 << 31) - 1


@rewrite(op.Slice(var.x, var.starts, var.ends, opt.axes, opt.steps), opt_level=1)
def eliminate_nop_slice(
    graph: Graph, x: Value, starts: Value, ends: Value, axes: Value | None, steps: Value | None
) -> Value | Skip:
    """Drop a Slice that takes all of each axis, in order."""
    if starts.const is None or ends.const is None:
        return Skip("starts or ends is not a constant")
    if (axes is not None and axes.const is None) or (steps is not None and steps.const is None):
        return Skip("axes or steps is not a constant")
    if steps is not None and steps.const is not None and (steps.const != 1).any():
        return Skip("a step is not 1")
    places = range(starts.const.size) if axes is None or axes.const is None else axes.const.ravel()
    if not starts.const.size == ends.const.size == len(places):
        return Skip("starts, ends and axes differ in number")
    for start, end, axis in zip(starts.const.ravel(), ends.const.ravel(), places, strict=True):
        dim = x.dim(int(axis))
        size = dim if isinstance(dim, int) else None
        if start != 0 and (size is None or start > -size):
            return Skip("it may not start at the front")
        if end < _INT_MAX and (size is None or end < size):
            return Skip("it may not reach the end")
    return x
