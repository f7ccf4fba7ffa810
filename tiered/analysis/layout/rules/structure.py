"""Rules of operators that change the set of axes: Reshape, Gather, Scatter, Shape."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Final

import numpy as np

from tiered.analysis.axes.regrouping import Group, SizedShape, regrouped, sized
from tiered.analysis.layout.propagation import (
    LAYOUTS,
    NO_RANK,
    Kernel,
    Labels,
    Permuted,
    Propagation,
    rank_of,
    whole,
)
from tiered.graph import Node, Value
from tiered.graph.core.types import Shape
from tiered.graph.shape_inference.symbolic_dims import Size
from tiered.rewriter import Skip
from tiered.support.records import Record

# --- Reshape --------------------------------------------------------------------------------------

UNPROVEN: Final = Skip("the dims that it splits or merges are not known")


class Regrouping(Record):
    """A Reshape as groups of dims that become other groups; dims of size 1 are in no group.

    Attributes:
        source: the labels of the operand.
        target: the labels of the result.
        groups: the labels of operand and result that hold the same elements.
        sizes: the dims of the result.
        vanishing: the dims of the result that may be 0.
        takes_empty: whether the Reshape is valid if one of these is 0.
    """

    source: Labels
    target: Labels
    groups: tuple[Group, ...]
    sizes: Shape
    vanishing: Labels
    takes_empty: bool

    def allows(self, order: Labels) -> bool:
        """Return whether a Reshape maps the groups if all dims are in another order."""
        place = {label: at for at, label in enumerate(order)}
        sides = []
        for side in range(2):
            groups = [group[side] for group in self.groups]
            inner = sorted((label for group in groups for label in group), key=place.__getitem__)
            first = {group[0]: at for at, group in enumerate(groups)}
            sequence = [first[label] for label in inner if label in first]
            if inner != [label for at in sequence for label in groups[at]]:
                return False
            sides.append(sequence)
        return sides[0] == sides[1] and self.shape(order) is not None

    def shape(self, order: Labels) -> list[int] | None:
        """Return the target shape in another order; None if no constant expresses it.

        Beside a dim that is 0, the value of -1 is not determined.
        """
        place = {label: at for at, label in enumerate(order)}
        source = sorted(self.source, key=place.__getitem__)
        dims: list[int] = []
        copies_nothing = False
        for at, label in enumerate(sorted(self.target, key=place.__getitem__)):
            size = self.sizes[self.target.index(label)]
            if isinstance(size, int):
                dims.append(size)
            elif at < len(source) and source[at] == label:
                dims.append(0)
                copies_nothing |= label in self.vanishing
            else:
                dims.append(-1)
        if -1 in dims and copies_nothing and self.takes_empty:
            return None
        return dims if dims.count(-1) <= 1 else None


@LAYOUTS.rule("Flatten", "Reshape")
def reshape(node: Node) -> Propagation | Skip:
    """Reshape and Flatten: dims that are merged or split stay adjacent.

    Dims of size 1 may be at any position.
    """
    value = node.input(0)
    before = None if value is None else value.shape
    after = node.output.shape
    if before is None or after is None:
        return NO_RANK
    if 0 in before or 0 in after:
        return Skip("a dim is 0")
    dims = node.owner.model.dims
    takes_empty = node.output.static_shape is not None or _takes_empty(node)
    return _reshape(sized(before, dims), sized(after, dims), len(node.inputs) - 1, takes_empty)


def _takes_empty(node: Node) -> bool:
    """Return whether it is valid if a dim is 0, which is not allowed beside -1."""
    shape = node.operand("shape") if node.op_type == "Reshape" else None
    elements = None if shape is None else shape.elements
    if elements is None or -1 not in (known := elements.tolist()):
        return True
    return all(isinstance(each, int) and each for each in known)


@lru_cache
def _reshape(
    before: SizedShape, after: SizedShape, others: int, takes_empty: bool
) -> Propagation | Skip:
    found = regrouped(before, after)
    if found is None:
        return UNPROVEN
    source, target, groups = found
    ties = tuple(group for group in groups if len(group[0]) + len(group[1]) > 2)
    sizes = tuple(dim for dim, _ in after)
    vanishing = tuple(
        label for label, (_, size) in zip(target, after, strict=True) if _may_be_zero(size)
    )
    regrouping = Regrouping(source, target, groups, sizes, vanishing, takes_empty)
    inputs = (source, *(None,) * others)
    write = partial(_write_reshape, regrouping)
    return Propagation(inputs, (target,), write, allows=regrouping.allows, ties=ties)


def _may_be_zero(size: Size | None) -> bool:
    """Return whether a dim may be 0: a dynamic one that has no positive lower bound."""
    if size is None or isinstance(size, int):
        return size is None
    return not size.is_positive


def _write_reshape(regrouping: Regrouping, op: Permuted) -> Sequence[Value]:
    shape = regrouping.shape(op.order)
    assert shape is not None
    target = np.array(shape, np.int64)
    return (op.graph.op.Reshape(op.operand(0), target, name=op.node.name),)


# --- Shape ----------------------------------------------------------------------------------------


@LAYOUTS.rule("Shape")
def shape_of(node: Node) -> Propagation | Skip:
    """Shape: the sizes of the permuted tensor, gathered into the original order."""
    rank = rank_of(node)
    if rank is None:
        return NO_RANK
    return Propagation((whole(rank),), (None,), _write_shape)


def _write_shape(op: Permuted) -> Sequence[Value]:
    labels, node = op.propagation.own(0), op.node
    wanted = labels[slice(node.attr("start", 0), node.attr("end", None))]
    arranged = op.arranged(labels)
    places = np.array([arranged.index(label) for label in wanted], np.int64)
    sizes = op.graph.op.Shape(op.operand(0), name=node.name)
    return (op.graph.op.Gather(sizes, places),)


@LAYOUTS.rule("Size")
def size_of(node: Node) -> Propagation | Skip:
    """Size: it does not depend on the order."""
    rank = rank_of(node)
    if rank is None:
        return NO_RANK
    return Propagation((whole(rank),), (None,), lambda op: op.emit({0: op.operand(0)}))


# --- Gather and Scatter ---------------------------------------------------------------------------


@LAYOUTS.rule("Gather")
def gather(node: Node) -> Propagation | Skip:
    """Gather: the axes of the indices replace the gathered axis and stay adjacent."""
    rank, width = rank_of(node), rank_of(node, 1)
    if rank is None or width is None or rank == 0:
        return NO_RANK
    return _gather(rank, width, node.attr("axis") % rank)


@lru_cache
def _gather(rank: int, width: int, axis: int) -> Propagation:
    """Return the propagation for the ranks of data and indices: equal ones are one object."""
    data = whole(rank)
    indices = (axis,) if width == 1 else whole(width, 100)
    out = (*data[:axis], *indices, *data[axis + 1 :])
    kernel = Kernel("gather", indices or (axis,))
    if width == 1:
        return Propagation((data, indices), (out,), _write_gather, kernel=kernel)

    def allows(order: Labels) -> bool:
        rest = [label for label in order if label in data]
        at = rest.index(axis)
        inner = [label for label in order if label in indices]
        wanted = [*rest[:at], *inner, *rest[at + 1 :]]
        return wanted == [label for label in order if label in out]

    ties = (((axis,), indices),) if indices else ()
    return Propagation(
        (data, indices), (out,), _write_gather, allows=allows, ties=ties, kernel=kernel
    )


def _write_gather(op: Permuted) -> Sequence[Value]:
    data = op.propagation.own(0)
    axis = op.moved(data, op.node.attr("axis"))
    return op.emit({0: op.operand(0), 1: op.operand(1)}, axis=axis)


@LAYOUTS.rule("GatherND")
def gather_nd(node: Node) -> Propagation | Skip:
    """GatherND: axes without an index stay last, in any order; so do the axes of the indices."""
    rank, width, depth = rank_of(node), rank_of(node, 1), _depth(node)
    if rank is None or width is None or depth is None:
        return NO_RANK
    batch = node.attr("batch_dims", 0)
    data = whole(rank)
    indices = (*data[:batch], *whole(width - batch, 100))
    out = (*indices[:-1], *data[batch + depth :])
    fixed, free, listed = data[: batch + depth], data[batch + depth :], indices[batch:-1]

    def allows(order: Labels) -> bool:
        return (
            _starts(order, data, fixed)
            and _starts(order, indices, indices[:batch])
            and _arranged(order, indices)[-1] == indices[-1]
            and _arranged(order, out) == (*indices[:batch], *_arranged(order, listed + free))
            and set(_arranged(order, listed + free)[: len(listed)]) == set(listed)
        )

    return Propagation((data, indices), (out,), _write_nd, allows=allows)


@LAYOUTS.rule("ScatterND")
def scatter_nd(node: Node) -> Propagation | Skip:
    """ScatterND: axes without an index stay last, in any order."""
    rank, width, depth = rank_of(node), rank_of(node, 1), _depth(node)
    if rank is None or width is None or depth is None:
        return NO_RANK
    data, indices = whole(rank), whole(width, 100)
    updates = (*indices[:-1], *data[depth:])

    def allows(order: Labels) -> bool:
        # If two indices are equal, the order of the updates matters.
        return (
            _starts(order, data, data[:depth])
            and _arranged(order, indices) == indices
            and _starts(order, updates, indices[:-1])
        )

    return Propagation((data, indices, updates), (data,), _write_nd, allows=allows)


def _depth(node: Node) -> int | None:
    """Return the number of data axes in one index of GatherND or ScatterND."""
    indices = node.input(1)
    depth = indices.dim(-1) if indices is not None else None
    return depth if isinstance(depth, int) else None


def _arranged(order: Labels, labels: Labels) -> Labels:
    return tuple(label for label in order if label in labels)


def _starts(order: Labels, labels: Labels, wanted: Labels) -> bool:
    return _arranged(order, labels)[: len(wanted)] == wanted


def _write_nd(op: Permuted) -> Sequence[Value]:
    return op.emit({slot: op.operand(slot) for slot in range(len(op.node.inputs))})


@LAYOUTS.rule("Compress")
def compress(node: Node) -> Propagation | Skip:
    """Compress: along an axis; without one it flattens the operand."""
    rank, axis = rank_of(node), node.attr("axis", None)
    if rank is None:
        return NO_RANK
    if axis is None:
        return Skip("without an axis it flattens its operand")
    labels = whole(rank)
    return Propagation((labels, None), (labels,), _write_compress)


def _write_compress(op: Permuted) -> Sequence[Value]:
    axis = op.moved(op.propagation.own(0), op.node.attr("axis"))
    return op.emit({0: op.operand(0)}, axis=axis)
