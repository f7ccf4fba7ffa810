"""Slice(Slice(x, ...), ...)  =>  Slice(x, ...)"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from tiered import Graph, Skip, Value, non_negative_axes, op, rest, rewrite, var

Cut = tuple[int, int, int]
"""Start, end and step along one axis."""

_INT_MAX: Final = (1 << 31) - 1
_LAST: Final = (1 << 63) - 1


@rewrite(op.Slice(op.Slice(var.x, rest.first), rest.second), opt_level=1)
def fuse_consecutive_slice(
    graph: Graph, x: Value, first: Sequence[Value | None], second: Sequence[Value | None]
) -> Value | Skip:
    """Cut once: other axes are cut beside each other, the same axis as the two cuts together do."""
    if any(value is not None and value.const is None for value in (*first, *second)):
        return Skip("an operand is not a constant")
    cuts, more = _cuts(x, first), _cuts(x, second)
    if cuts is None or more is None:
        return Skip("an axis counts from the end of an unknown rank")
    for axis, cut in more.items():
        both = _together(x.dim(axis), cuts[axis], cut) if axis in cuts else cut
        if both is None:
            return Skip("two cuts of one axis depend on its size, or on the runtime")
        cuts[axis] = both
    axes = sorted(cuts)
    starts, ends, steps = (np.array([cuts[axis][i] for axis in axes], np.int64) for i in range(3))
    places = None if axes == list(range(len(axes))) else np.array(axes, np.int64)
    return graph.op.Slice(x, starts, ends, places, steps if (steps != 1).any() else None)


def _cuts(x: Value, operands: Sequence[Value | None]) -> dict[int, Cut] | None:
    """Return the cut of each axis that a Slice cuts; None where an axis is not known."""
    numbers = [
        None if value is None or value.const is None else value.const.tolist() for value in operands
    ]
    starts, ends, axes, steps = (*numbers, None, None)[:4]
    assert starts is not None
    assert ends is not None
    places = non_negative_axes(axes or range(len(starts)), x.rank)
    if places is None:
        return None
    cuts = zip(starts, ends, steps or [1] * len(starts), strict=True)
    return dict(zip(places, cuts, strict=True))


def _together(dim: int | str | None, first: Cut, second: Cut) -> Cut | None:
    """Return the one cut that does what two do; None if that depends on the size of the axis."""
    if any(step == 0 or (step < 0 and end >= _INT_MAX) for _, end, step in (first, second)):
        # Backwards to INT_MAX takes nothing, but onnxruntime reads it as "to the far end".
        return None
    if isinstance(dim, int):
        taken = _taken(_taken(range(dim), first), second)
        # An end of -1 would count from the end: before the first element is before -dim.
        stop = taken.stop if taken.stop >= 0 else -dim - 1
        return (taken.start, stop, taken.step) if taken else (0, 0, 1)
    if first[2] != 1 or second[2] != 1 or min(*first, *second) < 0:
        return None
    # What begins so far behind is empty anyhow.
    start = min(first[0] + second[0], _LAST)
    return start, min(first[1], first[0] + second[1]), 1


def _taken(elements: range, cut: Cut) -> range:
    """Return what a cut takes; unlike Python's, one that begins before the front begins there."""
    start, end, step = cut
    return elements[slice(max(start, -len(elements)), end, step)]
