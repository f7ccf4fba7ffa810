"""Where a Reshape may put the samples of a batch."""

from __future__ import annotations

from tiered.analysis.batching.sample_facts import BatchRows, Sizes, product
from tiered.graph.shape_inference.symbolic_dims import Size, divide, multiply


def placements(rows: BatchRows, before: Sizes, after: Sizes, old: int) -> list[BatchRows]:
    """Return the axes of a reshaped tensor that may carry the samples, the likeliest first."""
    ahead = product((*before[: rows.axis], rows.outer))
    behind = product((rows.inner, *before[rows.axis + 1 :]))
    found: list[BatchRows] = []
    for axis in range(len(after)):
        outer = _exact(ahead, product(after[:axis]))
        inner = _exact(behind, product(after[axis + 1 :]))
        if outer is not None and inner is not None:
            made = BatchRows(axis, outer, inner)
            if after[axis] in (None, made.size(old)):
                found.append(made)
    # Samples share an axis with others only where no axis can be theirs alone.
    whole = [each for each in found if each.is_whole]
    return sorted(whole or found, key=lambda each: (each.outer != 1, abs(each.axis - rows.axis)))


def _exact(a: Size | None, b: Size | None) -> Size | None:
    """Return a / b if it has no remainder."""
    if a is None or b is None or a == 0:
        return None
    quotient = divide(a, b)
    return quotient if quotient is not None and multiply(quotient, b) == a else None


def moves(rows: BatchRows, before: Sizes, after: Sizes, old: int) -> list[BatchRows]:
    """Return the axes of a reshaped tensor that the samples may be moved to, by a Transpose.

    For a batch of 1 a Reshape may stand for a Transpose: any axis of size 1 may be the batch.
    """
    rest = (*before[: rows.axis], *before[rows.axis + 1 :], *after, rows.outer, rows.inner)
    if old != 1 or not all(isinstance(size, int) and size for size in rest):
        return []
    return [BatchRows(axis) for axis, size in enumerate(after) if size == 1]
