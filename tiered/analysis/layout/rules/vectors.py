"""Rules of operators with one number for each axis: sizes, starts, pads, repeats, scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tiered.analysis.layout.propagation import (
    LAYOUTS,
    NO_RANK,
    Kernel,
    Labels,
    Permuted,
    Propagation,
    constant_array,
    constant_operand,
    rank_of,
    whole,
)
from tiered.graph import Node, Value
from tiered.graph.opset.newest_form import newest_attribute
from tiered.rewriter import Skip


@LAYOUTS.rule("Pad")
def pad(node: Node) -> Propagation | Skip:
    """Pad: the pads are of all axes or of given ones."""
    rank, axes = rank_of(node), constant_operand(node, 3)
    if rank is None:
        return NO_RANK
    if axes is None and len(node.inputs) > 3 and node.inputs[3] is not None:
        return Skip("its axes are not constant")
    labels = whole(rank)
    others = (None for _ in node.inputs[1:])
    kernel = Kernel("pad", _changed(node, labels))
    return Propagation((labels, *others), (labels,), _write_pad, kernel=kernel)


def _changed(node: Node, labels: Labels) -> Labels:
    """Return the labels of the axes whose size changes, or may change."""
    before, after = node.inputs[0], node.outputs[0]
    if before is None or after is None or before.shape is None or after.shape is None:
        return labels
    sizes = zip(labels, before.shape, after.shape, strict=True)
    return tuple([label for label, old, new in sizes if old is None or old != new])


def _write_pad(op: Permuted) -> Sequence[Value]:
    labels, axes = op.propagation.own(0), constant_operand(op.node, 3)
    if axes is None:
        return op.emit({0: op.operand(0), 1: op.vector(1, labels, halves=2)})
    return op.emit({0: op.operand(0), 3: _moved(op, labels, axes)})


def _moved(op: Permuted, labels: Labels, axes: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the new numbers of axes, in the same sequence."""
    return np.array([op.moved(labels, int(axis)) for axis in axes.ravel()], axes.dtype)


@LAYOUTS.rule("Slice")
def slices(node: Node) -> Propagation | Skip:
    """Slice: the axes are given, or the leading ones."""
    rank = rank_of(node)
    if rank is None:
        return NO_RANK
    if _sliced_axes(node) is None:
        return Skip("its axes are not constant")
    labels = whole(rank)
    others = (None for _ in node.inputs[1:])
    kernel = Kernel("slice", _changed(node, labels))
    return Propagation((labels, *others), (labels,), _write_slices, kernel=kernel)


def _sliced_axes(node: Node) -> np.ndarray[Any, Any] | None:
    axes = node.operand("axes")
    if axes is not None:
        return constant_operand(node, 3)
    starts = constant_operand(node, 1)
    if starts is not None:
        return np.arange(starts.size, dtype=np.int64)
    value = node.operand("starts")
    size = value.dim(0) if value is not None else None
    # The axes have the dtype of the starts.
    dtype = None if value is None or value.dtype is None else value.dtype
    kind = np.int32 if dtype == 6 else np.int64
    return np.arange(size, dtype=kind) if isinstance(size, int) else None


def _write_slices(op: Permuted) -> Sequence[Value]:
    axes = _sliced_axes(op.node)
    assert axes is not None
    return op.emit({0: op.operand(0), 3: _moved(op, op.propagation.own(0), axes)})


@LAYOUTS.rule("Tile")
def tile(node: Node) -> Propagation | Skip:
    """Tile: one number of repeats for each axis."""
    rank = rank_of(node)
    if rank is None:
        return NO_RANK
    kernel = Kernel("tile")
    return Propagation((whole(rank), None), (whole(rank),), _write_tile, kernel=kernel)


def _write_tile(op: Permuted) -> Sequence[Value]:
    return op.emit({0: op.operand(0), 1: op.vector(1, op.propagation.own(0))})


@LAYOUTS.rule("Expand")
def expand(node: Node) -> Propagation | Skip:
    """Expand: the operand and the shape broadcast to each other."""
    rank, shape = rank_of(node), node.operand("shape")
    size = None if shape is None else shape.dim(0)
    if rank is None or not isinstance(size, int):
        return NO_RANK
    if size < rank and constant_operand(node, 1) is None:
        return Skip("its shape has fewer axes than its operand")
    most = max(rank, size)
    own, kernel = whole(most)[most - rank :], Kernel("expand")
    return Propagation((own, None), (whole(most),), _write_expand, kernel=kernel)


