"""How operators are written whose attributes and operands name axes, or have a number for each.

Which axes they have follows from their axis maps; which attribute names them does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from tiered.analysis.layout.derived import derived, write_axis, write_vector
from tiered.analysis.layout.propagation import (
    LAYOUTS,
    Labels,
    Permuted,
    Propagation,
    constant_operand,
    whole,
)
from tiered.graph import DataType, Node, Value
from tiered.graph.queries.op_traits import ARG_REDUCTIONS, REDUCTIONS, SOFTMAXES
from tiered.rewriter import Skip

# --- an attribute, `axis` or `axes` ---------------------------------------------------------------

FAMILIES: Final = {
    **dict.fromkeys((*SOFTMAXES, "TopK"), "last axis"),
    "Concat": "concat",
    "LpNormalization": "norm",
    "Split": "split",
}
"""The kernels of operators with an attribute `axis`."""


@LAYOUTS.rule("Compress", "Concat", "GatherElements", "LpNormalization", "Scatter")
@LAYOUTS.rule("ScatterElements", "Split", "TopK", *ARG_REDUCTIONS)
def along_axis(node: Node) -> Propagation | Skip:
    """Return the propagation of an operator whose attribute `axis` names an axis of its operand."""
    return derived(node, write_axis, family=FAMILIES.get(node.op_type))


@LAYOUTS.rule("OneHot")
def one_hot(node: Node) -> Propagation | Skip:
    """OneHot: the attribute names the new axis, of the result."""
    return derived(node, _write_one_hot)


def _write_one_hot(op: Permuted) -> Sequence[Value]:
    (labels,) = op.propagation.outputs
    assert labels is not None
    return op.emit(op.permuted(), axis=op.moved(labels, op.node.attr("axis") % len(labels)))


@LAYOUTS.rule("QuantizeLinear", "DequantizeLinear", domain=("", "com.microsoft"))
def quantization(node: Node) -> Propagation | Skip:
    """QuantizeLinear and DequantizeLinear: of one scale they name no axis."""
    # Scales of one axis are read in the order that they have.
    is_by_block = bool(node.attr("block_size", 0))
    return derived(node, _write_quantization, slots=None if is_by_block else (0,))


def _write_quantization(op: Permuted) -> Sequence[Value]:
    scale = op.node.input(1)
    if scale is None or scale.rank == 0:
        return op.emit(op.permuted())
    return op.emit(op.permuted(), axis=op.moved(op.propagation.own(0), op.node.attr("axis", 1)))


@LAYOUTS.rule("MeanVarianceNormalization")
def mean_variance(node: Node) -> Propagation | Skip:
    """MeanVarianceNormalization: an attribute lists the axes."""
    return derived(node, _write_mean_variance)


def _write_mean_variance(op: Permuted) -> Sequence[Value]:
    labels = op.propagation.own(0)
    axes = sorted(op.moved(labels, axis) for axis in op.node.attr("axes"))
    return op.emit(op.permuted(), axes=axes)


# --- an operand with axes -------------------------------------------------------------------------

SUMS: Final = frozenset({"ReduceMean", "ReduceSum"})
"""Reductions with kernels of their own for kept axes before and after the reduced ones."""


@LAYOUTS.rule("CumProd", "CumSum")
def cumulative(node: Node) -> Propagation | Skip:
    """CumSum and CumProd: the axis is an operand."""
    return derived(node, _write_axes, family="cumulative")


@LAYOUTS.rule(*REDUCTIONS)
def reduction(node: Node) -> Propagation | Skip:
    """Reduce*: the axes are an operand; without it, all are reduced, or none."""
    return derived(node, _write_axes, family="sum" if node.op_type in SUMS else "reduction")


def _write_axes(op: Permuted) -> Sequence[Value]:
    axes = constant_operand(op.node, 1)
    if axes is None or not axes.size:
        return op.emit(op.permuted())
    moved = np.array(sorted(_moved(op, axes)), axes.dtype).reshape(axes.shape)
    return op.emit({**op.permuted(), 1: moved})


def _moved(op: Permuted, axes: np.ndarray[Any, Any]) -> list[int]:
    """Return the new numbers of axes of the first operand, in the same sequence."""
    return [op.moved(op.propagation.own(0), int(axis)) for axis in axes.ravel()]


@LAYOUTS.rule("Squeeze")
def squeeze(node: Node) -> Propagation | Skip:
    """Squeeze: the axes are those of the operand that the result has not."""
    return derived(node, _write_squeeze)


def _write_squeeze(op: Permuted) -> Sequence[Value]:
    labels, (kept,) = op.propagation.own(0), op.propagation.outputs
    places = [at for at, label in enumerate(op.arranged(labels)) if label not in (kept or ())]
    return op.emit({0: op.operand(0), 1: np.array(places, np.int64)})


@LAYOUTS.rule("Unsqueeze")
def unsqueeze(node: Node) -> Propagation | Skip:
    """Unsqueeze: the axes are those of the result that the operand has not."""
    return derived(node, _write_unsqueeze)


def _write_unsqueeze(op: Permuted) -> Sequence[Value]:
    old, (labels,) = op.propagation.own(0), op.propagation.outputs
    places = [at for at, label in enumerate(op.arranged(labels or ())) if label not in old]
    return op.emit({0: op.operand(0), 1: np.array(places, np.int64)})


@LAYOUTS.rule("Slice")
def slices(node: Node) -> Propagation | Skip:
    """Slice: the axes are given, or the leading ones."""
    return derived(node, _write_slices, family="slice", walked=changed(node))


def _write_slices(op: Permuted) -> Sequence[Value]:
    axes, starts = constant_operand(op.node, 3), op.node.operand("starts")
    if axes is None:
        count = None if starts is None else starts.dim(0)
        assert starts is not None
        assert isinstance(count, int)
        # The axes have the dtype of the starts.
        kind = np.int32 if starts.dtype == DataType.INT32 else np.int64
        axes = np.arange(count, dtype=kind)
    return op.emit({0: op.operand(0), 3: np.array(_moved(op, axes), axes.dtype)})


# --- an operand with a number for each axis -------------------------------------------------------


@LAYOUTS.rule("Pad")
def pad(node: Node) -> Propagation | Skip:
    """Pad: the pads are of all axes or of given ones."""
    return derived(node, _write_pad, family="pad", walked=changed(node))


def _write_pad(op: Permuted) -> Sequence[Value]:
    axes = constant_operand(op.node, 3)
    if axes is None:
        return op.emit({0: op.operand(0), 1: op.vector(1, op.propagation.own(0), halves=2)})
    return op.emit({0: op.operand(0), 3: np.array(_moved(op, axes), axes.dtype)})


def changed(node: Node) -> Labels:
    """Return the axes of the operand whose size changes, or may change."""
    before, after = node.inputs[0], node.outputs[0]
    if before is None or before.shape is None:
        return ()
    if after is None or after.shape is None:
        return whole(len(before.shape))
    sizes = enumerate(zip(before.shape, after.shape, strict=True))
    return tuple([axis for axis, (old, new) in sizes if old is None or old != new])


@LAYOUTS.rule("Tile")
def tile(node: Node) -> Propagation | Skip:
    """Tile: one number of repeats for each axis."""
    return derived(node, write_vector, family="tile", walked=())


@LAYOUTS.rule("Expand")
def expand(node: Node) -> Propagation | Skip:
    """Expand: the operand and the shape broadcast to each other."""
    found, shape = derived(node, _write_expand, family="expand", walked=()), node.operand("shape")
    if shape is None or shape.const is not None:
        return found
    has_all = shape.dim(0) == len(found.outputs[0] or ())
    return found if has_all else Skip("its shape has fewer axes than its operand")


def _write_expand(op: Permuted) -> Sequence[Value]:
    (labels,) = op.propagation.outputs
    assert labels is not None
    data, shape = op.aligned(0, labels), constant_operand(op.node, 1)
    if shape is None:
        return op.emit({0: data, 1: op.vector(1, labels)})
    filled = np.concatenate([np.ones(len(labels) - shape.size, shape.dtype), shape])
    return op.emit({0: data, 1: filled[list(op.perm(labels))]})
