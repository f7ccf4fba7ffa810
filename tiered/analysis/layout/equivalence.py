"""Equivalence classes of values up to permutation, and operators with the orders they may have.

A Transpose changes only the axis order of a tensor, so its input and its output are in one class,
a `TensorClass`. Each value in the class is a view: a permutation of the root.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from tiered.analysis.layout.axis_propagation import AxisPropagation, Labels
from tiered.analysis.layout.permutation import Permutation, compose
from tiered.graph import Node, Value
from tiered.graph.core.types import Shape
from tiered.graph.core.value import Use

Place = tuple[Node, Permutation, int, bool]
"""A node, its view of a tensor, and the index of the operand, or of the output if it is one."""


_FEW: Final = 8
"""Of so few ports, that of a tensor is found by looking at each."""


def is_live(value: Value) -> bool:
    """Return whether a value is still in its model."""
    producer = value.producer
    return value.graph is not None and (producer is None or producer.is_live)


class TensorClass:
    """One tensor in all its axis orders.

    Attributes:
        root: the output of its producer, or a graph input.
        shape: the shape of the root.
        views: the values that are permutations of the root, with the permutation; the root too.
        uses: the uses of each view, without those by Transposes.
        orders: the possible orders: those of the views, and those that a search found; each with
            the number of operators that the search may continue from here, 0 if none did.
    """

    __slots__ = ("orders", "root", "shape", "uses", "views")

    def __init__(self, root: Value, shape: Shape) -> None:
        self.root = root
        self.shape = shape
        self.views: dict[Value, Permutation] = {}
        self.uses: dict[Value, list[Use]] = {}
        self.orders: dict[Permutation, int] = {}

    @property
    def identity(self) -> Permutation:
        """Return the order in which the producer makes it."""
        return self.views[self.root]

    def trace(self) -> None:
        """Find all views and their uses."""
        self.views, self.uses = {self.root: tuple(range(len(self.shape)))}, {}
        pending = [self.root]
        while pending:
            value = pending.pop()
            uses = self.uses[value] = []
            for use in value.users:
                node, _ = use
                perm = node.perm
                if perm is None or len(perm) != len(self.shape):
                    uses.append(use)
                else:
                    self.views[node.output] = compose(self.views[value], perm)
                    pending.append(node.output)
        for view in self.views.values():
            self.orders.setdefault(view, 0)

    @property
    def users(self) -> Iterator[Node]:
        """Yield the producer and the consumers of the tensor, without Transposes."""
        if self.root.producer is not None:
            yield self.root.producer
        for uses in self.uses.values():
            yield from (node for node, _ in uses)

    def places_in_other_orders(self, order: Permutation) -> list[Place]:
        """Return where nodes make or read the tensor in another order than this one."""
        found = []
        root = self.root
        for value, view in self.views.items():
            if view == order:
                continue
            if value is root and root.producer is not None:
                found.append((root.producer, view, root.index, True))
            found += [(node, view, slot, False) for node, slot in self.uses[value]]
        return found


class OperatorPort(NamedTuple):
    """An operand or output of an operator: a view of a tensor."""

    tensor: TensorClass
    view: Permutation
    slot: int
    is_output: bool


class OrderChoice(NamedTuple):
    """An order that an operator may have, and the resulting orders of the tensors at its ports."""

    labels: Labels
    orders: tuple[Permutation, ...]


class ChoiceTable:
    """The choices of operators with equal propagations whose tensors are in the same orders.

    Attributes:
        propagation: how permutations propagate through the operators.
        ports: the labels and the view of each port.
        choices: the orders found so far; the present order is number 0.
    """

    def __init__(
        self, propagation: AxisPropagation, ports: Sequence[tuple[Labels, Permutation]]
    ) -> None:
        self.propagation = propagation
        self.ports = tuple(ports)
        self.choices = [OrderChoice(propagation.labels, tuple([view for _, view in ports]))]
        # By port and order. Many operators have hundreds of equal ports, as a Split or a Concat.
        known: dict[tuple[Labels, Permutation], dict[Permutation, int | None]] = {}
        self._numbers = [known.setdefault(port, {}) for port in self.ports]
        self._moving: dict[tuple[int, ...], tuple[int, ...]] = {}
        self._orders: dict[tuple[int, int], tuple[Permutation, ...]] = {}

    def find(self, at: int, order: Permutation) -> int | None:
        """Return the number of the choice in which a port has an order; None if there is none."""
        numbers = self._numbers[at]
        if order not in numbers:
            numbers[order] = self._find(at, *self.ports[at], order)
        return numbers[order]

    def _find(self, at: int, labels: Labels, view: Permutation, order: Permutation) -> int | None:
        if order == view:
            return 0
        completed = self.propagation.in_order(labels, view, order)
        if completed is None:
            return None
        number = self.choose(completed)
        return number if self.choices[number].orders[at] == order else None

    def moving_ports(self, numbers: Sequence[int]) -> tuple[int, ...]:
        """Return the ports that have several orders in these choices."""
        key = tuple(numbers)
        known = self._moving.get(key)
        if known is None:
            first, *others = [self.choices[number].orders for number in key]
            known = self._moving[key] = tuple(
                at for at, order in enumerate(first) if any(each[at] != order for each in others)
            )
        return known

    def orders_of(self, at: int) -> tuple[Permutation, ...]:
        """Return the orders that a port has in the choices found so far."""
        key = at, len(self.choices)
        known = self._orders.get(key)
        if known is None:
            known = self._orders[key] = tuple([choice.orders[at] for choice in self.choices])
        return known

    def choose(self, labels: Labels) -> int:
        """Return the number of the choice with these labels; add it if it is new."""
        orders = tuple([_order(own, view, labels) for own, view in self.ports])
        for number, choice in enumerate(self.choices):
            if choice.orders == orders:
                return number
        self.choices.append(OrderChoice(labels, orders))
        return len(self.choices) - 1


def _order(own: Labels, view: Permutation, labels: Labels) -> Permutation:
    """Return the order of a tensor's axes if its operator has the order `labels`."""
    axis_of = dict(zip(own, view, strict=True))
    return tuple([axis_of[label] for label in labels if label in axis_of])


