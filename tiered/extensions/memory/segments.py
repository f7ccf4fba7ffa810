"""Where a forward pass is cut into segments, so that little memory is alive in the backward pass.

An estimate: what crosses a cut is alive all the time, and of one segment after the other all that
the backward pass reads.

Source: Chen, Xu, Zhang and Guestrin 2016, "Training deep nets with sublinear memory cost".
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import isqrt
from typing import Final, NamedTuple

_FINER: Final = 1.25
"""By which factor more segments are tried next."""

_MOST: Final = 4
"""How many times the square root of the number of nodes is the largest number of segments."""


class Extent(NamedTuple):
    """Memory that a tensor is in, or a tensor and its views.

    Attributes:
        nbytes: its bytes.
        first: the place of the node that computes it.
        last: the place of its last reader in the forward pass.
        is_read: whether the backward pass reads it.
    """

    nbytes: int
    first: int
    last: int
    is_read: bool


def best_cuts(extents: Sequence[Extent], count: int) -> list[int]:
    """Return the places before which to cut, for the lowest estimate; none if no cut lowers it.

    Args:
        extents: the memory that could be computed again.
        count: the number of nodes of the forward pass.
    """
    inner = [0] * count
    change = [0] * (count + 1)
    for each in extents:
        inner[each.first] += each.nbytes if each.is_read else 0
        change[each.first + 1] += each.nbytes
        change[each.last + 1] -= each.nbytes
    crossing, total = list(accumulate(change)), sum(inner)
    best, lowest, parts = list[int](), total, 2.0
    while parts <= max(2, _MOST * isqrt(count)):
        cuts = _cuts(inner, crossing, total / parts)
        estimate = _estimate(extents, cuts)
        if estimate < lowest:
            best, lowest = cuts, estimate
        parts *= _FINER
    return best


def _cuts(inner: Sequence[int], crossing: Sequence[int], budget: float) -> list[int]:
    """Return cuts such that each segment has about so many bytes, and few of them cross."""
    cuts = list[int]()
    start, held, narrow = 0, 0, None
    for at, nbytes in enumerate(inner):
        if at > start and held > budget and narrow is not None:
            cuts.append(narrow)
            held = sum(inner[narrow:at])
            start, narrow = narrow, None
        if at > start and held >= budget / 2 and (
            narrow is None or crossing[at] <= crossing[narrow]
        ):
            narrow = at
        held += nbytes
    return cuts


def _estimate(extents: Sequence[Extent], cuts: Sequence[int]) -> int:
    """Return the bytes of what crosses a cut, and those of the largest segment."""
    kept, segments = 0, [0] * (len(cuts) + 1)
    for each in extents:
        segment = bisect_right(cuts, each.first)
        if segment < len(cuts) and cuts[segment] <= each.last:
            kept += each.nbytes
        elif each.is_read:
            segments[segment] += each.nbytes
    return kept + max(segments)
