"""Reach: the operators that a permutation can be moved to, starting from the Transposes of a model.

A breadth-first search propagates axis orders from the Transposes through the operators around them.
It stops at operators that have the order already or cannot have it. Operators that it does not
reach are not part of the optimisation.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Final

from tiered.analysis.layout.axis_propagation import AxisPropagation, Labels, rank_of
from tiered.analysis.layout.equivalence import (
    ChoiceTable,
    LayoutOperator,
    OperatorPort,
    TensorClass,
)
from tiered.analysis.layout.nhwc import (
    DOMAIN,
    DesiredLayouts,
    Supports,
    channels_last,
    layout_wanted,
    standard_only,
    with_channels_last,
)
from tiered.analysis.layout.permutation import Permutation
from tiered.analysis.layout.rules import propagation_of
from tiered.graph import Function, Graph, Model, Node, Value
from tiered.rewriter import Skip

MAX_ORDERS: Final = 6
"""Bound on the orders of one tensor: further orders are not propagated."""

UNLIMITED: Final = 1 << 30

Start = tuple[TensorClass, Permutation]


class Reach:
    """The tensor classes that a search has visited, and the operators that it found."""

    def __init__(
        self, model: Model, wanted: DesiredLayouts | None = None, supports: Supports = standard_only
    ) -> None:
        self.model = model
        self.wanted = wanted or {}
        self.supports = supports
        self.tensors: dict[Value, TensorClass] = {}
        self.operators: dict[Node, LayoutOperator] = {}
        self._takes_channels_last = "NHWC" in self.wanted.values()
        # By visited node. Equal propagations share an object, and tables have its id as key.
        self._propagations: dict[Node, AxisPropagation | Skip] = {}
        self._distinct: dict[AxisPropagation | Skip, AxisPropagation | Skip] = {}
        self._allowed: dict[Hashable, bool] = {}
        # By id of the propagation, views, slots and sides.
        self._tables: dict[Hashable, ChoiceTable] = {}

    # --- tensors ----------------------------------------------------------------------------------

    def tensor_of(self, value: Value) -> TensorClass | None:
        """Return the tensor that a value is a view of; None for constants and unknown ranks."""
        known = self.tensors.get(value)
        if known is not None:
            return known
        root = value
        while (producer := root.producer) is not None and producer.perm is not None:
            root = producer.given(0)
        if root.tensor is not None or root.shape is None:
            return None
        return self.tensors.get(root) or self._new(TensorClass(root, root.shape))

    def _new(self, tensor: TensorClass) -> TensorClass:
        tensor.trace()
        for value in tensor.views:
            self.tensors[value] = tensor
        return tensor

    # --- operators --------------------------------------------------------------------------------

    def propagation(self, node: Node) -> AxisPropagation | Skip:
        """Return how permutations propagate through a node, or why none does."""
        known = self._propagations.get(node)
        if known is None:
            known = propagation_of(node)
            if self._takes_channels_last:
                known = with_channels_last(node, known, self.wanted, self.supports)
            if not isinstance(known, Skip) and not self._has_all_results(node, known):
                known = Skip("the rank of a result is not known")
            known = self._propagations[node] = self._distinct.setdefault(known, known)
        return known

    def _has_all_results(self, node: Node, propagation: AxisPropagation) -> bool:
        """Return whether each result that has an order is a tensor, which consumers can read."""
        return all(
            value is None or own is None or self.tensor_of(value) is not None
            for value, own in zip(node.outputs, propagation.outputs, strict=True)
        )

    @property
    def free(self) -> list[LayoutOperator]:
        """The operators that may have several orders, as the search found them."""
        found = [self.operators.get(node) for node in self._propagations]
        return [operator for operator in found if operator is not None and operator.is_free]

    def operator(self, node: Node) -> LayoutOperator | None:
        """Return the operator of a node; None if no permutation propagates through it."""
        known = self.operators.get(node)
        if known is not None:
            return known
        propagation = self.propagation(node)
        if isinstance(propagation, Skip):
            return None
        ports = self._ports(node.inputs, propagation.inputs, is_output=False)
        ports += self._ports(node.outputs, propagation.outputs, is_output=True)
        operator = self.operators[node] = LayoutOperator(
            node, self._table(propagation, ports), ports
        )
        labels = self._preferred_labels(node) if self._takes_channels_last else None
        if labels is not None and propagation.allows(labels):
            operator.prefer(labels)
        return operator

    def _may_have(
        self, node: Node, view: Permutation, slot: int, is_output: bool, order: Permutation
    ) -> bool:
        """Return whether a node can have a tensor in an order; those that cannot need no ports."""
        propagation = self.propagation(node)
        if isinstance(propagation, Skip):
            return False
        own = (propagation.outputs if is_output else propagation.inputs)[slot]
        if own is None:
            return False
        key = id(propagation), own, view, order
        allowed = self._allowed.get(key)
        if allowed is None:
            allowed = self._allowed[key] = propagation.in_order(own, view, order) is not None
        return allowed

    def _ports(
        self, values: Sequence[Value | None], labels: Sequence[Labels | None], *, is_output: bool
    ) -> list[OperatorPort]:
        found = []
        for slot, (value, own) in enumerate(zip(values, labels, strict=True)):
            if value is None or own is None:
                continue
            tensor = self.tensor_of(value)
            if tensor is not None:
                found.append(OperatorPort(tensor, tensor.views[value], slot, is_output))
        return found

    def _table(self, propagation: AxisPropagation, ports: Sequence[OperatorPort]) -> ChoiceTable:
        """Return the choices of operators with a propagation; equal ports share one table."""
        key = id(propagation), tuple([port[1:] for port in ports])
        table = self._tables.get(key)
        if table is None:
            labels = (
                (propagation.outputs if port.is_output else propagation.inputs)[port.slot]
                for port in ports
            )
            pairs = [(own or (), port.view) for own, port in zip(labels, ports, strict=True)]
            table = self._tables[key] = ChoiceTable(propagation, pairs)
        return table

    def _preferred_labels(self, node: Node) -> Labels | None:
        """Return the order that the user asks for, in labels of the node; None if any will do.

        An operator that may have its axes in any order, such as a nearest Resize, is the same
        operator in each: its neighbours decide.
        """
        rank = rank_of(node)
        if rank is None or layout_wanted(node, self.wanted) != "NHWC":
            return None
        labels, standard = channels_last(rank), propagation_of(node)
        has_any_order = not isinstance(standard, Skip) and standard.allows(labels)
        return None if has_any_order else labels

    # --- search -----------------------------------------------------------------------------------

    def search(self, starts: Iterable[Start]) -> None:
        """Propagate orders of tensors from the starts through all operators that can have them."""
        pending = deque((tensor, order, UNLIMITED) for tensor, order in starts)
        # How far the search continues behind a choice: it comes by each of its operands.
        passed: dict[tuple[LayoutOperator, int], int] = {}
        while pending:
            tensor, order, steps = pending.popleft()
            if tensor.orders.get(order, 0) >= steps:
                continue
            if order not in tensor.orders and len(tensor.orders) == MAX_ORDERS:
                continue
            tensor.orders[order] = steps
            for place in tensor.places_in_other_orders(order):
                operator = self.operators.get(place[0])
                if operator is None and self._may_have(*place, order):
                    operator = self.operator(place[0])
                if operator is None:
                    continue
                number = operator.find(tensor, order)
                if not number:
                    continue
                steps_after = _steps_after(operator, steps)
                if passed.get((operator, number), 0) >= steps_after:
                    continue
                passed[operator, number] = steps_after
                operator.add_candidate(number)
                orders = operator.choices[number].orders
                for port, other in zip(operator.ports, orders, strict=True):
                    if other != port.view and port.tensor.orders.get(other, 0) < steps_after:
                        pending.append((port.tensor, other, steps_after))

    def wanted_starts(self, node: Node) -> Iterator[Start]:
        """Yield the orders of the tensors of a node in the layout that the user asks for."""
        operator = self.operator(node)
        if operator is not None and operator.wanted is not None:
            orders = operator.choices[operator.wanted].orders
            yield from zip((port.tensor for port in operator.ports), orders, strict=True)


def _steps_after(operator: LayoutOperator, steps: int) -> int:
    """Return how many operators the search may continue after this one."""
    own = operator.propagation.max_distance or UNLIMITED
    return min(steps - 1, own) if steps < UNLIMITED else own


def open_graphs(model: Model) -> Iterator[Graph]:
    """Yield the graphs of a model, without the bodies of `tiered.nhwc` functions."""
    for graph in model.graphs():
        root = graph.root
        if not (isinstance(root, Function) and root.domain == DOMAIN):
            yield graph


def transposes(graph: Graph) -> Iterator[Node]:
    """Yield the Transposes of a graph whose permutation is known."""
    yield from (node for node in graph.nodes_of("Transpose") if node.perm is not None)
