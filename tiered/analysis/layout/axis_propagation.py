"""Axis propagation: which axes of an operator's operands and outputs are permuted together.

A rule assigns a label, an integer, to each axis of each operand and output. Axes with one label are
permuted together: `Add(x, y)` of ranks 4 and 3 has the labels (0, 1, 2, 3), (1, 2, 3) and (0, 1, 2,
3). An order is a tuple of all labels of the operator; an operator that is written in this order has
the labels of each operand and output in the same sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, NamedTuple

import numpy as np

from tiered.analysis.layout.permutation import Permutation, between
from tiered.graph import Graph, Node, Value
from tiered.graph.opset.aspect import Aspect
from tiered.graph.opset.newest_form import detached, newest_form
from tiered.rewriter import Skip

Labels = tuple[int, ...]
"""The labels of one operand or output, or of an operator, in some order."""


def any_order(order: Labels) -> bool:
    """Allow every order."""
    return True


class KernelAccess(NamedTuple):
    """How the kernel of an operator walks through memory: what its time in an order depends on.

    Attributes:
        family: the kind of kernel, as `work` knows them.
        axes: the labels of the axes that it slices, joins, reduces or sums over.
        is_flat: of a product, whether all matrices of the batch are one: as it is, and swapped.
    """

    family: str
    axes: Labels = ()
    is_flat: tuple[bool, bool] = (False, False)


class AxisPropagation(NamedTuple):
    """The permutations that an operator allows, and how it is written with permuted axes.

    Attributes:
        inputs: the labels of each input; None for an input that is not permuted.
        outputs: the same for the outputs.
        write: builds the operator in another order and returns its outputs.
        allows: returns whether the operator exists in an order.
        ties: labels of operands and labels of outputs that are adjacent in every allowed order, as
            where a Reshape splits one dim into several.
        max_distance: through how many operators an order goes, this one included; None for no
            limit.
        kernel: what its time depends on; None if it takes as long in every order.
    """

    inputs: tuple[Labels | None, ...]
    outputs: tuple[Labels | None, ...]
    write: Callable[[Permuted], Sequence[Value]]
    allows: Callable[[Labels], bool] = any_order
    ties: tuple[tuple[Labels, Labels], ...] = ()
    max_distance: int | None = None
    kernel: KernelAccess | None = None

    @property
    def labels(self) -> Labels:
        """Return all labels, in the order in which they first occur."""
        ports = (*self.inputs, *self.outputs)
        return tuple(dict.fromkeys(label for port in ports for label in port or ()))

    def completed(self, known: Labels) -> Labels:
        """Extend an order of some labels to an order of all labels.

        Labels tied to known ones follow them; other labels follow their predecessors.
        """
        order = list(known)
        for before, after in self.ties:
            for one, other in ((before, after), (after, before)):
                if set(order).issuperset(one) and set(order).isdisjoint(other):
                    at = max(map(order.index, one)) + 1
                    order[at:at] = other
        # Of hundreds of equal operands, as Concat has, one says it all.
        for port in dict.fromkeys((*self.inputs, *self.outputs)):
            insert_missing(order, port or ())
        return tuple(order)

    def in_order(self, own: Labels, view: Permutation, order: Permutation) -> Labels | None:
        """Return the order of all labels that puts a tensor into an order; None if there is none.

        Args:
            own: the labels of an operand or output.
            view: the present order of the tensor.
            order: the order to put it into.
        """
        label_of = dict(zip(view, own, strict=True))
        completed = self.completed(tuple([label_of[axis] for axis in order]))
        return completed if self.allows(completed) else None

    def own(self, slot: int) -> Labels:
        """Return the labels of an input that is permuted."""
        labels = self.inputs[slot]
        assert labels is not None
        return labels

    @property
    def result(self) -> Labels:
        """Return the labels of the first output, which is permuted."""
        labels = self.outputs[0]
        assert labels is not None
        return labels


def insert_missing(order: list[int], items: Sequence[int]) -> None:
    """Insert each missing item after its predecessor in `items`.

    A missing first item is inserted before the first item that is present.
    """
    for at, item in enumerate(items):
        if item in order:
            continue
        if at:
            place = order.index(items[at - 1]) + 1
        else:
            place = min((order.index(other) for other in items if other in order), default=0)
        order.insert(place, item)


Rule = Callable[[Node], AxisPropagation | Skip]
"""Returns how permutations propagate through an operator, or why none does."""

LAYOUTS: Final[Aspect[Rule]] = Aspect("layout")


class Permuted:
    """An operator that is being written in another order of its axes.

    `fetch` returns an input in that order.
    """

    def __init__(
        self,
        node: Node,
        propagation: AxisPropagation,
        order: Labels,
        fetch: Callable[[Permuted, int], Value],
    ) -> None:
        self.node = node
        self.propagation = propagation
        self.order = order
        self.fetch = fetch

    @property
    def graph(self) -> Graph:
        return self.node.owner

    @cached_property
    def places(self) -> Mapping[int, int]:
        return {label: at for at, label in enumerate(self.order)}

    def arranged(self, labels: Iterable[int]) -> Labels:
        """Return labels in the new order."""
        return tuple(sorted(labels, key=self.places.__getitem__))

    def moved(self, labels: Labels, axis: int) -> int:
        """Return the new index of an axis, which may be negative."""
        return self.arranged(labels).index(labels[axis])

    def perm(self, labels: Labels) -> Permutation:
        """Return the permutation of a tensor with these labels to the new order."""
        return between(labels, self.arranged(labels))

    def operand(self, slot: int) -> Value:
        """Return an input in the new order."""
        return self.fetch(self, slot)

    def aligned(self, slot: int, target: Labels) -> Value:
        """Return an input with dims of size 1 inserted so that it broadcasts to permuted labels."""
        value, own = self.fetch(self, slot), self.propagation.own(slot)
        wanted = self.arranged(target)
        start = min((wanted.index(label) for label in own), default=len(wanted))
        missing = [at for at, label in enumerate(wanted[start:]) if label not in own]
        return self.unsqueezed(value, missing)

    def unsqueezed(self, value: Value, axes: Sequence[int]) -> Value:
        """Return a value with more dims of size 1."""
        if not axes:
            return value
        array = value.const
        if array is not None:
            wide = self.graph.constant(np.expand_dims(array, tuple(axes)), value.name)
            self.graph.discard(value)
            return wide
        return self.graph.op.Unsqueeze(value, np.array(axes, np.int64))

    @property
    def permuted_slots(self) -> Sequence[int]:
        """Return the inputs that are permuted."""
        inputs = enumerate(self.propagation.inputs)
        return [slot for slot, labels in inputs if labels is not None]

    def permuted(self) -> dict[int, Value]:
        """Return the inputs that are permuted, in the new order."""
        return {slot: self.operand(slot) for slot in self.permuted_slots}

    def vector(self, slot: int, labels: Labels, halves: int = 1) -> Value | None:
        """Return an operand with one number for each axis, `halves` times, in the new order."""
        value = self.operands[slot]
        if value is None:
            return None
        perm = self.perm(labels)
        index = np.array(
            [axis + half * len(perm) for half in range(halves) for axis in perm], np.int64
        )
        array = value.const
        if array is not None:
            # For some operators an empty list means that the operand is absent.
            return detached(array[index], value.name) if array.size else value
        return self.graph.op.Gather(value, index)

    @cached_property
    def _form(self) -> tuple[Sequence[Value | None], Mapping[str, Any]]:
        form = newest_form(self.node)
        if form is None:
            return self.node.inputs, self.node.attributes
        return form.operands, form.attributes

    @property
    def operands(self) -> Sequence[Value | None]:
        """Return the operands in the newest form, in the old order."""
        return self._form[0]

    def emit(
        self, operands: Mapping[int, Value | np.ndarray[Any, Any] | None], **attributes: Any
    ) -> tuple[Value, ...]:
        """Build the operator with other operands and attributes, and return its outputs."""
        old, written = self._form
        inputs: list[Any] = list(old)
        inputs += [None] * (max(operands, default=-1) + 1 - len(inputs))
        for slot, value in operands.items():
            inputs[slot] = value
        build: Any = self.graph.op(self.node.domain).named(self.node.op_type)
        count = len(self.node.outputs)
        made = build(*inputs, outputs=count, name=self.node.name, **{**written, **attributes})
        return (made,) if count == 1 else tuple(made)


def rank_of(node: Node, slot: int = 0) -> int | None:
    """Return the rank of an input; None if the input is absent or its rank unknown."""
    value = node.input(slot)
    return None if value is None else value.rank


def constant_operand(node: Node, slot: int) -> np.ndarray[Any, Any] | None:
    """Return the array of an operand in the newest opset form; None if it is not constant."""
    value = node.operand(slot)
    return None if value is None else value.const


FIXED: Final = Skip("the operator fixes its axis order")