def _write_expand(op: Permuted) -> Sequence[Value]:
    (labels,) = op.propagation.outputs
    assert labels is not None
    data, shape = op.aligned(0, labels), constant_operand(op.node, 1)
    if shape is None:
        return op.emit({0: data, 1: op.vector(1, labels)})
    filled = np.concatenate([np.ones(len(labels) - shape.size, shape.dtype), shape])
    return op.emit({0: data, 1: filled[list(op.perm(labels))]})


# --- Resize ---------------------------------------------------------------------------------------


_STRETCH: Final = ("stretch", b"stretch")
_CROP: Final = ("tf_crop_and_resize", b"tf_crop_and_resize")


@LAYOUTS.rule("Resize")
def resize(node: Node) -> Propagation | Skip:
    """Resize: scales or sizes of all axes or of given ones.

    Interpolation runs axis by axis, and runtimes have kernels for trailing resized axes only: these
    stay last, in their order.
    """
    rank = rank_of(node)
    if rank is None:
        return NO_RANK
    labels = whole(rank)
    inputs = (labels, *(None for _ in node.inputs[1:]))
    if newest_attribute(node, "mode") in ("nearest", b"nearest"):
        return Propagation(inputs, (labels,), _write_resize)
    resized = _resized(node, labels)
    return Propagation(
        inputs,
        (labels,),
        _write_resize,
        allows=lambda order: order[rank - len(resized) :] == resized,
    )


def _resized(node: Node, labels: Labels) -> Labels:
    """Return the axes that may be resized: all that are not known to be unchanged.

    With scales, an axis is unchanged only if its scale is 1: a scale of 1.2 maps 3 elements to 3
    different ones. So do a crop and a policy that keeps the aspect ratio.
    """
    named = node.attr("axes", None)
    axes = [axis % len(labels) for axis in (labels if named is None else named)]
    value = node.operand("scales")
    if value is not None and value.dim(0) == 0:
        value = None
    keeps_ratio = newest_attribute(node, "keep_aspect_ratio_policy") not in _STRETCH
    crops = newest_attribute(node, "coordinate_transformation_mode") in _CROP
    if value is not None or keeps_ratio or crops:
        scales = None if value is None or crops else constant_array(value)
        if scales is not None and scales.size == len(axes):
            axes = [axis for axis, scale in zip(axes, scales, strict=True) if scale != 1]
        return tuple(label for label in labels if label in axes)
    before, after = node.input(0), node.outputs[0]
    assert before is not None
    if after is None or after.shape is None or before.shape is None:
        return labels
    return tuple(
        label
        for label, old, new in zip(labels, before.shape, after.shape, strict=True)
        if old is None or old != new
    )


def _write_resize(op: Permuted) -> Sequence[Value]:
    labels, node = op.propagation.own(0), op.node
    axes = node.attr("axes", None)
    if axes:
        moved = [op.moved(labels, axis) for axis in axes]
        return op.emit({0: op.operand(0)}, axes=moved)
    operands: dict[int, Any] = {0: op.operand(0)}
    for slot, halves in ((1, 2), (2, 1), (3, 1)):
        if slot < len(op.operands) and op.operands[slot] is not None:
            operands[slot] = _numbers(op, slot, labels, halves)
    return op.emit(operands)


def _numbers(op: Permuted, slot: int, labels: Labels, halves: int) -> Value | None:
    """Return a region of interest, scales or sizes; an empty one means absent."""
    value = op.operands[slot]
    assert value is not None
    return value if value.dim(0) == 0 else op.vector(slot, labels, halves)


@LAYOUTS.rule("Upsample")
def upsample(node: Node) -> Propagation | Skip:
    """Upsample: a nearest one in any order, as for Resize."""
    rank = rank_of(node)
    if rank is None:
        return NO_RANK
    if node.attr("mode") not in ("nearest", b"nearest"):
        return Skip("it interpolates")
    others = tuple(None for _ in node.inputs[1:])
    return Propagation((whole(rank), *others), (whole(rank),), _write_tile)
