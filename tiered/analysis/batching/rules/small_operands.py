"""What rules read of small operands: axes, and sizes in messages."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.analysis.batching.following import Following
from tiered.analysis.batching.sample_facts import BatchRefusal
from tiered.graph import Node, non_negative_axes
from tiered.graph.shape_inference.symbolic_dims import Size


def shown(sizes: Sequence[Size | None]) -> str:
    return f"[{', '.join('?' if size is None else str(size) for size in sizes)}]"


def named_axes(state: Following, node: Node, rank: int) -> list[int] | None:
    """Return the axes of an operand `axes`; None if there is none."""
    axes = node.operand("axes")
    if axes is None:
        return None
    known = state.elements(axes)
    if known is None or not all(isinstance(axis, int) for axis in known):
        raise BatchRefusal("its axes are not constant")
    found = non_negative_axes([int(str(axis)) for axis in known], rank)
    if found is None:
        raise BatchRefusal("its axes are out of range")
    return list(found)
