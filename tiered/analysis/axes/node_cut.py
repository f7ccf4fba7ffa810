"""What a node needs for a part of its output along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final, Literal, NamedTuple

from tiered.graph import ELEMENTWISE, Node, Value, is_deterministic, non_negative_axes
from tiered.graph.core.types import Dim
from tiered.graph.opset.aspect import Aspect
from tiered.graph.queries.op_traits import REDUCTIONS

Dims = tuple[Dim, ...]
Shape = tuple[int, ...]
Form = Literal["same", "pads", "shape"]


class Window(NamedTuple):
    """The range of an operand that a range of the output needs.

    Attributes:
        axis: of the operand.
        size: of that axis; no number if it is dynamic.
        stride: the distance of the first elements for neighbours of the output.
        pad: the elements before the operand that the first output begins at.
        extent: the elements that one element of the output needs.
    """

    axis: int
    size: Dim
    stride: int = 1
    pad: int = 0
    extent: int = 1

    @property
    def is_plain(self) -> bool:
        """Whether each element of the output needs the element with its index alone."""
        return (self.stride, self.pad, self.extent) == (1, 0, 1)

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
        low = begin * self.stride - self.pad
        return low, low + (end - begin - 1) * self.stride + self.extent


class NodeCut(NamedTuple):
    """A node in parts along an axis of its output.

    Attributes:
        axis: of the output.
        windows: for each operand, in the operator's newest form, which part it takes; None for all
            of it.
        form: the part has the same attributes, other pads along the axis, or a shape as operand.
    """

    axis: int
    windows: tuple[Window | None, ...]
    form: Form = "same"


Rule = Callable[[Node, int], tuple[Sequence[Window | None], Form] | None]
"""Returns the part of each operand that a part of the output along an axis needs; or None."""

CUTS: Final[Aspect[Rule]] = Aspect("cut")

cut_rule = CUTS.rule
"""Registers a function as the rule of how a cut passes through operators."""


def node_cut(node: Node, axis: int) -> NodeCut | None:
    """Return how a node is computed in parts along an axis of its output; None if it cannot be."""
    used = [value for value in node.outputs if value is not None and value.is_used]
    if used != [node.outputs[0]]:
        return None
    values = (value for value in (*node.operands, *used) if value is not None)
    if any(value.static_shape is None for value in values):
        return None
    return cut_along(node, axis)


def cut_along(node: Node, axis: int) -> NodeCut | None:
    """Return which parts of its operands a part of a node's first output needs along an axis.

    The other dims may be dynamic. None if the operator has no rule, or mixes the elements along the
    axis in another way.
    """
    rule = CUTS.of(node)
    if rule is None or node.has_references or not is_deterministic(node):
        return None
    values = (value for value in (*node.operands, node.outputs[0]) if value is not None)
    if any(value.shape is None for value in values):
        return None
    found = rule(node, axis)
    return None if found is None else NodeCut(axis, tuple(found[0]), found[1])


def shape_of(value: Value | None) -> Shape:
    """Return the shape of a value that is known to be static."""
    assert value is not None
    shape = value.static_shape
    assert shape is not None
    return shape


def _dims(value: Value | None) -> Dims:
    """Return the dims of a value of known rank."""
    assert value is not None
    assert value.shape is not None
    return value.shape


def _on(value: Value | None, axis: int) -> Window:
    """Return the window of an operand with the same indices along an axis."""
    return Window(axis, _dims(value)[axis])


def _first(node: Node, axis: int) -> list[Window | None]:
    """Return the windows of a node that reads its first operand alone along an axis."""
    return [_on(node.operands[0], axis), *[None] * (len(node.operands) - 1)]


def _broadcast(value: Value | None, shape: Dims, axis: int) -> Window | None:
    """Return the window of an operand that is broadcast to a shape."""
    if value is None:
        return None
    own = _dims(value)
    at = axis - len(shape) + len(own)
    return None if at < 0 or own[at] != shape[axis] else Window(at, own[at])


@CUTS.rule(*ELEMENTWISE)
def _elementwise(node: Node, axis: int) -> tuple[Sequence[Window | None], Form]:
    shape = _dims(node.output)
    return [_broadcast(value, shape, axis) for value in node.operands], "same"


@CUTS.rule("MatMul")
def _matmul(node: Node, axis: int) -> tuple[Sequence[Window | None], Form] | None:
    a, b = node.operands
    shape = _dims(node.output)
    if len(_dims(a)) < 2 or len(_dims(b)) < 2:
        return None
    from_end = axis - len(shape)
    if from_end == -2:
        return [_on(a, len(_dims(a)) - 2), None], "same"
    if from_end == -1:
        return [None, _on(b, len(_dims(b)) - 1)], "same"
    return [_broadcast(a, shape, axis), _broadcast(b, shape, axis)], "same"


@CUTS.rule("Gemm")
def _gemm(node: Node, axis: int) -> tuple[Sequence[Window | None], Form]:
    a, b = node.operands[:2]
    bias = node.operand(2)
    of_a = _on(a, 1 if node.attr("transA") else 0) if axis == 0 else None
    of_b = _on(b, 0 if node.attr("transB") else 1) if axis == 1 else None
    of_bias = _broadcast(bias, _dims(node.output), axis)
    return [of_a, of_b, of_bias][: len(node.operands)], "same"


@CUTS.rule("Hardmax", "LogSoftmax", "Softmax")
def _along_one(node: Node, axis: int) -> tuple[Sequence[Window | None], Form] | None:
    """Softmax and its like, which mix the elements of one axis."""
    rank = len(_dims(node.output))
    if node.version < 13 or node.attr("axis") % rank == axis:
        return None
    return _first(node, axis), "same"


@CUTS.rule("LayerNormalization", "RMSNormalization")
def _normalization(node: Node, axis: int) -> tuple[Sequence[Window | None], Form] | None:
    """LayerNormalization and RMSNormalization, which mix all axes from one on."""
    is_before = axis < node.attr("axis") % len(_dims(node.output))
    return (_first(node, axis), "same") if is_before else None


@CUTS.rule("BatchNormalization")
def _batch_normalization(node: Node, axis: int) -> tuple[Sequence[Window | None], Form] | None:
    if node.attr("training_mode", 0):
        return None
    if axis != 1:
        return _first(node, axis), "same"
    return [_on(value, 1 if at == 0 else 0) for at, value in enumerate(node.operands)], "same"


@CUTS.rule("Transpose")
def _transpose(node: Node, axis: int) -> tuple[Sequence[Window | None], Form] | None:
    return None if node.perm is None else ([_on(node.operands[0], node.perm[axis])], "same")


@CUTS.rule("Flatten", "Reshape", "Squeeze", "Unsqueeze")
def _reshape(node: Node, axis: int) -> tuple[Sequence[Window | None], Form] | None:
    """An axis that is the same before and after; those ahead of it may become other ones."""
    data = node.operands[0]
    assert data is not None
    before, after = data.static_shape, node.output.static_shape
    if before is None or after is None or 0 in before:
        return None
    ahead = prod(after[:axis])
    at = next((at for at in range(len(before)) if prod(before[: at + 1]) > ahead), None)
    if at is None or prod(before[:at]) != ahead or before[at] != after[axis]:
        return None
    return [Window(at, before[at]), *[None] * (len(node.operands) - 1)], "shape"


@CUTS.rule("Expand")
def _expand(node: Node, axis: int) -> tuple[Sequence[Window | None], Form]:
    return [_broadcast(node.operands[0], _dims(node.output), axis), None], "shape"


@CUTS.rule("Concat")
def _concat(node: Node, axis: int) -> tuple[Sequence[Window | None], Form] | None:
    if node.attr("axis") % len(_dims(node.output)) == axis:
        return None
    return [_on(value, axis) for value in node.operands], "same"


@CUTS.rule("Slice")
def _slice(node: Node, axis: int) -> tuple[Sequence[Window | None], Form] | None:
    axes = node.operand("axes")
    if axes is None or axes.const is None:
        return None
    named = non_negative_axes(axes.const.ravel(), len(_dims(node.output)))
    return None if named is None or axis in named else (_first(node, axis), "same")


@CUTS.rule("Pad")
def _pad(node: Node, axis: int) -> tuple[Sequence[Window | None], Form] | None:
    before, after = _dims(node.operands[0]), _dims(node.output)
    pads = node.operand("pads")
    # An axis that is cropped and padded may keep its size.
    if pads is None or pads.const is None or (pads.const < 0).any():
        return None
    return (_first(node, axis), "same") if before[axis] == after[axis] else None


@CUTS.rule("Gather")
def _gather(node: Node, axis: int) -> tuple[Sequence[Window | None], Form]:
    data, indices = node.operands
    at, rank = node.attr("axis") % len(_dims(data)), len(_dims(indices))
    if at <= axis < at + rank:
        return [None, _on(indices, axis - at)], "same"
    return [_on(data, axis if axis < at else axis - rank + 1), None], "same"


@CUTS.rule(*REDUCTIONS)
def _reduce(node: Node, axis: int) -> tuple[Sequence[Window | None], Form] | None:
    rank = len(_dims(node.operands[0]))
    axes = node.operand(1)
    if axes is None or axes.const is None or not axes.const.size:
        return None
    reduced = non_negative_axes(axes.const.ravel(), rank)
    if reduced is None:
        return None
    kept = [at for at in range(rank) if node.attr("keepdims") or at not in reduced]
    return None if kept[axis] in reduced else (_first(node, kept[axis]), "same")


@CUTS.rule("Conv")
def _convolution(node: Node, axis: int) -> tuple[Sequence[Window | None], Form] | None:
    weight = node.operands[1]
    if axis == 0:
        return _first(node, 0), "same"
    if axis == 1:
        if node.attr("group") != 1:
            return None
        bias = [_on(each, 0) for each in node.operands[2:] if each is not None]
        return [None, _on(weight, 0), *bias], "same"
    return _pooled(node, axis, _dims(weight)[2:])


@CUTS.rule("AveragePool", "MaxPool")
def _pool(node: Node, axis: int) -> tuple[Sequence[Window | None], Form] | None:
    if axis < 2:
        return _first(node, axis), "same"
    return _pooled(node, axis, node.attr("kernel_shape"))


def _pooled(
    node: Node, axis: int, kernel: Sequence[Dim]
) -> tuple[Sequence[Window | None], Form] | None:
    """A spatial axis: neighbours along it share elements of the operand."""
    spatial = len(kernel)
    if node.attr("auto_pad") != "NOTSET" or node.attr("ceil_mode", 0):
        return None
    at = axis - 2
    pads = node.attr("pads") or (0,) * 2 * spatial
    dilation = (node.attr("dilations", None) or (1,) * spatial)[at]
    taps = kernel[at]
    if not isinstance(taps, int):
        return None
    extent = (taps - 1) * dilation + 1
    stride = (node.attr("strides") or (1,) * spatial)[at]
    size = _dims(node.operands[0])[axis]
    window = Window(axis, size, stride, pads[at], extent)
    return [window, *[None] * (len(node.operands) - 1)], "pads"


@CUTS.rule("DequantizeLinear", "QuantizeLinear")
def _quantized(node: Node, axis: int) -> tuple[Sequence[Window | None], Form] | None:
    """QuantizeLinear and DequantizeLinear, of one scale or of one for each index of an axis."""
    if node.attr("block_size", 0):
        return None
    rest: list[Window | None] = [None] * (len(node.operands) - 1)
    is_by_index = len(_dims(node.operands[1])) == 1 and _dims(node.operands[1]) != (1,)
    if is_by_index and node.attr("axis") % len(_dims(node.output)) == axis:
        rest = [None if value is None else _on(value, 0) for value in node.operands[1:]]
    return [_on(node.operands[0], axis), *rest], "same"


@CUTS.rule("GlobalAveragePool", "GlobalMaxPool")
def _rows(node: Node, axis: int) -> tuple[Sequence[Window | None], Form] | None:
    """What keeps batch and channels apart, and mixes all other axes."""
    return (_first(node, axis), "same") if axis < 2 else None
