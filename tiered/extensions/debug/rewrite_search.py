"""Searches over rewrites: the first wrong one, and the fewest that are wrong together."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Sequence
from typing import TypeVar

T = TypeVar("T")


def first_wrong(
    good: int, wrong: int, is_wrong: Callable[[int], bool], ends: Collection[int] = ()
) -> int:
    """Return a number that is wrong while the one before it is right.

    It takes at most 1.71 * log2(wrong - good) questions: each leaves two thirds at most. It asks
    at the end of a pass where one lies in the middle third, and in the middle otherwise.

    Args:
        good: a number known to be right.
        wrong: a larger number known to be wrong.
        is_wrong: asked about numbers between them.
        ends: the numbers at which a pass ends.
    """
    ordered = sorted(ends)
    while wrong - good > 1:
        asked = _between(good, wrong, ordered)
        if is_wrong(asked):
            wrong = asked
        else:
            good = asked
    return wrong


def _between(good: int, wrong: int, ends: Sequence[int]) -> int:
    middle, third = (good + wrong) // 2, (wrong - good) / 3
    central = [end for end in ends if good + third <= end <= wrong - third]
    return min(central, key=lambda end: abs(end - middle), default=middle)


def fewest(items: Sequence[T], is_wrong: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return a minimal part of the items that is wrong: no item can be left out.

    Delta debugging (Zeller and Hildebrandt 2002, ddmin): halves, then smaller parts, each alone
    and each left out.

    Args:
        items: known to be wrong together.
        is_wrong: asked about parts of them, in their order.
    """
    kept, parts = list(items), 2
    while len(kept) > 1:
        chunks = _chunks(kept, parts)
        reduced = _one_of(chunks, is_wrong) or (
            _all_but_one_of(chunks, is_wrong) if parts > 2 else None
        )
        if reduced is not None:
            alone = reduced in chunks
            kept, parts = reduced, 2 if alone else max(parts - 1, 2)
        elif parts >= len(kept):
            break
        else:
            parts = min(2 * parts, len(kept))
    return [] if len(kept) == 1 and is_wrong([]) else kept


def _chunks(items: Sequence[T], parts: int) -> list[list[T]]:
    bounds = [len(items) * part // parts for part in range(parts + 1)]
    return [list(items[a:b]) for a, b in itertools.pairwise(bounds)]


def _one_of(chunks: list[list[T]], is_wrong: Callable[[Sequence[T]], bool]) -> list[T] | None:
    return next((chunk for chunk in chunks if is_wrong(chunk)), None)


def _all_but_one_of(
    chunks: list[list[T]], is_wrong: Callable[[Sequence[T]], bool]
) -> list[T] | None:
    for left_out in range(len(chunks)):
        rest = [item for at, chunk in enumerate(chunks) if at != left_out for item in chunk]
        if is_wrong(rest):
            return rest
    return None
