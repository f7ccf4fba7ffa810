"""Wires: tensors whatever their order, and the operators that a change of order would reach.

A Transpose gives the tensor that it reads another order, and nothing else: both are one wire, of
which each value is a view. From the Transposes on, a search follows the pairs of axes that some
view has the other way round, through all operators that a permutation passes. What it does not
reach is not looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from tiered.graph import Function, Graph, Model, Node, Value
from tiered.layout.channels import DOMAIN, Wanted, channels_last, layout_wanted, offered
from tiered.layout.passage import Labels, Passage, rank_of
from tiered.layout.permutation import (
    Permutation,
    compose,
    permutation_of,
)
from tiered.layout.rules import passage_of
from tiered.rewrite import Skip

MOST_ORDERS: Final = 6
"""Of one wire: what else an operator hands on is not followed."""

FAR: Final = 1 << 30

TWICE = Skip("one axis of it would have to stand in two places")


@dataclass(eq=False, slots=True)
class Wire:
    """One tensor, whatever its order.

    Attributes:
        root: the value that its producer makes, or that the graph is given.
        rank: of it, and of all its views.
        views: each value that is a permutation of the root, and which; the root too.
        orders: those that the wire might have: its views', and what operators would hand on.
        axes: a number for each axis of the root, which axes of other wires share that must change
            places together.
    """

    root: Value
    rank: int
    views: dict[Value, Permutation]
    orders: dict[Permutation, None] = field(default_factory=dict)
    axes: list[int] = field(default_factory=list)

    @property
    def is_contested(self) -> bool:
        """Tell whether there is more than one order to choose from."""
        return len(self.orders) > 1


class Port(NamedTuple):
    """Where an operator reads or makes a wire: the labels of the value, which is a view of it."""

    wire: Wire
    view: Permutation
    labels: Labels
    slot: int
    is_output: bool

    def order(self, labels: Sequence[int]) -> Permutation:
        """Return the order of the wire's axes in which an operator in this order has it."""
        axis_of = dict(zip(self.labels, self.view, strict=True))
        return tuple(axis_of[label] for label in labels if label in axis_of)


@dataclass(eq=False, slots=True)
class Operator:
    """A node that a permutation may pass, with the wires that it reads and makes.

    `wanted` is the order in which the user wants it.
    """

    node: Node
    passage: Passage
    ports: list[Port]
    axes: dict[int, int] = field(default_factory=dict)
    wanted: Labels | None = None

    def __hash__(self) -> int:
        return self.node.id

    def labels(self, wire: Wire, order: Permutation) -> Labels | None:
        """Return the order of the operator in which it has a wire in some order, if it can."""
        for port in self.ports:
            if port.wire is wire:
                label_of = dict(zip(port.view, port.labels, strict=True))
                labels = self.passage.completed(tuple(label_of[axis] for axis in order))
                if port.order(labels) == order and self.passage.allows(labels):
                    return labels
        return None


