"""Elements over the reals as arrays: scale * atom + offset, two numbers and a term."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tiered.certify.domains.terms import Array, joined

AFFINE: Final = np.dtype([("a", "<u8"), ("b", "<u8"), ("s", "<f8"), ("o", "<f8")])


def affine(a: Array, b: Array, scale: Array | float, offset: Array | float) -> Array:
    """Return elements of their parts."""
    made = np.empty(np.broadcast_shapes(*map(np.shape, (a, b, scale, offset))), AFFINE)
    made["a"], made["b"], made["s"], made["o"] = a, b, scale, offset
    return made


def of_atoms(terms: Array) -> Array:
    """Return terms as elements."""
    return affine(terms["a"], terms["b"], 1.0, 0.0)


def atoms_of(elements: Array) -> Array:
    return joined(elements["a"], elements["b"])


def is_number(elements: Array) -> Array:
    """Return where elements are numbers."""
    return np.asarray(elements["s"] == 0)


def same_atoms(x: Array, y: Array) -> Array:
    return np.asarray((x["a"] == y["a"]) & (x["b"] == y["b"]))


def without_zero(elements: Array) -> Array:
    """Return elements; where the scale is zero, there is no atom."""
    gone = is_number(elements)
    if gone.any():
        elements = affine(
            np.where(gone, 0, elements["a"]), np.where(gone, 0, elements["b"]),
            elements["s"], elements["o"],
        )  # fmt: skip
    return elements


def normal(x: Array) -> Array:
    """Return elements divided by their scales."""
    with np.errstate(all="ignore"):
        offset = np.where(is_number(x), x["o"], x["o"] / np.where(x["s"] == 0, 1, x["s"]))
    return affine(x["a"], x["b"], np.where(is_number(x), 0.0, 1.0), offset)


def merged(lanes: Sequence[Array]) -> list[Array]:
    """Return the summands at each place in one order, equal atoms as one; zeros are the last.

    Args:
        lanes: elements without offsets, all of one shape.
    """
    found = _sorted(lanes)
    has_merged = False
    for at in range(len(found) - 1):
        one, other = found[at], found[at + 1]
        alike = same_atoms(one, other) & ~is_number(one) & ~is_number(other)
        if alike.any():
            has_merged = True
            total = affine(other["a"], other["b"], one["s"] + other["s"], 0.0)
            found[at + 1] = without_zero(np.where(alike, total, other))
            found[at] = np.where(alike, np.zeros((), AFFINE), one)
    return _sorted(found) if has_merged else found


def _sorted(lanes: Sequence[Array]) -> list[Array]:
    found = [without_zero(lane) for lane in lanes]
    for end in range(len(found) - 1, 0, -1):
        for at in range(end):
            one, other = found[at], found[at + 1]
            smaller = (one["a"] < other["a"]) | (
                (one["a"] == other["a"]) & (one["b"] <= other["b"])
            )
            is_first = is_number(other) | (~is_number(one) & smaller)
            if not is_first.all():
                found[at] = _chosen(is_first, one, other)
                found[at + 1] = _chosen(is_first, other, one)
    return found


def _chosen(where: Array, one: Array, other: Array) -> Array:
    """Return elements of one array or another: faster than `np.where` of structures."""
    made = np.empty(where.shape, AFFINE)
    for part in ("a", "b", "s", "o"):
        made[part] = np.where(where, one[part], other[part])
    return made
