"""Tensors with fewer axes and the same elements in the same order: neighbouring axes as one."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

Dims = tuple[int, ...]

Step = tuple[Dims, tuple[int, ...]]
"""The shape to read a tensor in, and the permutation of its axes."""


def transposes(dims: Sequence[int], perm: Sequence[int], most: int) -> list[Step]:
    """Return Transposes of tensors of rank `most` or less that do what one Transpose does.

    One, if enough axes stay neighbours in the same order. Otherwise the axes are brought to their
    places from the first to the last, by exchanges of two neighbouring blocks.

    Args:
        dims: the shape, without zeros.
        perm: the permutation.
        most: the highest rank, 4 or more.
    """
    order = [axis for axis in perm if dims[axis] != 1]
    blocks: list[list[int]] = []
    for axis in order:
        last = blocks[-1][-1] if blocks else None
        follows = last is not None and all(dims[at] == 1 for at in range(last + 1, axis))
        if follows and last is not None and last < axis:
            blocks[-1].append(axis)
        else:
            blocks.append([axis])
    sorted_blocks = sorted(blocks)
    if blocks == sorted_blocks:
        return []
    sizes = tuple(prod(dims[axis] for axis in block) for block in sorted_blocks)
    wanted = tuple(sorted_blocks.index(block) for block in blocks)
    if len(sizes) <= most:
        return [(sizes, wanted)]
    return _exchanges(sizes, wanted)


def _exchanges(sizes: Dims, wanted: tuple[int, ...]) -> list[Step]:
    """Return exchanges of two neighbouring blocks, each a Transpose of rank 4 or less."""
    present, steps = list(range(len(sizes))), list[Step]()
    for place in range(len(wanted)):
        at = present.index(wanted[place])
        if at == place:
            continue
        end = at + 1
        while end < len(present) and present[end] == wanted[place + end - at]:
            end += 1
        parts = (present[:place], present[place:at], present[at:end], present[end:])
        size = [prod(sizes[axis] for axis in part) for part in parts]
        perm = [axis for axis in (0, 2, 1, 3) if parts[axis]]
        kept = sorted(perm)
        read = tuple(size[axis] for axis in kept)
        steps.append((read, tuple(kept.index(axis) for axis in perm)))
        present = [*parts[0], *parts[2], *parts[1], *parts[3]]
    return steps


def merged_broadcast(shapes: Sequence[Dims], result: Dims) -> tuple[list[Dims], Dims]:
    """Return operands and result of a broadcast with as few axes as possible.

    Neighbouring axes become one where each operand has all of them or repeats along all of them.
    A scalar stays one.

    Args:
        shapes: those of the operands.
        result: that of the result, without zeros.
    """
    rank = len(result)
    padded = [(*(1,) * (rank - len(shape)), *shape) for shape in shapes]
    groups: list[tuple[tuple[bool, ...], list[int]]] = []
    for axis, size in enumerate(result):
        if size == 1:
            continue
        has = tuple(shape[axis] == size for shape in padded)
        if groups and groups[-1][0] == has:
            groups[-1][1].append(axis)
        else:
            groups.append((has, [axis]))
    if not groups:
        groups = [((True,) * len(shapes), list(range(rank)))]
    merged = [
        tuple(prod(shape[axis] for axis in axes) for _, axes in groups) if shapes[at] else ()
        for at, shape in enumerate(padded)
    ]
    return merged, tuple(prod(result[axis] for axis in axes) for _, axes in groups)


def around(dims: Sequence[int], axis: int) -> tuple[int, int, int]:
    """Return the elements before an axis, along it, and after it."""
    return prod(dims[:axis]), dims[axis], prod(dims[axis + 1 :])
