"""Operators that have some axes at fixed places: the orders in which they exist.

That these axes are walked apart or together follows from their axis maps; that channels are the
second axis, or normalised axes the last ones, does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

from tiered.analysis.axes.axis_map import map_of
from tiered.analysis.layout.axis_propagation import (
    LAYOUTS,
    AxisPropagation,
    Labels,
    Permuted,
    any_order,
)
from tiered.analysis.layout.derived import (
    Allows,
    combined,
    derived,
    write_as_it_is,
    write_axis,
    write_vector,
    written,
)
from tiered.graph import Node, Value
from tiered.graph.opset.newest_form import newest_attribute
from tiered.graph.queries.op_traits import SOFTMAXES
from tiered.rewriter import Skip

# --- channels, batch and time ---------------------------------------------------------------------


def _has_channels_second(order: Labels) -> bool:
    return order[1] == 1


def _starts_as_images(order: Labels) -> bool:
    return order[:2] == (0, 1)


def _starts_with_both(order: Labels) -> bool:
    return set(order[:2]) == {0, 1}


written("BatchNormalization", "LRN", slots=(0,), allows=_has_channels_second)(write_as_it_is)
written("GroupNormalization", "InstanceNormalization", slots=(0,), allows=_starts_as_images)(
    write_as_it_is
)


@written("ReverseSequence", slots=(0,), allows=_starts_with_both)
def reverse_sequence(op: Permuted) -> Sequence[Value]:
    """ReverseSequence: batch and time are the first two axes, in either order."""
    labels, node = op.propagation.own(0), op.node
    return op.emit(
        {0: op.operand(0)},
        batch_axis=op.moved(labels, node.attr("batch_axis")),
        time_axis=op.moved(labels, node.attr("time_axis")),
    )


# --- the last axes --------------------------------------------------------------------------------


@lru_cache(maxsize=256)
def last(tail: Labels, in_order: bool) -> Allows:
    """Return which orders have some axes last, in their order or in any."""
    if not tail:
        return any_order

    def allows(order: Labels) -> bool:
        found = order[-len(tail) :]
        return found == tail if in_order else set(found) == set(tail)

    return allows


@LAYOUTS.rule("LayerNormalization", "RMSNormalization")
def layer_normalization(node: Node) -> AxisPropagation | Skip:
    """LayerNormalization and RMSNormalization: the normalised axes stay last.

    If the normalised axes are permuted, scale and bias are permuted too.
    """
    axes = map_of(node)
    tail, widths = combined(axes), [len(own) for own in axes.inputs[1:] if own is not None]
    if max(widths, default=0) > len(tail):
        return Skip("scale or bias may exceed the normalised dims")
    movable = all(width == len(tail) for width in widths)
    slots = [slot for slot, own in enumerate(axes.inputs) if not slot or own == tail]
    allows = last(tail, not movable)
    return derived(node, write_as_it_is, axes, slots=slots, allows=allows)


@LAYOUTS.rule(*SOFTMAXES)
def softmax(node: Node) -> AxisPropagation | Skip:
    """Softmax, LogSoftmax and Hardmax: along an axis; before opset 13, over all from it on."""
    if node.version >= _OF_ONE_AXIS_SINCE:
        return derived(node, write_axis, family="last axis")
    axes = map_of(node)
    # Hardmax takes the first of several equal maxima.
    allows = last(combined(axes), node.op_type == "Hardmax")
    return derived(node, _write_flattening, axes, allows=allows)


_OF_ONE_AXIS_SINCE: Final = 13


def _write_flattening(op: Permuted) -> Sequence[Value]:
    node = op.node
    made = op.graph.add_node(
        node.op_type, (op.operand(0),), 1, dict(node.attributes), name=node.name
    )
    return (made.output,)


@LAYOUTS.rule("Trilu")
def trilu(node: Node) -> AxisPropagation | Skip:
    """Trilu: transposing the last two axes exchanges the upper and the lower part."""
    axes = map_of(node)
    allows = last(combined(axes), False)
    return derived(node, _write_trilu, axes, allows=allows)


def _write_trilu(op: Permuted) -> Sequence[Value]:
    labels, diagonal = op.propagation.own(0), op.operands[1] if len(op.operands) > 1 else None
    if op.arranged(labels)[-2:] == labels[-2:]:
        return op.emit({0: op.operand(0)})
    array = None if diagonal is None else diagonal.const
    negated: Value | np.ndarray[Any, Any] | None = None
    if array is not None:
        negated = np.asarray(-array)
    elif diagonal is not None:
        negated = op.graph.op.Neg(diagonal)
    return op.emit({0: op.operand(0), 1: negated}, upper=1 - op.node.attr("upper"))


# --- resized axes ---------------------------------------------------------------------------------


_NEAREST: Final = ("nearest", b"nearest")
_STRETCH: Final = ("stretch", b"stretch")
_CROP: Final = ("tf_crop_and_resize", b"tf_crop_and_resize")


@LAYOUTS.rule("Resize")
def resize(node: Node) -> AxisPropagation | Skip:
    """Resize: scales or sizes of all axes or of given ones.

    Interpolation runs axis by axis, and runtimes have kernels for trailing resized axes only: these
    stay last, in their order.
    """
    axes = map_of(node)
    allows: Allows = any_order
    if newest_attribute(node, "mode") not in _NEAREST:
        allows = last(_resized(node, combined(axes)), True)
    return derived(node, _write_resize, axes, allows=allows)


def _resized(node: Node, labels: Labels) -> Labels:
    """Return the axes that may be resized: all but those with a constant scale of 1.

    With scales, an axis is unchanged only if its scale is 1: a scale of 1.2 maps 3 elements to 3
    different ones. So do a crop and a policy that keeps the aspect ratio.
    """
    value, before, after = node.operand("scales"), node.given(0).shape, node.output.shape
    has_scales = value is not None and value.dim(0) != 0
    keeps_ratio = newest_attribute(node, "keep_aspect_ratio_policy") not in _STRETCH
    crops = newest_attribute(node, "coordinate_transformation_mode") in _CROP
    if has_scales or keeps_ratio or crops:
        return labels
    if after is None or before is None:
        return labels
    pairs = [(before[label], after[label]) for label in labels]
    return tuple(
        label for label, (old, new) in zip(labels, pairs, strict=True) if old is None or old != new
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
def upsample(node: Node) -> AxisPropagation | Skip:
    """Upsample: a nearest one in any order, as for Resize."""
    if node.attr("mode") not in _NEAREST:
        return Skip("it interpolates")
    return derived(node, write_vector)


# --- places that indices name ---------------------------------------------------------------------


@LAYOUTS.rule("GatherND")
def gather_nd(node: Node) -> AxisPropagation | Skip:
    """GatherND: axes without an index stay last, in any order; so do the axes of the indices."""
    axes = map_of(node)
    allows = _allows_gather(axes.inputs, combined(axes))
    return derived(node, write_as_it_is, axes, allows=allows)


@lru_cache(maxsize=256)
def _allows_gather(inputs: Sequence[Any], places: Labels) -> Allows:
    data, indices = inputs
    batch = tuple(label for label in indices if label in data)
    listed = indices[len(batch) : -1]
    free = data[len(batch) + len(places) :]

    def allows(order: Labels) -> bool:
        moved = _arranged(order, listed + free)
        return (
            _arranged(order, data)[: len(batch) + len(places)] == batch + places
            and _arranged(order, indices)[: len(batch)] == batch
            and _arranged(order, indices)[-1] == indices[-1]
            and _arranged(order, batch + listed + free) == batch + moved
            and set(moved[: len(listed)]) == set(listed)
        )

    return allows


@LAYOUTS.rule("ScatterND")
def scatter_nd(node: Node) -> AxisPropagation | Skip:
    """ScatterND: axes without an index stay last, in any order."""
    axes = map_of(node)
    allows = _allows_scatter(axes.inputs, combined(axes))
    return derived(node, write_as_it_is, axes, allows=allows)


@lru_cache(maxsize=256)
def _allows_scatter(inputs: Sequence[Any], places: Labels) -> Allows:
    data, indices, updates = inputs

    def allows(order: Labels) -> bool:
        # If two indices are equal, the order of the updates matters.
        return (
            _arranged(order, data)[: len(places)] == places
            and _arranged(order, indices) == indices
            and _arranged(order, updates)[: len(indices) - 1] == indices[:-1]
        )

    return allows


def _arranged(order: Labels, labels: Labels) -> Labels:
    return tuple(label for label in order if label in labels)
