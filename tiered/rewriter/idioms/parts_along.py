"""Parts of a tensor along an axis: constants are cut at once, other values by Slice."""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tiered.graph import Graph, Value

    Array = np.ndarray[tuple[int, ...], np.dtype[np.generic]]


def part_ranges(size: int, parts: int) -> list[tuple[int, int]]:
    """Return the ranges of `parts` parts of an axis; the first ones are longer if any are."""
    lengths = (size // parts + (at < size % parts) for at in range(parts))
    return list(pairwise(accumulate(lengths, initial=0)))


def part_along(graph: Graph, value: Value, axis: int | None, begin: int, end: int) -> Value | Array:
    """Return a part of a value along an axis; all of it without one."""
    if axis is None:
        return value
    if value.const is not None:
        taken: Array = np.take(value.const, range(begin, end), axis)
        return taken
    ends = (np.array([each], np.int64) for each in (begin, end, axis))
    result: Value = graph.op.Slice(value, *ends)
    return result
