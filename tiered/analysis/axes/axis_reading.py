"""What attributes and operands say of axes: those of a reduction, the letters of an Einsum."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.graph import Node
from tiered.graph.queries.op_traits import ARG_REDUCTIONS
from tiered.rewriter import Skip


def reduced_axes(node: Node, rank: int) -> tuple[int, ...] | Skip:
    """Return the axes of a reduction, non-negative and sorted."""
    if node.op_type in ARG_REDUCTIONS:
        given: Sequence[int] = [node.attr("axis")]
    else:
        operand = node.operand("axes")
        axes = None if operand is None else operand.const
        if operand is not None and axes is None:
            return Skip("its axes are not constant")
        given = () if axes is None else axes.ravel().tolist()
        if not given:
            return () if node.attr("noop_with_empty_axes") else tuple(range(rank))
    return tuple(sorted([axis + rank if axis < 0 else axis for axis in given]))


def terms_of(node: Node) -> tuple[list[str], str] | None:
    """Return the terms of an Einsum and its result, without blanks.

    None if an ellipsis stands for axes, or the result has a letter twice.
    """
    text = str(node.attr("equation")).replace(" ", "")
    left, arrow, result = text.partition("->")
    if not arrow:
        letters = left.replace(",", "")
        result = "".join(sorted(letter for letter in set(letters) if letters.count(letter) == 1))
    is_known = "." not in text and len(set(result)) == len(result)
    return (left.split(","), result) if is_known else None
