"""Targets of Reshape: what remains of a 0, which copies a dim, in the target of another tensor."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.graph.core.types import Dim


def moved_target(
    sizes: Sequence[int], copied: Sequence[Dim], stays: Sequence[bool]
) -> list[int] | None:
    """Return a target without the 0s that would copy another dim; None if one cannot be replaced.

    A 0 becomes the dim that it copies if that is a number, or else the one -1 of a target.

    Args:
        sizes: the target, with 0 for each copied dim.
        copied: the dim that the 0 at each place copies.
        stays: whether a 0 at each place still copies this dim.
    """
    target = []
    for size, dim, is_kept in zip(sizes, copied, stays, strict=True):
        if size != 0 or is_kept:
            target.append(size)
        else:
            target.append(dim if isinstance(dim, int) and dim > 0 else -1)
    if target.count(-1) > 1 or (0 in target and -1 in target and -1 not in sizes):
        # Beside a dim that may be 0, a new -1 could be anything.
        return None
    return target
