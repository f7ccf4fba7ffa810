"""Operators of images: neighbours along a spatial axis share elements of the operand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tiered.analysis.axes.axis_map import (
    AXES,
    Axes,
    AxisMap,
    IteratorKind,
    Labels,
    NoMap,
    WindowSteps,
    all_of,
    axes_in,
    dims_of,
    first_alone,
    own_labels,
    whole,
)
from tiered.graph import Node
from tiered.graph.core.types import Dim
from tiered.graph.opset.newest_form import newest_attribute

_OTHER_RANKS: Final = "its operands are not of the ranks of an image and kernels"


@AXES.rule("Conv")
def _convolution(node: Node) -> AxisMap:
    return convolution(node, 0, 1)


@AXES.rule("ConvInteger")
def _convolution_of_integers(node: Node) -> AxisMap:
    return convolution(node, 0, 1)


@AXES.rule("QLinearConv")
def _quantized_convolution(node: Node) -> AxisMap:
    return convolution(node, 0, 3)


def convolution(node: Node, image: int, kernel: int, addend: int = -1) -> AxisMap:
    """Return the map of a convolution.

    Args:
        node: the convolution.
        image, kernel: the slots of the operands.
        addend: that of an operand with the axes of the result; all others are one number, or one
            for each kernel.
    """
    operands = node.operands
    kernels = dims_of(operands[kernel])
    rank = len(kernels)
    if rank < 3 or rank != len(dims_of(operands[image])):
        raise NoMap(_OTHER_RANKS)
    samples, made, *spatial = whole(rank)
    channels, *taps = whole(rank - 1, rank)
    opaque = [] if node.attr("group", 1) == 1 else [made, channels]
    steps, unknown = _walks(node, spatial, kernels[2:])
    inputs: list[Axes | None] = [
        (made,) if value is not None and dims_of(value) not in ((), (1,)) else None
        for value in operands
    ]
    if any(
        value is not None and len(dims_of(value)) > 1
        for at, value in enumerate(operands)
        if at not in (image, kernel, addend)
    ):
        raise NoMap(_OTHER_RANKS)
    if 0 <= addend < len(operands):
        inputs[addend] = (samples, made, *spatial)
    inputs[image] = (samples, channels, *spatial)
    inputs[kernel] = (made, channels if not opaque else taps[-1] + 1, *taps)
    reduced = [*taps, taps[-1] + 1, *([] if opaque else [channels])]
    kinds = {
        **all_of(IteratorKind.REDUCTION, reduced),
        **all_of(IteratorKind.OPAQUE, [*opaque, *unknown]),
    }
    return AxisMap(tuple(inputs), ((samples, made, *spatial),), kinds, steps)


def _walks(
    node: Node, labels: Sequence[int], kernel: Sequence[Dim]
) -> tuple[dict[int, WindowSteps], list[int]]:
    """Return how the windows of a node walk along its spatial axes, and where it is not known."""
    spatial = len(kernel)
    if node.attr("auto_pad", "NOTSET") != "NOTSET" or node.attr("ceil_mode", 0):
        return {}, list(labels)
    pads = node.attr("pads", None) or (0,) * 2 * spatial
    dilations = node.attr("dilations", None) or (1,) * spatial
    strides = node.attr("strides", None) or (1,) * spatial
    found: dict[int, WindowSteps] = {}
    for at, (label, taps) in enumerate(zip(labels, kernel, strict=True)):
        if isinstance(taps, int):
            found[label] = WindowSteps(strides[at], pads[at], (taps - 1) * dilations[at] + 1)
    return found, [label for label in labels if label not in found]


@AXES.rule("AveragePool", "LpPool", "MaxPool")
def _pool(node: Node) -> AxisMap:
    labels, kernel = own_labels(node, 2), node.attr("kernel_shape")
    if kernel is None or len(kernel) != len(labels) - 2:
        raise NoMap(_OTHER_RANKS)
    steps, unknown = _walks(node, labels[2:], kernel)
    # The places of the largest elements count through the whole image.
    outputs = (labels, *(None,) * (len(node.outputs) - 1))
    return AxisMap((labels,), outputs, all_of(IteratorKind.OPAQUE, unknown), steps)


@AXES.rule("ConvTranspose")
def _transposed_convolution(node: Node) -> AxisMap:
    image, kernels = dims_of(node.operands[0]), dims_of(node.operands[1])
    rank = len(image)
    if rank < 3 or len(kernels) != rank:
        raise NoMap(_OTHER_RANKS)
    samples, made, *spatial = whole(rank)
    channels, *taps = whole(rank - 1, rank)
    before = whole(rank - 2, 3 * rank)
    is_grouped = node.attr("group", 1) != 1
    of_kernel = taps[-1] + 1 if is_grouped else made
    bias = ((made,),) * (len(node.operands) - 2)
    kinds = {
        **all_of(IteratorKind.REDUCTION, [*taps, channels]),
        **all_of(
            IteratorKind.OPAQUE, [*spatial, *before, *([made, of_kernel] if is_grouped else [])]
        ),
    }
    inputs = ((samples, channels, *before), (channels, of_kernel, *taps), *bias)
    return AxisMap(inputs, ((samples, made, *spatial),), kinds)


@AXES.rule("DepthToSpace", "SpaceToDepth")
def _blocks(node: Node) -> AxisMap:
    before = own_labels(node, 2)
    after = (0, *whole(len(before) - 1, len(before)))
    kinds = all_of(IteratorKind.OPAQUE, (*before[1:], *after[1:]))
    return AxisMap((before,), (after,), kinds)


@AXES.rule("GridSample")
def _grid_sample(node: Node) -> AxisMap:
    """GridSample: each result is at the place that its point of the grid names."""
    image, grid = dims_of(node.operands[0]), dims_of(node.operands[1])
    rank = len(image)
    if rank < 3 or len(grid) != rank:
        raise NoMap("its operands are not of the ranks of an image and a grid")
    samples, channels, *points = whole(rank)
    inside, named = whole(rank - 2, rank), 3 * rank
    kinds = {**all_of(IteratorKind.OPAQUE, inside), named: IteratorKind.REDUCTION}
    inputs = ((samples, channels, *inside), (samples, *points, named))
    return AxisMap(inputs, ((samples, channels, *points),), kinds)


@AXES.rule("DeformConv")
def _deformed_convolution(node: Node) -> AxisMap:
    """DeformConv: samples are apart; all other axes are of their own."""
    ranks = [None if value is None else len(dims_of(value)) for value in node.operands]
    start, inputs = 1, list[Axes | None]()
    for slot, rank in enumerate(ranks):
        is_by_sample = slot in (0, 2, 4)
        own = 0 if rank is None else rank - is_by_sample
        labels = whole(own, start)
        start += own
        inputs.append(None if rank is None else (0, *labels) if is_by_sample else labels)
    made = whole(len(dims_of(node.output)) - 1, start)
    kinds = all_of(IteratorKind.OPAQUE, range(1, start + len(made)))
    return AxisMap(tuple(inputs), ((0, *made),), kinds)


_CROP: Final = ("tf_crop_and_resize", b"tf_crop_and_resize")


@AXES.rule("Resize")
def _resize(node: Node) -> AxisMap:
    """Resize: a part along an axis of scale 1 is resized as it is; of given sizes it is not."""
    labels, named = own_labels(node), newest_attribute(node, "axes")
    axes = labels if named is None else axes_in(named, len(labels))
    crops = newest_attribute(node, "coordinate_transformation_mode") in _CROP
    return first_alone(
        node, all_of(IteratorKind.OPAQUE, _scaled(node, axes) if not crops else axes)
    )


@AXES.rule("Upsample")
def _upsample(node: Node) -> AxisMap:
    return first_alone(node, all_of(IteratorKind.OPAQUE, _scaled(node, own_labels(node))))


def _scaled(node: Node, axes: Labels) -> Labels:
    """Return the axes that may be scaled: all but those with a constant scale of 1."""
    value = node.operand("scales")
    scales = None if value is None else value.const
    if scales is None or scales.size != len(axes):
        return axes
    return tuple(axis for axis, scale in zip(axes, scales.ravel(), strict=True) if scale != 1)
