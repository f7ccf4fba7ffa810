"""Selections: a Slice, or a Gather of constant indices, and the operands that it would cut."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tiered.graph.core.types import non_negative_axes
from tiered.rewriter.skip import Skip
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.graph import Graph, Node, Value

_MOST: Final = 1 << 16
"""Larger constants are not cut: others may read them, and would keep them alive."""


class Selection(Record):
    """What a Slice or a Gather takes of a tensor.

    Attributes:
        node: the Slice or Gather.
        axes: those that it selects along, counted from the front.
        drops: whether the axis is gone in the result.
        share: which part of all elements it takes, below 1.
    """

    node: Node
    axes: tuple[int, ...]
    drops: bool
    share: float

    def cuts(self, value: Value) -> bool | None:
        """Return whether it selects from an operand of the operator that computes its tensor.

        False for one that broadcasts along all axes, None if that is unclear.
        """
        whole = self.node.given(0)
        shape, full = value.shape, whole.shape
        if shape is None or full is None:
            return None
        shift = len(full) - len(shape)
        sizes = {at: shape[at - shift] if at >= shift else 1 for at in self.axes}
        if shift == 0 and all(size == full[at] != 1 for at, size in sizes.items()):
            is_large = value.is_constant and _size(value) > _MOST
            return None if None in sizes.values() or is_large else True
        # A dim of 1 would be in the way where its axis is gone.
        if self.drops and any(at >= shift for at in self.axes):
            return None
        return False if all(size == 1 for size in sizes.values()) else None

    def applied(self, graph: Graph, value: Value) -> Value:
        """Return the same selection of another tensor."""
        operands = [value, *self.node.inputs[1:]]
        made = graph.add_node(self.node.op_type, operands, attributes=self.node.attributes)
        return made.output


def _size(value: Value) -> int:
    return 0 if value.tensor is None else value.tensor.size


def selection_of(node: Node) -> Selection | Skip:
    """Return what a Slice or Gather takes, if it surely takes fewer elements than there are."""
    x = node.given(0)
    if node.has_references or x.shape is None:
        return Skip("the shape of what is selected from is not known")
    rank = len(x.shape)
    axes = _axes(node, rank)
    if axes is None:
        return Skip("the axes or the indices are not constant")
    if node.op_type == "Gather":
        indices = node.given(1)
        drops = indices.rank == 0
        if indices.rank not in (0, 1):
            return Skip("the indices have several dims")
        taken = 1 if drops else _size(indices)
        sizes: list[tuple[int | str | None, int | str | None]] = [(x.shape[axes[0]], taken)]
    else:
        drops = False
        result = node.output.shape or ()
        sizes = [(x.shape[at], result[at]) for at in axes if result]
    before, after = 1, 1
    for size, taken_size in sizes:
        if not isinstance(size, int) or not isinstance(taken_size, int):
            return Skip("how much it selects is not known")
        before, after = before * size, after * taken_size
    if after >= before:
        return Skip("it selects no fewer elements")
    return Selection(node, axes, drops, after / before)


def _axes(node: Node, rank: int) -> tuple[int, ...] | None:
    """Return the axes of a selection; None if they or what is taken is not constant."""
    if node.op_type == "Gather":
        if node.const(1) is None:
            return None
        return non_negative_axes([int(node.attr("axis"))], rank)
    starts, axes = node.operand(1), node.operand(3)
    if any(value is not None and value.const is None for value in node.operands[1:]):
        return None
    assert starts is not None
    assert starts.const is not None
    numbers = range(starts.const.size) if axes is None or axes.const is None else axes.const.ravel()
    return non_negative_axes(numbers, rank)
