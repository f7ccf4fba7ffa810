"""Rules of operators with axes as attributes or operands: these are renumbered."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from tiered.analysis.axes.reading import reduced_axes
from tiered.analysis.layout.propagation import (
    LAYOUTS,
    NO_RANK,
    Kernel,
    Labels,
    Permuted,
    Propagation,
    constant_operand,
    rank_of,
    whole,
)
from tiered.graph import DataType, Node, Value
from tiered.graph.opset.newest_form import newest_attribute
from tiered.graph.queries.op_traits import REDUCTIONS, SOFTMAXES
from tiered.rewriter import Skip

Write = Callable[[Permuted], Sequence[Value]]

EXACT_REDUCTIONS: Final = frozenset({"ArgMax", "ArgMin", "ReduceMax", "ReduceMin"})
"""Reductions whose result does not depend on the order of the elements."""


FAMILIES: Final = {
    **dict.fromkeys((*SOFTMAXES, "TopK"), "last axis"),
    "Concat": "concat",
    "LpNormalization": "norm",
    "Split": "split",
}
"""The kernels of operators with an attribute `axis`."""

SUMS: Final = frozenset({"ReduceMean", "ReduceSum"})
"""Reductions with kernels of their own for kept axes before and after the reduced ones."""


def along(*slots: int) -> Callable[[Node], Propagation | Skip]:
    """Return the rule of operators with an attribute `axis`.

    Args:
        slots: the inputs that are permuted with the first one; none for all inputs.
    """

    def rule(node: Node) -> Propagation | Skip:
        rank = rank_of(node)
        if rank is None:
            return NO_RANK
        axis = newest_attribute(node, "axis")
        if not -rank <= axis < rank:
            return Skip("its axis is out of range")
        family = FAMILIES.get(node.op_type)
        kernel = None if family is None else Kernel(family, (axis % rank,))
        return followed(node, rank, slots or range(len(node.inputs)), _write_along, kernel)

    return rule


LAYOUTS.rule("Concat", "GatherElements", "Scatter", "ScatterElements")(along())
LAYOUTS.rule("LpNormalization", "Split", "TopK")(along(0))


def followed(
    node: Node, rank: int, slots: Iterable[int], write: Write, kernel: Kernel | None = None
) -> Propagation | Skip:
    """Return the propagation of an operator whose outputs and given inputs have the same axes."""
    labels, taken = whole(rank), set(slots)
    if any(rank_of(node, slot) != rank for slot in taken):
        return Skip("its operands differ in rank")
    inputs = tuple(labels if slot in taken else None for slot in range(len(node.inputs)))
    outputs = tuple(None if value is None else labels for value in node.outputs)
    return Propagation(inputs, outputs, write, kernel=kernel)


def followed_operands(op: Permuted) -> dict[int, Value]:
    """Return the permuted operands, in the new order."""
    inputs = enumerate(op.propagation.inputs)
    return {slot: op.operand(slot) for slot, labels in inputs if labels is not None}


def _write_along(op: Permuted) -> Sequence[Value]:
    axis = op.moved(op.propagation.own(0), newest_attribute(op.node, "axis"))
    return op.emit(followed_operands(op), axis=axis)


@LAYOUTS.rule("Hardmax", "LogSoftmax", "Softmax")
def softmax(node: Node) -> Propagation | Skip:
    """Softmax, LogSoftmax and Hardmax: along an axis; before opset 13, over all dims from it on."""
    rank = rank_of(node)
    if rank is None:
        return NO_RANK
    if node.owner.opset() >= 13:
        return along(0)(node)
    axis = node.attr("axis", 1)
    if not -rank <= axis <= rank:
        return Skip("its axis is out of range")
    labels, start = whole(rank), axis % rank if axis < 0 else axis
    # Hardmax takes the first of several equal maxima.
    is_ordered = node.op_type == "Hardmax"

    def allows(order: Labels) -> bool:
        last = order[start:]
        return last == labels[start:] if is_ordered else set(last) == set(labels[start:])

    exact = is_ordered or rank - start < 2
    return Propagation((labels,), (labels,), _write_flattening, allows=allows, is_exact=exact)


def _write_flattening(op: Permuted) -> Sequence[Value]:
    node = op.node
    made = op.graph.add_node(
        node.op_type, (op.operand(0),), 1, dict(node.attributes), name=node.name
    )
    return (made.output,)


@LAYOUTS.rule("CumProd", "CumSum")
def cumulative(node: Node) -> Propagation | Skip:
    """CumSum and CumProd: the axis is an operand."""
    rank, axis = rank_of(node), constant_operand(node, 1)
    if rank is None:
        return NO_RANK
    if axis is None or axis.size != 1:
        return Skip("its axis is not constant")
    kernel = Kernel("cumulative", (int(axis.item()) % rank,))
    return followed(node, rank, (0,), _write_cumulative, kernel)


def _write_cumulative(op: Permuted) -> Sequence[Value]:
    axis = constant_operand(op.node, 1)
    assert axis is not None
    moved = op.moved(op.propagation.own(0), int(axis.item()))
    return op.emit({0: op.operand(0), 1: np.full(axis.shape, moved, axis.dtype)})


@LAYOUTS.rule("MeanVarianceNormalization")
def mean_variance(node: Node) -> Propagation | Skip:
    """MeanVarianceNormalization: the axes are a list."""
    rank = rank_of(node)
    if rank is None:
        return NO_RANK
    propagation = followed(node, rank, (0,), _write_mean_variance)
    if isinstance(propagation, Skip):
        return propagation
    return Propagation(propagation.inputs, propagation.outputs, propagation.write, is_exact=False)


def _write_mean_variance(op: Permuted) -> Sequence[Value]:
    labels = op.propagation.own(0)
    axes = sorted(op.moved(labels, axis) for axis in op.node.attr("axes"))
    return op.emit({0: op.operand(0)}, axes=axes)


# --- axes that are removed and added --------------------------------------------------------------


@LAYOUTS.rule("ArgMax", "ArgMin", *REDUCTIONS)
def reduction(node: Node) -> Propagation | Skip:
    """Reduce* and Arg*: with or without the reduced dims."""
    rank = rank_of(node)
    if rank is None:
        return NO_RANK
    axes = reduced_axes(node, rank)
    if isinstance(axes, Skip):
        return axes
    labels = whole(rank)
    kept = labels if node.attr("keepdims", 1) else _without(labels, axes)
    value = node.input(0)
    floats = value is None or value.dtype is None or DataType(value.dtype).is_float
    exact = node.op_type in EXACT_REDUCTIONS or not floats
    inputs = (labels, *(None for _ in node.inputs[1:]))
    kernel = None
    if not node.op_type.startswith("Arg"):
        kernel = Kernel("sum" if node.op_type in SUMS else "reduction", axes)
    return Propagation(inputs, (kept,), _write_reduction, is_exact=exact, kernel=kernel)


def _without(labels: Labels, axes: Sequence[int]) -> Labels:
    return tuple(label for at, label in enumerate(labels) if at not in axes)


def _write_reduction(op: Permuted) -> Sequence[Value]:
    labels, node = op.propagation.own(0), op.node
    if node.op_type.startswith("Arg"):
        return op.emit({0: op.operand(0)}, axis=op.moved(labels, node.attr("axis")))
    axes = constant_operand(node, 1)
    if axes is None or not axes.size:
        return op.emit({0: op.operand(0)})
    moved = sorted(op.moved(labels, int(axis)) for axis in axes.ravel())
    return op.emit({0: op.operand(0), 1: np.array(moved, np.int64)})


@LAYOUTS.rule("Squeeze")
def squeeze(node: Node) -> Propagation | Skip:
    """Squeeze: it removes the given axes, or all dims that are 1."""
    value = node.input(0)
    if value is None or value.shape is None:
        return NO_RANK
    axes = constant_operand(node, 1)
    if axes is None and node.operand("axes") is None:
        if any(not isinstance(dim, int) for dim in value.shape):
            return Skip("the dims that it removes are not known")
        gone: Sequence[int] = [at for at, dim in enumerate(value.shape) if dim == 1]
    elif axes is None:
        return Skip("its axes are not constant")
    else:
        gone = [int(axis) % len(value.shape) for axis in axes.ravel()]
    labels = whole(len(value.shape))
    inputs = (labels, *(None for _ in node.inputs[1:]))
    return Propagation(inputs, (_without(labels, gone),), _write_squeeze)


def _write_squeeze(op: Permuted) -> Sequence[Value]:
    labels, (kept,) = op.propagation.own(0), op.propagation.outputs
    places = [at for at, label in enumerate(op.arranged(labels)) if label not in (kept or ())]
    return op.emit({0: op.operand(0), 1: np.array(places, np.int64)})


@LAYOUTS.rule("Unsqueeze")
def unsqueeze(node: Node) -> Propagation | Skip:
    """Unsqueeze: the new dims may be at any position."""
    rank, axes = rank_of(node), constant_operand(node, 1)
    if rank is None:
        return NO_RANK
    if axes is None:
        return Skip("its axes are not constant")
    wide = rank + axes.size
    new = {int(axis) % wide for axis in axes.ravel()}
    labels = whole(wide)
    inputs = (_without(labels, sorted(new)), *(None for _ in node.inputs[1:]))
    return Propagation(inputs, (labels,), _write_unsqueeze)


def _write_unsqueeze(op: Permuted) -> Sequence[Value]:
    old, (labels,) = op.propagation.own(0), op.propagation.outputs
    places = [at for at, label in enumerate(op.arranged(labels or ())) if label not in old]
    return op.emit({0: op.operand(0), 1: np.array(places, np.int64)})


@LAYOUTS.rule("OneHot")
def one_hot(node: Node) -> Propagation | Skip:
    """OneHot: the new axis may be at any position."""
    rank = rank_of(node)
    if rank is None:
        return NO_RANK
    labels, new = whole(rank + 1), node.attr("axis") % (rank + 1)
    return Propagation((_without(labels, (new,)), None, None), (labels,), _write_one_hot)


def _write_one_hot(op: Permuted) -> Sequence[Value]:
    (labels,) = op.propagation.outputs
    assert labels is not None
    return op.emit({0: op.operand(0)}, axis=op.moved(labels, op.node.attr("axis") % len(labels)))


# --- operators with fixed positions of some axes --------------------------------------------------


@LAYOUTS.rule("ReverseSequence")
def reverse_sequence(node: Node) -> Propagation | Skip:
    """ReverseSequence: batch and time are the first two axes, in either order."""
    rank = rank_of(node)
    if rank is None:
        return NO_RANK
    labels = whole(rank)
    return Propagation(
        (labels, None),
        (labels,),
        _write_reverse_sequence,
        allows=lambda order: set(order[:2]) == {0, 1},
    )


def _write_reverse_sequence(op: Permuted) -> Sequence[Value]:
    labels, node = op.propagation.own(0), op.node
    return op.emit(
        {0: op.operand(0)},
        batch_axis=op.moved(labels, node.attr("batch_axis")),
        time_axis=op.moved(labels, node.attr("time_axis")),
    )


@LAYOUTS.rule("Trilu")
def trilu(node: Node) -> Propagation | Skip:
    """Trilu: transposing the last two axes exchanges the upper and the lower part."""
    rank = rank_of(node)
    if rank is None or rank < 2:
        return NO_RANK
    labels = whole(rank)
    inputs = (labels, *(None for _ in node.inputs[1:]))
    return Propagation(
        inputs, (labels,), _write_trilu, allows=lambda order: set(order[-2:]) == set(labels[-2:])
    )


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
