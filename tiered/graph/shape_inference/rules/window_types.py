"""Types of the operators with sliding windows: convolution and pooling; and of Pad."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tiered.graph.core.dtypes import DataType
from tiered.graph.core.types import Dim, Shape, TensorType, tensor_type
from tiered.graph.shape_inference.rules.shape_rule import shape_rule
from tiered.graph.shape_inference.rules.standard_types import Types, axis_within, numbers, shape_of

if TYPE_CHECKING:
    from tiered.graph.core.node import Node


@shape_rule("Conv")
def _conv(node: Node, operands: list[TensorType]) -> Types:
    data, weight = shape_of(operands[0]), shape_of(operands[1])
    if len(data) != len(weight) or len(data) < 3:
        return None
    kernel = [dim for dim in weight[2:] if isinstance(dim, int)]
    given = node.attr("kernel_shape")
    if len(kernel) != len(data) - 2 or (given is not None and list(given) != kernel):
        return None
    return _windows(node, operands[0], weight[0], kernel)


@shape_rule("AveragePool", "LpPool", "MaxPool")
def _pool(node: Node, operands: list[TensorType]) -> Types:
    data, kernel = shape_of(operands[0]), node.attr("kernel_shape")
    if len(data) != len(kernel) + 2:
        return None
    if not node.attr("ceil_mode", 0):
        return _windows(node, operands[0], data[1], kernel)
    kind = _rounded_up(node, operands[0], kernel)
    if len(node._outputs) == 2:
        return [kind, tensor_type(DataType.INT64, kind.shape)]
    return kind


def _rounded_up(node: Node, data: TensorType, kernel: Sequence[int]) -> TensorType:
    """Return the type with one element for each window that starts before the padding at the end.

    onnx also counts windows that start in that padding, so it is not asked: an unknown dim is None.
    """
    shape, rank = shape_of(data), len(kernel)
    strides = node.attr("strides", None) or (1,) * rank
    dilations = node.attr("dilations", None) or (1,) * rank
    pads = node.attr("pads", None) or (0,) * (2 * rank)
    is_explicit = node.attr("auto_pad", "NOTSET") == "NOTSET" and len(pads) == 2 * rank
    sizes: list[Dim] = [None] * rank
    for at, (dim, size, stride, dilation) in enumerate(
        zip(shape[2:], kernel, strides, dilations, strict=True)
    ):
        before, after, extent = pads[at], pads[at + rank], (size - 1) * dilation + 1
        if not is_explicit or min(before, after) < 0 or max(before, after) >= extent:
            continue
        if not isinstance(dim, int):
            is_kept = stride == 1 and before + after == extent - 1
            sizes[at] = dim if is_kept else None
            continue
        free = dim + before + after - extent
        if dim < 1 or free < 0:
            continue
        count = -(-free // stride) + 1
        sizes[at] = count - 1 if (count - 1) * stride >= dim + before else count
    return tensor_type(data.dtype, (*shape[:2], *sizes))


def _windows(node: Node, data: TensorType, channels: Dim, kernel: Sequence[int]) -> Types:
    """Return the type with one element for each position of the kernel; an unknown dim is None."""
    shape, rank = shape_of(data), len(kernel)
    strides = node.attr("strides", None) or (1,) * rank
    dilations = node.attr("dilations", None) or (1,) * rank
    pads = node.attr("pads", None) or (0,) * (2 * rank)
    padding = node.attr("auto_pad", "NOTSET")
    if padding not in ("NOTSET", "VALID") or len(pads) != 2 * rank:
        return None
    if padding == "VALID":
        pads = (0,) * (2 * rank)
    sizes: list[Dim] = []
    for at, (dim, size, stride, dilation) in enumerate(
        zip(shape[2:], kernel, strides, dilations, strict=True)
    ):
        if not isinstance(dim, int):
            is_kept = stride == 1 and pads[at] + pads[at + rank] == (size - 1) * dilation
            sizes.append(dim if is_kept else None)
            continue
        free = dim + pads[at] + pads[at + rank] - ((size - 1) * dilation + 1)
        if free < 0:
            return None
        sizes.append(free // stride + 1)
    return tensor_type(data.dtype, (shape[0], channels, *sizes))


@shape_rule("GlobalAveragePool", "GlobalMaxPool")
def _global_pool(_: Node, operands: list[TensorType]) -> Types:
    shape = shape_of(operands[0])
    if len(shape) < 3:
        return None
    return tensor_type(operands[0].dtype, (*shape[:2], *(1,) * (len(shape) - 2)))


@shape_rule("Pad")
def _pad(node: Node, operands: list[TensorType]) -> Types:
    shape = shape_of(operands[0])
    given = node.attribute_protos().get("pads")
    pads = numbers(node.input(1)) if given is None else list(given.ints)
    axes = list(range(len(shape)))
    if node.input(3) is not None:
        axes = [axis_within(axis, len(shape)) for axis in numbers(node.input(3))]
    if len(pads) != 2 * len(axes) or len(set(axes)) != len(axes):
        return None
    sizes: list[Dim] = list(shape)
    for at, axis in enumerate(axes):
        more, dim = pads[at] + pads[at + len(axes)], sizes[axis]
        if more:
            sizes[axis] = dim + more if isinstance(dim, int) else None
    return tensor_type(operands[0].dtype, _checked(sizes))


def _checked(sizes: Sequence[Dim]) -> Shape:
    if any(isinstance(dim, int) and dim < 0 for dim in sizes):
        raise ValueError("a dim would be negative")
    return tuple(sizes)
