"""How operators are written whose attributes and operands name axes, or have a number for each.

Which axes they have follows from their axis maps; which attribute names them does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tiered.analysis.axes.axis_map import whole
from tiered.analysis.layout.axis_propagation import (
    LAYOUTS,
    AxisPropagation,
    Labels,
    Permuted,
    constant_operand,
)
from tiered.analysis.layout.derived import derived, write_axis, write_vector, written
from tiered.graph import DataType, Node, Value
from tiered.graph.queries.op_traits import ARG_REDUCTIONS, REDUCTIONS
from tiered.rewriter import Skip

# --- an attribute, `axis` or `axes` ---------------------------------------------------------------

written("Compress", "GatherElements", "Scatter", "ScatterElements", *ARG_REDUCTIONS)(write_axis)
written("Concat", family="concat")(write_axis)
written("LpNormalization", family="norm")(write_axis)
written("Split", family="split")(write_axis)
written("TopK", family="last axis")(write_axis)


@written("OneHot")
def one_hot(op: Permuted) -> Sequence[Value]:
    """OneHot: the attribute names the new axis, of the result."""
    labels = op.propagation.result
    return op.emit(op.permuted(), axis=op.moved(labels, op.node.attr("axis") % len(labels)))


@LAYOUTS.rule("QuantizeLinear", "DequantizeLinear", domain=("", "com.microsoft"))
def quantization(node: Node) -> AxisPropagation:
    """QuantizeLinear and DequantizeLinear: scales of blocks are permuted, those of one axis not."""
    slots = None if node.attr("block_size") else (0,)
    return derived(node, _write_quantization, slots=slots)


def _write_quantization(op: Permuted) -> Sequence[Value]:
    if op.node.given(1).rank == 0:
        return op.emit(op.permuted())
    return op.emit(op.permuted(), axis=op.moved(op.propagation.own(0), op.node.attr("axis", 1)))


@written("MeanVarianceNormalization")
def mean_variance(op: Permuted) -> Sequence[Value]:
    """MeanVarianceNormalization: an attribute lists the axes."""
    labels = op.propagation.own(0)
    axes = sorted(op.moved(labels, axis) for axis in op.node.attr("axes"))
    return op.emit(op.permuted(), axes=axes)


# --- an operand with axes -------------------------------------------------------------------------

SUMS: Final = ("ReduceMean", "ReduceSum")
"""Reductions with kernels of their own for kept axes before and after the reduced ones."""


@written("CumProd", "CumSum", family="cumulative")
@written(*SUMS, family="sum")
@written(*(name for name in REDUCTIONS if name not in SUMS), family="reduction")
def second_operand(op: Permuted) -> Sequence[Value]:
    """CumSum and reductions: the axes are the second operand; without it, all, or none."""
    axes = constant_operand(op.node, 1)
    if axes is None or not axes.size:
        return op.emit(op.permuted())
    moved = np.array(sorted(_moved(op, axes)), axes.dtype).reshape(axes.shape)
    return op.emit({**op.permuted(), 1: moved})


def _moved(op: Permuted, axes: np.ndarray[Any, Any]) -> list[int]:
    """Return the new numbers of axes of the first operand, in the same sequence."""
    return [op.moved(op.propagation.own(0), int(axis)) for axis in axes.ravel()]


@written("Squeeze")
def squeeze(op: Permuted) -> Sequence[Value]:
    """Squeeze: the axes are those of the operand that the result has not."""
    labels, kept = op.propagation.own(0), op.propagation.result
    places = [at for at, label in enumerate(op.arranged(labels)) if label not in kept]
    return op.emit({0: op.operand(0), 1: np.array(places, np.int64)})


@written("Unsqueeze")
def unsqueeze(op: Permuted) -> Sequence[Value]:
    """Unsqueeze: the axes are those of the result that the operand has not."""
    old, labels = op.propagation.own(0), op.propagation.result
    places = [at for at, label in enumerate(op.arranged(labels)) if label not in old]
    return op.emit({0: op.operand(0), 1: np.array(places, np.int64)})


def changed(node: Node) -> Labels:
    """Return the axes of the first operand whose size changes, or may change."""
    before, after = node.given(0).shape, node.output.shape
    if before is None:
        return ()
    if after is None:
        return whole(len(before))
    sizes = enumerate(zip(before, after, strict=True))
    return tuple([axis for axis, (old, new) in sizes if old is None or old != new])


@written("Slice", family="slice", walked=changed)
def slices(op: Permuted) -> Sequence[Value]:
    """Slice: the axes are given, or the leading ones."""
    axes, starts = constant_operand(op.node, 3), op.node.operand("starts")
    if axes is None:
        assert starts is not None
        count = starts.dim(0)
        assert isinstance(count, int)
        # The axes have the dtype of the starts.
        axes = np.arange(count, dtype=np.int32 if starts.dtype == DataType.INT32 else np.int64)
    return op.emit({0: op.operand(0), 3: np.array(_moved(op, axes), axes.dtype)})


# --- an operand with a number for each axis -------------------------------------------------------


@written("Pad", family="pad", walked=changed)
def pad(op: Permuted) -> Sequence[Value]:
    """Pad: the pads are of all axes or of given ones."""
    axes = constant_operand(op.node, 3)
    if axes is None:
        return op.emit({0: op.operand(0), 1: op.vector(1, op.propagation.own(0), halves=2)})
    return op.emit({0: op.operand(0), 3: np.array(_moved(op, axes), axes.dtype)})


# Which axes are repeated is seen by the sizes.
written("Tile", family="tile", walked=lambda node: ())(write_vector)


@LAYOUTS.rule("Expand")
def expand(node: Node) -> AxisPropagation | Skip:
    """Expand: the operand and the shape broadcast to each other."""
    found, shape = derived(node, _write_expand, family="expand", walked=()), node.operand("shape")
    if shape is None or shape.const is not None:
        return found
    has_all = shape.dim(0) == len(found.result)
    return found if has_all else Skip("its shape has fewer axes than its operand")


def _write_expand(op: Permuted) -> Sequence[Value]:
    labels = op.propagation.result
    data, shape = op.aligned(0, labels), constant_operand(op.node, 1)
    if shape is None:
        return op.emit({0: data, 1: op.vector(1, labels)})
    filled = np.concatenate([np.ones(len(labels) - shape.size, shape.dtype), shape])
    return op.emit({0: data, 1: filled[list(op.perm(labels))]})
