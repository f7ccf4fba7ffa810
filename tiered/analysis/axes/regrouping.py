"""The dims that a Reshape merges and splits: groups that hold the same elements in order."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from tiered.graph.core.types import Dim, Shape
from tiered.graph.shape_inference.symbolic_dims import Dims, Size, divide, multiply

Labels = tuple[int, ...]

Group = tuple[Labels, Labels]
"""Dims of the operand, and the dims of the result that hold the same elements in the same order."""

SizedShape = tuple[tuple[Dim, Size | None], ...]
"""Dims with their sizes; a size is symbolic if the dim is dynamic."""


def sized(shape: Shape, dims: Dims) -> SizedShape:
    """Return the dims of a shape with their sizes."""
    return tuple([(dim, dim if isinstance(dim, int) else dims.size(dim)) for dim in shape])


@lru_cache
def regrouped(
    before: SizedShape, after: SizedShape
) -> tuple[Labels, Labels, tuple[Group, ...]] | None:
    """Return labels of the operand and the result of a Reshape, and its groups by these labels.

    An axis that stays the same has one label; dims of size 1 are in no group. None if the groups
    are not known.

    Args:
        before: the shape of the operand, without zeros.
        after: that of the result.
    """
    groups = _groups(before, after)
    if groups is None:
        return None
    source, target = list(range(len(before))), list(range(100, 100 + len(after)))
    for one, other in groups:
        if len(one) == len(other) == 1:
            target[other[0]] = source[one[0]]
    named = tuple(
        (tuple(source[at] for at in one), tuple(target[at] for at in other))
        for one, other in groups
    )
    return tuple(source), tuple(target), named


def _groups(before: SizedShape, after: SizedShape) -> list[Group] | None:
    """Return the groups of dims, without dims of size 1; None if they are not known."""
    old = [(at, size) for at, (dim, size) in enumerate(before) if dim != 1]
    new = [(at, size) for at, (dim, size) in enumerate(after) if dim != 1]
    groups: list[Group] = []
    while old and new:
        counts = _one_group([size for _, size in old], [size for _, size in new])
        if counts is None:
            break
        groups.append(_group(old[: counts[0]], new[: counts[1]]))
        del old[: counts[0]], new[: counts[1]]
    ends: list[Group] = []
    while old and new and old[-1][1] is not None and old[-1][1] == new[-1][1]:
        ends.append(_group([old.pop()], [new.pop()]))
    if old and new:
        groups.append(_group(old, new))
    elif old or new:
        return None
    return [*groups, *reversed(ends)]


def _group(old: Sequence[tuple[int, Size | None]], new: Sequence[tuple[int, Size | None]]) -> Group:
    return tuple(at for at, _ in old), tuple(at for at, _ in new)


def _one_group(old: Sequence[Size | None], new: Sequence[Size | None]) -> tuple[int, int] | None:
    """Return how many leading dims of either side have the same product; None if unknown."""
    taken = [1, 1]
    sides = (old, new)
    product = [old[0], new[0]]
    while True:
        one, other = product
        if one is None or other is None:
            return None
        if one == other:
            return taken[0], taken[1]
        grows = [_is_multiple(other, one), _is_multiple(one, other)]
        for side, now in enumerate((one, other)):
            if grows[side] or not any(grows):
                if taken[side] == len(sides[side]):
                    return None
                size = sides[side][taken[side]]
                taken[side] += 1
                product[side] = None if size is None else multiply(now, size)


def _is_multiple(size: Size, of: Size) -> bool:
    """Return whether a size is a multiple of another one; quotients of numbers are truncated."""
    quotient = divide(size, of)
    return quotient is not None and multiply(quotient, of) == size
