"""Operators that change the set of axes: Reshape, Gather, Shape, Size.

The groups of a Reshape and the axes of a Gather follow from axis maps. That a shape of constants
must express the groups in another order, and that sizes are those of a permuted tensor, does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

import numpy as np

from tiered.analysis.axes.axis_map import NO_RANK, Axes, map_of, whole
from tiered.analysis.axes.regrouping import Group, SizedShape, sized
from tiered.analysis.layout.axis_propagation import (
    LAYOUTS,
    AxisPropagation,
    KernelAccess,
    Labels,
    Permuted,
)
from tiered.analysis.layout.derived import Write, named, write_as_it_is, write_axis
from tiered.graph import Node, Value
from tiered.graph.core.types import Shape
from tiered.graph.shape_inference.symbolic_dims import Size
from tiered.rewriter import Skip
from tiered.support.records import Record

# --- Reshape --------------------------------------------------------------------------------------


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
def reshape(node: Node) -> AxisPropagation | Skip:
    """Reshape and Flatten: dims that are merged or split stay adjacent.

    Dims of size 1 may be at any position.
    """
    axes = map_of(node)
    ports, shape = (axes.inputs[0], axes.outputs[0]), node.output.shape
    assert shape is not None
    after = sized(shape, node.owner.model.dims)
    takes_empty = node.output.static_shape is not None or _takes_empty(node)
    return _reshape(ports, axes.groups, after, len(node.inputs) - 1, takes_empty)


def _takes_empty(node: Node) -> bool:
    """Return whether it is valid if a dim is 0, which is not allowed beside -1."""
    shape = node.operand("shape") if node.op_type == "Reshape" else None
    elements = None if shape is None else shape.elements
    if elements is None or -1 not in (known := elements.tolist()):
        return True
    return all(isinstance(each, int) and each for each in known)


@lru_cache(maxsize=4096)
def _reshape(
    ports: tuple[Axes | None, Axes | None],
    ties: tuple[Group, ...],
    after: SizedShape,
    others: int,
    takes_empty: bool,
) -> AxisPropagation:
    source, target = named(ports)
    assert source is not None
    assert target is not None
    kept = tuple(((label,), (label,)) for label in source if label in target)
    sizes = tuple(dim for dim, _ in after)
    vanishing = tuple(
        label for label, (_, size) in zip(target, after, strict=True) if _may_be_zero(size)
    )
    regrouping = Regrouping(source, target, (*ties, *kept), sizes, vanishing, takes_empty)
    inputs = (source, *(None,) * others)
    write = partial(_write_reshape, regrouping)
    return AxisPropagation(inputs, (target,), write, allows=regrouping.allows, ties=ties)


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


# --- Shape, Size ----------------------------------------------------------------------------------


@LAYOUTS.rule("Shape")
def shape_of(node: Node) -> AxisPropagation | Skip:
    """Shape: the sizes of the permuted tensor, gathered into the original order."""
    return _of_sizes(node, _write_shape)


@LAYOUTS.rule("Size")
def size_of(node: Node) -> AxisPropagation | Skip:
    """Size: it does not depend on the order."""
    return _of_sizes(node, write_as_it_is)


def _of_sizes(node: Node, write: Write) -> AxisPropagation | Skip:
    """Return the propagation of an operator that reads no elements, and so has no axis map."""
    rank = node.given(0).rank
    return NO_RANK if rank is None else AxisPropagation((whole(rank),), (None,), write)


def _write_shape(op: Permuted) -> Sequence[Value]:
    labels, node = op.propagation.own(0), op.node
    wanted = labels[slice(node.attr("start"), node.attr("end", None))]
    arranged = op.arranged(labels)
    places = np.array([arranged.index(label) for label in wanted], np.int64)
    sizes = op.graph.op.Shape(op.operand(0), name=node.name)
    return (op.graph.op.Gather(sizes, places),)


# --- Gather ---------------------------------------------------------------------------------------


@LAYOUTS.rule("Gather")
def gather(node: Node) -> AxisPropagation | Skip:
    """Gather: the axes of the indices replace the gathered axis and stay adjacent."""
    axes = map_of(node)
    data, indices = axes.inputs
    return _gather(data, indices, axes.outputs[0])


@lru_cache
def _gather(data: Labels, indices: Labels, out: Labels) -> AxisPropagation:
    """Return the propagation for labels of data, indices and result: equal ones are one object."""
    (axis,) = (label for label in data if label not in out)
    if len(indices) == 1:
        # The axis of the indices is where the gathered axis was: they have one label.
        return AxisPropagation(
            (data, (axis,)), (data,), write_axis, kernel=KernelAccess("gather", (axis,))
        )

    def allows(order: Labels) -> bool:
        rest = [label for label in order if label in data]
        at = rest.index(axis)
        inner = [label for label in order if label in indices]
        wanted = [*rest[:at], *inner, *rest[at + 1 :]]
        return wanted == [label for label in order if label in out]

    ties = (((axis,), indices),) if indices else ()
    kernel = KernelAccess("gather", indices or (axis,))
    return AxisPropagation(
        (data, indices), (out,), write_axis, allows=allows, ties=ties, kernel=kernel
    )
