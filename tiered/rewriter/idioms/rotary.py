"""Rotary embeddings: the halves of the last axis, the second one negated and first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tiered.rewriter import const, op, opt, var

if TYPE_CHECKING:
    from tiered.graph import Node


def _slice(of: str) -> Any:
    names = (const(name=f"{of}_{what}") for what in ("start", "end", "axis"))
    return op.Slice(var.x, *names, opt.steps).bind(of)


split_in_two = op.Split(var.x, opt.sizes, axis=var.axis, attrs="ignored").bind("split")

rotated_half = op.Concat(op.Neg(_slice("second")), _slice("first"), axis=...) | op.Concat(
    op.Neg(split_in_two.out(1)), split_in_two, axis=...
)
"""Concat(-second half, first half) of x, by two Slices or a Split."""


def are_halves(
    size: int, rank: int, first: Node | None, second: Node | None, split: Node | None
) -> bool:
    """Return whether Slices, or a Split, are the halves of the last of `rank` axes.

    Args:
        size: the size of that axis.
        rank: the number of axes.
        first, second: the Slices of the pattern, if there are any.
        split: the Split of the pattern, if there is one.
    """
    last = (-1, rank - 1)
    if split is not None:
        if len(split.outputs) != 2 or split.attr("axis") not in last:
            return False
        sizes = split.operand("split")
        parts = None if sizes is None else sizes.const
        return sizes is None or (parts is not None and parts.tolist() == [size // 2] * 2)
    wanted = ((first, 0, size // 2), (second, size // 2, size))
    return all(_span(node, size, last) == (start, end) for node, start, end in wanted)


def _span(node: Node | None, size: int, last: tuple[int, int]) -> tuple[int, int] | None:
    """Return the range of the last dim that a Slice selects; None for other Slices."""
    if node is None or node.operand("axes") is None:
        return None
    given = [value.number for value in node.operands[1:] if value is not None]
    numbers = [int(number) for number in given if number is not None]
    if len(numbers) < len(given) or numbers[2] not in last or numbers[3:] not in ([], [1]):
        return None
    start, end = (at + size if at < 0 else min(at, size) for at in numbers[:2])
    return start, end