class LayoutOperator:
    """A node through which permutations propagate: a variable of the labelling problem.

    Attributes:
        node: the node.
        table: its choices.
        ports: the tensors that it reads and makes.
        candidates: the numbers of the choices that the solver considers.
        wanted: the number of the choice that the user asks for; None if any will do.
        work: the time that it takes in each candidate; missing ones count 0.
    """

    __slots__ = ("_places", "candidates", "node", "ports", "table", "wanted", "work")

    def __init__(self, node: Node, table: ChoiceTable, ports: Sequence[OperatorPort]) -> None:
        self.node = node
        self.table = table
        self.ports = tuple(ports)
        self._places: Mapping[TensorClass, Sequence[int]] | None = None
        self.candidates = [0]
        self.wanted: int | None = None
        self.work: Mapping[int, int] = {}

    @property
    def propagation(self) -> AxisPropagation:
        return self.table.propagation

    @property
    def choices(self) -> Sequence[OrderChoice]:
        return self.table.choices

    @property
    def moving_ports(self) -> tuple[int, ...]:
        """The indices of the ports that have several orders in its candidates."""
        return self.table.moving_ports(self.candidates)

    @property
    def is_free(self) -> bool:
        """Return whether it has more than one candidate."""
        return len(self.candidates) > 1

    @property
    def places(self) -> Mapping[TensorClass, Sequence[int]]:
        """The tensors that it reads and makes, with the indices of their ports."""
        if self._places is None:
            found: dict[TensorClass, list[int]] = {}
            for at, port in enumerate(self.ports):
                found.setdefault(port.tensor, []).append(at)
            self._places = found
        return self._places

    def find(self, tensor: TensorClass, order: Permutation) -> int | None:
        """Return the number of the choice with a tensor in an order; None if there is none."""
        own: Sequence[int]
        if len(self.ports) > _FEW:
            own = self.places.get(tensor, ())
        else:
            own = [at for at, port in enumerate(self.ports) if port.tensor is tensor]
        for at in own:
            number = self.table.find(at, order)
            if number is not None:
                return number
        return None

    def add_candidate(self, number: int) -> None:
        """Add a choice to the candidates."""
        if number not in self.candidates:
            self.candidates.append(number)

    def prefer(self, labels: Labels) -> None:
        """Set the order that the user asks for, and make it a candidate."""
        self.wanted = self.table.choose(labels)
        self.add_candidate(self.wanted)
