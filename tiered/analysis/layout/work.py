"""What an operator, or a Transpose, costs in an order of its axes: nanoseconds, from a table.

Only what depends on the order is counted. A kernel walks through memory; the fewer runs of adjacent
elements it takes together, the longer it takes. Moving a Transpose through hundreds of Slices may
make each of them slower: then the Transpose is cheaper.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Final

from tiered.analysis.layout import kernel_times as times
from tiered.analysis.layout.axis_propagation import KernelAccess, Labels
from tiered.analysis.layout.equivalence import LayoutOperator, OperatorPort
from tiered.analysis.layout.permutation import Permutation, is_identity
from tiered.analysis.layout.reach import Reach
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.graph import Node
from tiered.graph.queries.op_traits import ARITHMETIC

Extent = tuple[tuple[int, int], ...]
"""The labels of an operand or output, each with the size of its axis."""

Extents = tuple[Extent, ...]


def estimate_work(reach: Reach, operators: Iterable[LayoutOperator], sizes: LayoutSizes) -> None:
    """Set what each operator costs in each of its orders."""
    # Most operators of a model are equal to others.
    known: dict[Hashable, Mapping[int, int]] = {}
    for operator in operators:
        kernel = operator.propagation.kernel
        if kernel is None:
            continue
        values = (*operator.node.inputs, *operator.node.outputs)
        found = [None if value is None else sizes.known_dims(value) for value in values]
        key = operator.table, tuple(operator.candidates), tuple(found)
        work = known.get(key)
        if work is None:
            work = known[key] = _work(operator, kernel, found)
        operator.work = work
        if may_be_absorbed(operator):
            operator.work = {
                number: 0 if is_absorbed(operator, number, reach.operators) else time
                for number, time in work.items()
            }


def _work(
    operator: LayoutOperator, kernel: KernelAccess, dims: Sequence[tuple[int, ...] | None]
) -> dict[int, int]:
    """Return what an operator costs in each of its orders, for the sizes of inputs and outputs."""
    propagation = operator.propagation
    count = len(propagation.inputs)
    inputs = _extents(dims[:count], propagation.inputs)
    outputs = _extents(dims[count:], propagation.outputs)
    work = {}
    for number in operator.candidates:
        order = operator.choices[number].labels
        if kernel.family == "product":
            assert dims[0] is not None
            time = _product(kernel, dims[0][-1], dict(outputs[0]), order)
        else:
            time = _FAMILIES[kernel.family](kernel, inputs, outputs, order)
        work[number] = round(time)
    return work


def _extents(dims: Sequence[tuple[int, ...] | None], labels: Sequence[Labels | None]) -> Extents:
    return tuple(
        tuple(zip(own, sizes, strict=True))
        for sizes, own in zip(dims, labels, strict=True)
        if sizes is not None and own is not None
    )


def _arranged(extent: Extent, order: Labels) -> Extent:
    """Return the axes of an operand in an order, without those of size 1."""
    size = dict(extent)
    return tuple([(label, size[label]) for label in order if size.get(label, 1) != 1])


def _count(extent: Extent) -> int:
    return math.prod(size for _, size in extent)


# --- runs -----------------------------------------------------------------------------------------


def _outer(extent: Extent, axes: Labels, order: Labels, *, inclusive: bool = False) -> int:
    """Return the product of the sizes before the last of some axes, or up to it."""
    size = dict(extent)
    # An axis of which one entry is left still has its place.
    arranged = [label for label in order if size.get(label, 1) != 1 or label in axes]
    places = [at for at, label in enumerate(arranged) if label in axes]
    within = arranged[: places[-1] + inclusive] if places else []
    return math.prod(size.get(label, 1) for label in within)


def _copied_out(kernel: KernelAccess, inputs: Extents, outputs: Extents, order: Labels) -> float:
    """Slice, Pad: the runs of the result; an axis counts up to the last one that changes."""
    return _outer(outputs[0], kernel.axes, order) * times.RUNS[kernel.family]


def _split(kernel: KernelAccess, inputs: Extents, outputs: Extents, order: Labels) -> float:
    return _outer(inputs[0], kernel.axes, order) * len(outputs) * times.RUNS["split"]


def _joined(kernel: KernelAccess, inputs: Extents, outputs: Extents, order: Labels) -> float:
    return _outer(outputs[0], kernel.axes, order) * len(inputs) * times.RUNS["concat"]


def _repeated(kernel: KernelAccess, inputs: Extents, outputs: Extents, order: Labels) -> float:
    """Gather, Tile, Expand: each entry of the axis is a run of its own."""
    extent = outputs[0]
    if not kernel.axes:
        own = dict(inputs[0])
        axes = tuple(label for label, size in extent if size != own.get(label, 1))
    else:
        axes = kernel.axes
    if set(axes).isdisjoint(label for label, _ in extent):
        # A single index: the axis itself is gone.
        return _outer(inputs[0], axes, order) * times.RUNS[kernel.family]
    return _outer(extent, axes, order, inclusive=True) * times.RUNS[kernel.family]


def _broadcast(kernel: KernelAccess, inputs: Extents, outputs: Extents, order: Labels) -> float:
    """Elementwise with several operands: runs in which the same operands broadcast."""
    own = [dict(extent) for extent in inputs]
    most: dict[int, int] = {}
    for extent in inputs:
        for label, size in extent:
            most[label] = max(size, most.get(label, 1))
    arranged = _arranged(tuple(most.items()), order)
    spread = [tuple(sizes.get(label, 1) != 1 for sizes in own) for label, _ in arranged]
    if len(set(spread)) < 2:
        return 0.0
    _, last = [list(group) for _, group in groupby(range(len(spread)), spread.__getitem__)][-2:]
    return _count(arranged[: last[0]]) * times.RUNS["broadcast"]


def _cumulative(kernel: KernelAccess, inputs: Extents, outputs: Extents, order: Labels) -> float:
    total, runs = _count(inputs[0]), _outer(inputs[0], kernel.axes, order, inclusive=True)
    return runs * (times.CUMULATIVE_ELEMENT if runs == total else times.CUMULATIVE_RUN)


# --- reductions -----------------------------------------------------------------------------------


def _reduction(kernel: KernelAccess, inputs: Extents, outputs: Extents, order: Labels) -> float:
    arranged = _arranged(inputs[0], order)
    is_reduced = [label in kernel.axes for label, _ in arranged]
    pattern = [flag for flag, _ in groupby(is_reduced)]
    total = _count(arranged)
    sums = kernel.family == "sum"
    if pattern in ([], [True], [False], [False, True]):
        return 0.0
    if pattern == [True, False]:
        return total * (times.SUM_OF_FIRST if sums else times.MOST_OF_FIRST)
    if pattern == [False, True, False]:
        runs = _count(arranged[: is_reduced.index(True)])
        return runs * times.SUM_OF_MIDDLE_RUN if sums else total * times.MOST_OF_MIDDLE
    if pattern == [True, False, True]:
        return total * (times.SUM_OF_ENDS if sums else times.MOST_OF_ENDS)
    return total * times.REDUCTION_ANY


def _last_axis(kernel: KernelAccess, inputs: Extents, outputs: Extents, order: Labels) -> float:
    """Softmax and TopK: another axis changes its place with the last one before and after."""
    arranged = _arranged(inputs[0], order)
    place = next((at for at, (label, _) in enumerate(arranged) if label in kernel.axes), None)
    if place is None or place == len(arranged) - 1:
        return 0.0
    perm = list(range(len(arranged)))
    perm[place], perm[-1] = perm[-1], perm[place]
    return 2.0 * transpose_time(tuple([size for _, size in arranged]), tuple(perm))


def _norm(kernel: KernelAccess, inputs: Extents, outputs: Extents, order: Labels) -> float:
    arranged = _arranged(inputs[0], order)
    is_last = not arranged or arranged[-1][0] in kernel.axes
    return 0.0 if is_last else _count(arranged) * times.NORM_NOT_LAST


# --- products -------------------------------------------------------------------------------------


def _product(kernel: KernelAccess, inner: int, size: Mapping[int, int], order: Labels) -> float:
    """MatMul: swapped operands make other matrices; a second operand of rank 2 makes one of all."""
    *_, row, column = kernel.axes
    batch = math.prod(each for label, each in size.items() if label not in (row, column))
    rows, columns = size[row], size[column]
    swapped = order.index(column) < order.index(row)
    if swapped:
        rows, columns = columns, rows
    if kernel.is_flat[swapped]:
        batch, rows = 1, batch * rows
    if 1 in (rows, columns):
        return batch * (times.PRODUCT_START + rows * columns * inner * times.VECTOR_STEP)
    width = -(-columns // times.PRODUCT_COLUMNS) * times.PRODUCT_COLUMNS
    return batch * (times.PRODUCT_START + rows * width * inner * times.PRODUCT_STEP)


_FAMILIES: Final[Mapping[str, Callable[[KernelAccess, Extents, Extents, Labels], float]]] = {
    "broadcast": _broadcast,
    "concat": _joined,
    "cumulative": _cumulative,
    "expand": _repeated,
    "gather": _repeated,
    "last axis": _last_axis,
    "norm": _norm,
    "pad": _copied_out,
    "reduction": _reduction,
    "slice": _copied_out,
    "split": _split,
    "sum": _reduction,
    "tile": _repeated,
}


# --- Transpose ------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def transpose_time(dims: tuple[int, ...], perm: Permutation) -> int:
    """Return what moving the elements of a tensor costs; 0 if none moves.

    Args:
        dims: the sizes of its axes before.
        perm: the Transpose.
    """
    moving = [axis for axis in perm if dims[axis] != 1]
    if moving == sorted(moving):
        return 0
    groups: list[list[int]] = []
    kept = sorted(moving)
    following = dict(pairwise(kept))
    for axis in moving:
        if groups and following.get(groups[-1][-1]) == axis:
            groups[-1].append(axis)
        else:
            groups.append([axis])
    total = math.prod(dims)
    ranked = sorted(groups)
    merged = tuple([ranked.index(group) for group in groups])
    if merged[-1] == len(merged) - 1:
        run = math.prod(dims[axis] for axis in groups[-1])
        return round(total // run * times.TRANSPOSE_RUN + total * times.TRANSPOSE_COPIED)
    if _moves_one(merged):
        return round(total * times.TRANSPOSE_ONE_AXIS)
    return round(total * times.TRANSPOSE_ANY)


def _moves_one(perm: Permutation) -> bool:
    """Return whether a permutation moves one axis, and the others keep their order."""
    return any(
        is_identity(tuple([axis - (axis > moved) for axis in perm if axis != moved]))
        for moved in perm
    )


# --- Operators that a neighbour absorbs in some order: a Pad before a Conv, a bias behind one -----

BEFORE: Final = frozenset({"AveragePool", "Conv", "MaxPool"})
"""Operators that absorb a Pad of their operand."""

AFTER: Final = frozenset({"Conv", "ConvTranspose", "Gemm"})
"""Operators that absorb scales and biases of their result."""

SCALES: Final = frozenset({*ARITHMETIC, "BatchNormalization"})

MOST: Final = 4
"""Bound on the scales and biases in a row."""


def may_be_absorbed(operator: LayoutOperator) -> bool:
    """Return whether it is of a kind that neighbours absorb."""
    return operator.node.op_type == "Pad" or _is_one_of(operator.node, SCALES)


def is_absorbed(
    operator: LayoutOperator, number: int, operators: Mapping[Node, LayoutOperator]
) -> bool:
    """Return whether a neighbour absorbs an operator that is written in an order."""
    if operator.node.op_type == "Pad":
        orders = operator.choices[number].orders
        return any(
            _is_padded(port, order)
            for port, order in zip(operator.ports, orders, strict=True)
            if port.is_output
        )
    for _ in range(MOST):
        above = _scaled(operator, number)
        if above is None:
            return False
        producer, port, order = above
        if _is_one_of(producer, AFTER):
            return order == port.tensor.identity
        found = operators.get(producer)
        if found is None:
            return False
        place = found.find(port.tensor, order)
        if place is None:
            return False
        operator, number = found, place
    return False


def _is_one_of(node: Node, names: Collection[str]) -> bool:
    return not node.domain and node.op_type in names


def _is_padded(port: OperatorPort, order: Permutation) -> bool:
    """Return whether an operator with pads of its own reads a tensor in an order."""
    views = [value for value, view in port.tensor.views.items() if view == order]
    return any(
        use.slot == 0 and _is_one_of(use.node, BEFORE)
        for value in views
        for use in port.tensor.uses[value]
    )


def _scaled(operator: LayoutOperator, number: int) -> tuple[Node, OperatorPort, Permutation] | None:
    """Return what makes the only operand that is no constant, if it is scaled or shifted here."""
    if not _is_one_of(operator.node, SCALES):
        return None
    read = [(at, port) for at, port in enumerate(operator.ports) if not port.is_output]
    if len(read) != 1:
        return None
    at, port = read[0]
    producer = port.tensor.root.producer
    if producer is None:
        return None
    return producer, port, operator.choices[number].orders[at]
