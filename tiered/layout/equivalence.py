"""Wires: tensors whatever their order, and operators with the orders that they may have.

A Transpose gives the tensor that it reads another order, and nothing else: both are one wire, of
which each value is a view.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tiered.graph import Node, Value
from tiered.graph.core.types import Shape
from tiered.graph.core.value import Use
from tiered.layout.permutation import Permutation, compose
from tiered.layout.propagation import Labels, Passage


def is_live(value: Value) -> bool:
    """Tell whether a value is in its model: what nobody reads goes with what it alone had read."""
    producer = value.producer
    return value.graph is not None and (producer is None or producer.is_live)


class Wire:
    """One tensor, whatever its order.

    Attributes:
        root: the value that its producer makes, or that the graph is given.
        shape: of the root.
        views: each value that is a permutation of the root, and which; the root too.
        uses: who reads each view and where, without the Transposes.
        orders: those that the wire might have: its views', and what operators would hand on; each
            with how much further a search that came to it might have gone, 0 where none came.
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
        """Return the order in which it is made."""
        return self.views[self.root]

    def trace(self) -> None:
        """Find all views, and who reads them."""
        self.views, self.uses = {self.root: tuple(range(len(self.shape)))}, {}
        pending = [self.root]
        while pending:
            value = pending.pop()
            uses = self.uses[value] = []
            for use in value.users:
                # Few readers are Transposes: the others are not asked for their permutation.
                perm = use.node.perm
                if perm is None or len(perm) != len(self.shape):
                    uses.append(use)
                else:
                    self.views[use.node.output] = compose(self.views[value], perm)
                    pending.append(use.node.output)
        for view in self.views.values():
            self.orders.setdefault(view, 0)

    @property
    def users(self) -> Iterator[Node]:
        """Yield the nodes that make the wire or read it, without the Transposes."""
        if self.root.producer is not None:
            yield self.root.producer
        for uses in self.uses.values():
            yield from (node for node, _ in uses)

    def users_in_other_orders(self, order: Permutation) -> list[Node]:
        """Return the users that have it in another order than this one."""
        others = [value for value, view in self.views.items() if view != order]
        found = [node for value in others for node, _ in self.uses[value]]
        if self.root.producer is not None and self.identity != order:
            found.insert(0, self.root.producer)
        return list(dict.fromkeys(found)) if len(found) > 1 else found


class Port(NamedTuple):
    """Where an operator reads or makes a wire: the value there is a view of it."""

    wire: Wire
    view: Permutation
    slot: int
    is_output: bool


class Choice(NamedTuple):
    """An order that an operator may have, and those of the wires of its ports then."""

    labels: Labels
    orders: tuple[Permutation, ...]


class Kind:
    """Operators of one passage that have their wires in the same orders: what they may choose.

    Attributes:
        passage: how permutations pass them.
        ports: which wires they read and make, whatever these are: labels and views.
        choices: the orders that they may have, as far as they were asked for; as they are comes
            first.
    """

    def __init__(self, passage: Passage, ports: Sequence[tuple[Labels, Permutation]]) -> None:
        self.passage = passage
        self.ports = tuple(ports)
        self.choices = [Choice(passage.labels, tuple(view for _, view in ports))]
        self._numbers: dict[tuple[int, Permutation], int | None] = {}

    def find(self, at: int, order: Permutation) -> int | None:
        """Return the number of the choice in which a port has an order, if there is one."""
        key = at, order
        if key not in self._numbers:
            self._numbers[key] = self._find(at, order)
        return self._numbers[key]

    def _find(self, at: int, order: Permutation) -> int | None:
        labels, view = self.ports[at]
        if order == view:
            return 0
        completed = self.passage.in_order(labels, view, order)
        if completed is None:
            return None
        number = self.choose(completed)
        return number if self.choices[number].orders[at] == order else None

    def choose(self, labels: Labels) -> int:
        """Return the number of the choice of these labels."""
        orders = tuple([_order(own, view, labels) for own, view in self.ports])
        for number, choice in enumerate(self.choices):
            if choice.orders == orders:
                return number
        self.choices.append(Choice(labels, orders))
        return len(self.choices) - 1


def _order(own: Labels, view: Permutation, labels: Labels) -> Permutation:
    """Return the order of a wire's axes in which an operator in another order has it."""
    axis_of = dict(zip(own, view, strict=True))
    return tuple([axis_of[label] for label in labels if label in axis_of])


class Operator:
    """A node that a permutation may pass.

    Attributes:
        node: the node.
        kind: what it may choose.
        ports: the wires that it reads and makes.
        open: the numbers of the choices that a placement has to look at.
        wanted: the number of the one in which the user wants it.
    """

    __slots__ = ("kind", "node", "open", "ports", "wanted")

    def __init__(self, node: Node, kind: Kind, ports: Sequence[Port]) -> None:
        self.node = node
        self.kind = kind
        self.ports = tuple(ports)
        self.open = [0]
        self.wanted: int | None = None

    def __hash__(self) -> int:
        return self.node.id

    @property
    def passage(self) -> Passage:
        return self.kind.passage

    @property
    def choices(self) -> Sequence[Choice]:
        return self.kind.choices

    @property
    def is_free(self) -> bool:
        """Tell whether there is more than one order to choose from."""
        return len(self.open) > 1

    def find(self, wire: Wire, order: Permutation) -> int | None:
        """Return the number of the choice in which it has a wire in an order, if there is one."""
        for at, port in enumerate(self.ports):
            if port.wire is wire:
                number = self.kind.find(at, order)
                if number is not None:
                    return number
        return None

    def offer(self, number: int) -> None:
        """Take a choice for one that a placement has to look at."""
        if number not in self.open:
            self.open.append(number)

    def want(self, labels: Labels) -> None:
        """Note in which order the user wants it."""
        self.wanted = self.kind.choose(labels)
        self.offer(self.wanted)
