"""The wiring of a model: the operators that a change of order would reach.

From the Transposes on, a search follows the orders of their wires through all operators that a
permutation passes. What has the order already, or cannot have it, ends the search; what it does not
reach is not looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final

from tiered.graph import Function, Graph, Model, Node, Value
from tiered.layout.equivalence import Kind, Operator, Port, Wire
from tiered.layout.nhwc import (
    DOMAIN,
    Supports,
    Wanted,
    channels_last,
    layout_wanted,
    no_kernels,
    offered,
)
from tiered.layout.permutation import Permutation
from tiered.layout.propagation import Labels, Passage, rank_of
from tiered.layout.rules import passage_of
from tiered.rewriter import Skip

MOST_ORDERS: Final = 6
"""Of one wire: what else an operator hands on is not followed."""

FAR: Final = 1 << 30

Start = tuple[Wire, Permutation]


class Wiring:
    """The wires of a model as far as they were asked for, and the operators found on the way."""

    def __init__(
        self, model: Model, wanted: Wanted | None = None, supports: Supports = no_kernels
    ) -> None:
        self.model = model
        self.wanted = wanted or {}
        self.supports = supports
        self.wires: dict[Value, Wire] = {}
        self.operators: dict[Node, Operator] = {}
        self._takes_channels_last = "NHWC" in self.wanted.values()
        # Of each node that a search came to, which keeps the passages alive.
        self._passages: dict[Node, Passage | Skip] = {}
        self._allowed: dict[Hashable, bool] = {}
        # A kind keeps its passage alive, whose identity is the key.
        self._kinds: dict[Hashable, Kind] = {}

    # --- wires ------------------------------------------------------------------------------------

    def wire_of(self, value: Value) -> Wire | None:
        """Return the wire that a value is a view of; None for constants and unknown ranks."""
        known = self.wires.get(value)
        if known is not None:
            return known
        root = value
        while (producer := root.producer) is not None and producer.op_type == "Transpose":
            source = producer.input(0)
            if source is None or producer.perm is None:
                break
            root = source
        if root.tensor is not None or root.shape is None:
            return None
        return self.wires.get(root) or self._new(Wire(root, root.shape))

    def _new(self, wire: Wire) -> Wire:
        wire.trace()
        for value in wire.views:
            self.wires[value] = wire
        return wire

    # --- operators --------------------------------------------------------------------------------

    def passage(self, node: Node) -> Passage | Skip:
        """Return how permutations pass a node, or why none does."""
        known = self._passages.get(node)
        if known is None:
            known = offered(node, passage_of(node), self.wanted, self.supports)
            self._passages[node] = known
        return known

    @property
    def free(self) -> list[Operator]:
        """The operators that may have several orders, as a search came to them."""
        found = [self.operators.get(node) for node in self._passages]
        return [operator for operator in found if operator is not None and operator.is_free]

    def operator(self, node: Node) -> Operator | None:
        """Return the operator with its wires; None where no permutation passes the node."""
        known = self.operators.get(node)
        if known is not None:
            return known
        passage = self.passage(node)
        if isinstance(passage, Skip):
            return None
        ports = self._ports(node.inputs, passage.inputs, is_output=False)
        ports += self._ports(node.outputs, passage.outputs, is_output=True)
        operator = self.operators[node] = Operator(node, self._kind(passage, ports), ports)
        labels = self._wanted_labels(node)
        if labels is not None and passage.allows(labels):
            operator.want(labels)
        return operator

    def _may_have(self, node: Node, wire: Wire, order: Permutation) -> bool:
        """Tell whether a node can have a wire in another order; many cannot, and need no ports."""
        if self._takes_channels_last:
            return True
        passage = self.passage(node)
        if isinstance(passage, Skip):
            return False
        values, labels = (*node.inputs, *node.outputs), (*passage.inputs, *passage.outputs)
        for value, own in zip(values, labels, strict=True):
            view = None if value is None else wire.views.get(value)
            if own is None or view is None or view == order:
                continue
            key = id(passage), own, view, order
            if key not in self._allowed:
                self._allowed[key] = passage.in_order(own, view, order) is not None
            if self._allowed[key]:
                return True
        return False

    def _ports(
        self, values: Sequence[Value | None], labels: Sequence[Labels | None], *, is_output: bool
    ) -> list[Port]:
        found = []
        for slot, (value, own) in enumerate(zip(values, labels, strict=True)):
            if value is None or own is None:
                continue
            wire = self.wire_of(value)
            if wire is not None:
                found.append(Port(wire, wire.views[value], slot, is_output))
        return found

    def _kind(self, passage: Passage, ports: Sequence[Port]) -> Kind:
        """Return what operators of a passage may choose; those with the same ports share it."""
        # Without their wires: views, slots and sides.
        key = id(passage), tuple([port[1:] for port in ports])
        kind = self._kinds.get(key)
        if kind is None:
            labels = (
                (passage.outputs if port.is_output else passage.inputs)[port.slot] for port in ports
            )
            pairs = [(own or (), port.view) for own, port in zip(labels, ports, strict=True)]
            kind = self._kinds[key] = Kind(passage, pairs)
        return kind

    def _wanted_labels(self, node: Node) -> Labels | None:
        """Return the order that the user wants of a node's labels; None where it may choose."""
        if layout_wanted(node, self.wanted) != "NHWC":
            return None
        rank = rank_of(node)
        return None if rank is None else channels_last(rank)

    # --- search -----------------------------------------------------------------------------------

    def search(self, starts: Iterable[Start]) -> None:
        """Follow orders of wires from where they begin through all operators that have them."""
        pending = deque((wire, order, FAR) for wire, order in starts)
        while pending:
            wire, order, reach = pending.popleft()
            if wire.orders.get(order, 0) >= reach:
                continue
            if order not in wire.orders and len(wire.orders) == MOST_ORDERS:
                continue
            wire.orders[order] = reach
            for node in wire.users_in_other_orders(order):
                operator = self.operators.get(node)
                if operator is None and self._may_have(node, wire, order):
                    operator = self.operator(node)
                number = None if operator is None else operator.find(wire, order)
                if operator is None or not number:
                    continue
                operator.offer(number)
                further = _further(operator, reach)
                orders = operator.choices[number].orders
                for port, other in zip(operator.ports, orders, strict=True):
                    if other != port.view and port.wire.orders.get(other, 0) < further:
                        pending.append((port.wire, other, further))

    def wanted_starts(self, node: Node) -> Iterator[Start]:
        """Yield the orders of its wires in which the user wants a node."""
        operator = self.operator(node)
        if operator is not None and operator.wanted is not None:
            orders = operator.choices[operator.wanted].orders
            yield from zip((port.wire for port in operator.ports), orders, strict=True)


def _further(operator: Operator, reach: int) -> int:
    """Return how far behind an operator an order is followed that came from so far."""
    own = operator.passage.reach or FAR
    return min(reach - 1, own) if reach < FAR else own


def open_graphs(model: Model) -> Iterator[Graph]:
    """Yield the graphs of a model, without those of the functions that stand for operators."""
    for graph in model.graphs():
        root = graph.root
        if not (isinstance(root, Function) and root.domain == DOMAIN):
            yield graph


def transposes(graph: Graph) -> Iterator[Node]:
    """Yield the Transposes of a graph whose permutation is known."""
    yield from (node for node in graph.nodes_of("Transpose") if node.perm is not None)