class Wiring:
    """The wires of a model as far as they were asked for, and the operators found on the way."""

    def __init__(self, model: Model, wanted: Wanted | None = None) -> None:
        self.model = model
        self.wanted = wanted or {}
        self.wires: dict[Value, Wire] = {}
        self.operators: dict[Node, Operator] = {}
        self.refusals: dict[Node, Skip] = {}
        self._parents: list[int] = []
        # The wires that have an axis of each number.
        self._members: list[set[Wire]] = []

    # --- wires ------------------------------------------------------------------------------------

    def wire_of(self, value: Value) -> Wire | None:
        """Return the wire that a value is a view of; None for constants and unknown ranks."""
        known = self.wires.get(value)
        if known is not None:
            return known
        root = value
        while True:
            producer = root.producer
            if producer is None or permutation_of(producer) is None:
                break
            source = producer.input(0)
            if source is None:
                break
            root = source
        if root.tensor is not None or root.rank is None:
            return None
        return self.wires.get(root) or self._new(root, root.rank)

    def _new(self, root: Value, rank: int) -> Wire:
        wire = Wire(root, rank, {root: tuple(range(rank))})
        pending = [root]
        while pending:
            value = pending.pop()
            for node, _ in value.users:
                perm = permutation_of(node)
                if perm is not None and len(perm) == rank and node.outputs[0] is not None:
                    wire.views[node.output] = compose(wire.views[value], perm)
                    pending.append(node.output)
        for value, view in wire.views.items():
            self.wires[value] = wire
            wire.orders[view] = None
        first = len(self._parents)
        wire.axes = list(range(first, first + rank))
        self._parents.extend(wire.axes)
        self._members.extend({wire} for _ in wire.axes)
        return wire

    def users(self, wire: Wire) -> Iterator[Node]:
        """Yield the nodes that make a wire or read a view of it, without the Transposes."""
        if wire.root.producer is not None:
            yield wire.root.producer
        for value in wire.views:
            for node, _ in value.users:
                if not (node.outputs and node.outputs[0] in wire.views):
                    yield node

    # --- search -----------------------------------------------------------------------------------

    def search(self, starts: Iterable[tuple[Wire, Permutation]]) -> None:
        """Follow orders of wires from where they begin through all operators that have them."""
        pending = deque((wire, order, FAR) for wire, order in starts)
        followed: dict[tuple[Wire, Permutation], int] = {}
        while pending:
            wire, order, reach = pending.popleft()
            if followed.get((wire, order), 0) >= reach:
                continue
            if order not in wire.orders:
                if len(wire.orders) == MOST_ORDERS:
                    continue
                wire.orders[order] = None
            followed[wire, order] = reach
            for node in dict.fromkeys(self.users(wire)):
                operator = self.operator(node)
                if operator is not None:
                    pending.extend(_handed_on(operator, wire, order, reach))

    def operator(self, node: Node) -> Operator | None:
        """Return how permutations pass a node; None, with a note of the reason, if none does."""
        known = self.operators.get(node)
        if known is not None or node in self.refusals:
            return known
        passage = offered(node, passage_of(node), self.wanted)
        if isinstance(passage, Skip):
            self.refusals[node] = passage
            return None
        ports = [*self._ports(node.inputs, passage.inputs, is_output=False)]
        ports += self._ports(node.outputs, passage.outputs, is_output=True)
        operator = Operator(node, passage, ports, wanted=self._wanted_order(node))
        if not self._join(operator):
            self.refusals[node] = TWICE
            return None
        self.operators[node] = operator
        return operator

    def _wanted_order(self, node: Node) -> Labels | None:
        """Return the order that the user wants of a node's labels; None where it may choose."""
        rank = rank_of(node)
        if rank is None or layout_wanted(node, self.wanted) != "NHWC":
            return None
        return channels_last(rank)

    def search_wanted(self, nodes: Iterable[Node]) -> None:
        """Follow the orders that the user wants of nodes."""
        starts = []
        for node in nodes:
            operator = self.operator(node) if layout_wanted(node, self.wanted) == "NHWC" else None
            if operator is not None and operator.ports and operator.wanted is not None:
                port = operator.ports[0]
                starts.append((port.wire, port.order(operator.wanted)))
        self.search(starts)

    def _ports(
        self, values: Sequence[Value | None], labels: Sequence[Labels | None], *, is_output: bool
    ) -> Iterator[Port]:
        for slot, (value, own) in enumerate(zip(values, labels, strict=True)):
            wire = None if value is None or own is None else self.wire_of(value)
            if wire is not None and value is not None and own is not None:
                assert len(own) == wire.rank, f"{own} are not the labels of {value!r}"
                yield Port(wire, wire.views[value], own, slot, is_output)

    # --- which axes go together -------------------------------------------------------------------

    def axis(self, number: int) -> int:
        """Return the number that stands for all the axes that go together with one."""
        while self._parents[number] != number:
            self._parents[number] = self._parents[self._parents[number]]
            number = self._parents[number]
        return number

    def _join(self, operator: Operator) -> bool:
        """Make the axes of one label one; tell whether no wire has an axis twice then."""
        for port in operator.ports:
            for label, axis in zip(port.labels, port.view, strict=True):
                number = port.wire.axes[axis]
                if not self._unite(operator.axes.setdefault(label, number), number):
                    return False
        return True

    def _unite(self, one: int, other: int) -> bool:
        one, other = self.axis(one), self.axis(other)
        if one == other:
            return True
        if len(self._members[one]) < len(self._members[other]):
            one, other = other, one
        if not self._members[one].isdisjoint(self._members[other]):
            return False
        self._parents[other] = one
        self._members[one] |= self._members[other]
        self._members[other] = set()
        return True

    def names(self, wire: Wire, order: Permutation) -> tuple[int, ...]:
        """Return the numbers of a wire's axes in some order of them."""
        return tuple(self.axis(wire.axes[axis]) for axis in order)


def _handed_on(
    operator: Operator, wire: Wire, order: Permutation, reach: int
) -> Iterator[tuple[Wire, Permutation, int]]:
    """Yield the orders that an operator has its wires in, where it has one of them in this one."""
    own = operator.passage.reach or FAR
    reach = min(reach - 1, own) if reach < FAR else own
    labels = operator.labels(wire, order)
    if labels is not None:
        yield from ((port.wire, port.order(labels), reach) for port in operator.ports)


def open_graphs(model: Model) -> Iterator[Graph]:
    """Yield the graphs of a model, without those of the functions that stand for operators."""
    for graph in model.graphs():
        root = graph.root
        if not (isinstance(root, Function) and root.domain == DOMAIN):
            yield graph


def transposes(graph: Graph) -> Iterator[Node]:
    """Yield the Transposes of a graph whose permutation is known."""
    yield from (node for node in graph.nodes_of("Transpose") if permutation_of(node) is not None)


