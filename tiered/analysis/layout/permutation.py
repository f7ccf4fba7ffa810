"""Permutations as values: `perm[i]` is the axis of the input that becomes axis i of the output."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from tiered.graph.core.types import Shape

Permutation = tuple[int, ...]
Item = TypeVar("Item")


def compose(first: Permutation, then: Permutation) -> Permutation:
    """Return the permutation that equals `first` followed by `then`."""
    return tuple(first[axis] for axis in then)


def inverse(perm: Permutation) -> Permutation:
    """Return the permutation that undoes this one."""
    return tuple(sorted(range(len(perm)), key=perm.__getitem__))


def is_identity(perm: Permutation) -> bool:
    return all(axis == at for at, axis in enumerate(perm))


def permuted(items: Sequence[Item], perm: Permutation) -> tuple[Item, ...]:
    """Return the items of the axes, in the order of the permuted axes."""
    return tuple(items[axis] for axis in perm)


def between(have: Sequence[Item], want: Sequence[Item]) -> Permutation:
    """Return the permutation from one order of distinct items to another."""
    places = {item: at for at, item in enumerate(have)}
    return tuple(places[item] for item in want)


def keeps_the_data(perm: Permutation, shape: Shape) -> bool:
    """Return whether only dims of size 1 change places, so that no element moves."""
    moving = [axis for axis in perm if shape[axis] != 1]
    return moving == sorted(moving)
