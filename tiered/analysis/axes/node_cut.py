"""What a node needs for a part of its output along an axis."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tiered.analysis.axes.axis_map import Axes, AxisMap, IteratorKind, WindowSteps, dims_of
from tiered.analysis.axes.rules import axis_map
from tiered.graph import Node, Value, is_deterministic
from tiered.graph.core.types import Dim
from tiered.graph.opset.newest_form import has_newest_form
from tiered.rewriter import Skip

Shape = tuple[int, ...]
Form = Literal["same", "pads", "shape"]


class OperandWindow(NamedTuple):
    """The range of an operand that a range of the output needs.

    Attributes:
        axis: of the operand.
        size: of that axis; no number if it is dynamic.
        steps: how it walks; as they are by default, each element of the output needs the element
            with its index alone.
    """

    axis: int
    size: Dim
    steps: WindowSteps = WindowSteps()

    def range(self, begin: int, end: int) -> tuple[int, int]:
        """Return the range of the operand for a range of the output."""
        low, high = self._unbounded(begin, end)
        return max(low, 0), min(high, self._known_size)

    def pads(self, begin: int, end: int) -> tuple[int, int]:
        """Return how many elements of the range are before and after the operand."""
        low, high = self._unbounded(begin, end)
        return max(-low, 0), max(high - self._known_size, 0)

    @property
    def _known_size(self) -> int:
        assert isinstance(self.size, int)
        return self.size

    def _unbounded(self, begin: int, end: int) -> tuple[int, int]:
        stride, pad, extent = self.steps
        low = begin * stride - pad
        return low, low + (end - begin - 1) * stride + extent


class NodeCut(NamedTuple):
    """A node in parts along an axis of its output.

    Attributes:
        axis: of the output.
        windows: for each operand, in the operator's newest form, which part it takes; None for all
            of it.
        form: the part has the same attributes, other pads along the axis, or a shape as operand.
    """

    axis: int
    windows: tuple[OperandWindow | None, ...]
    form: Form = "same"


def node_cut(node: Node, axis: int) -> NodeCut | None:
    """Return how a node is computed in parts along an axis of its output; None if it cannot be."""
    if node.used_outputs.keys() != {0}:
        return None
    values = (value for value in (*node.operands, node.output) if value is not None)
    if any(value.static_shape is None for value in values):
        return None
    if not has_newest_form(node) or not is_deterministic(node):
        return None
    axes = axis_map(node)
    return None if isinstance(axes, Skip) else cut_along(node, axes, axis)


def cut_along(node: Node, axes: AxisMap, axis: int) -> NodeCut | None:
    """Return which parts of its operands a part of a node's first output needs along an axis.

    None if the elements along the axis are not of the same ones, or of windows, of the operands.

    Args:
        node: the node.
        axes: its map.
        axis: of its first output.
    """
    made = axes.outputs[0]
    label = None if made is None else made[axis]
    if label is None:
        return None
    kind = axes.kind(label)
    if kind not in (IteratorKind.PARALLEL, IteratorKind.WINDOW):
        return None
    size = node.output.dim(axis)
    windows = tuple(
        _window(value, own, label, None if slot else axes.windows.get(label), size)
        for slot, (value, own) in enumerate(zip(node.operands, axes.inputs, strict=True))
    )
    form: Form = "shape" if axes.has_shape else "same" if kind is IteratorKind.PARALLEL else "pads"
    return NodeCut(axis, windows, form)


def _window(
    value: Value | None, own: Axes | None, label: int, steps: WindowSteps | None, size: Dim
) -> OperandWindow | None:
    """Return the part of an operand; None for all of it, as of one that broadcasts to a size."""
    if own is None or label not in own:
        return None
    axis = own.index(label)
    dim = dims_of(value)[axis]
    return (
        OperandWindow(axis, dim, steps or WindowSteps())
        if steps is not None or dim == size
        else None
    )


def shape_of(value: Value | None) -> Shape:
    """Return the shape of a value that is known to be static."""
    assert value is not None
    shape = value.static_shape
    assert shape is not None
    return shape
