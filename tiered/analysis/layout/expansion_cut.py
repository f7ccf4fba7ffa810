"""An expansion move as a minimum cut: each operator keeps its choice or takes the proposed one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tiered.analysis.layout.cost import TensorCost
from tiered.analysis.layout.equivalence import Operator, TensorClass
from tiered.analysis.layout.permutation import Permutation
from tiered.support.max_flow import SINK, SOURCE, Network

Key = Callable[[Permutation], Permutation]
Weight = Callable[[Permutation, Permutation], int]


class _Demand:
    """The operators that need a tensor in one order.

    Attributes:
        always: some operator needs it whatever this move decides.
        keeping: the network nodes of operators that need it if they keep their choice.
        taking: the same of operators that need it if they take the proposed choice.
    """

    def __init__(self) -> None:
        self.always = False
        self.keeping: list[int] = []
        self.taking: list[int] = []


class ExpansionCut:
    """The network of one move: operators on the sink side of the cut take the proposed choice.

    A proposal contains one order of each tensor. An operator needs that order because it takes the
    proposed choice, or in either case; it needs another order because it keeps its choice, or in
    either case. So each cost term is one edge, with an auxiliary node where several operators
    share the term.
    """

    def __init__(self, assignment: Mapping[Operator, int], targets: Mapping[Operator, int]) -> None:
        self.assignment = assignment
        self.targets = targets
        self.network = Network()
        self._numbers = {operator: self.network.add_node() for operator in targets}

    def switching(self) -> list[Operator]:
        """Return the operators that take the proposed choice in a minimum cut."""
        side = self.network.sink_side()
        return [operator for operator, number in self._numbers.items() if side[number]]

    def add(self, term: TensorCost, weight: Weight, start: int) -> None:
        """Add the cost of each order in which a tensor is read but not made.

        An order that may be made from two others costs the smaller one of both, so that with more
        than two orders a cut is a lower bound.

        Args:
            term: the tensor and the operators that read and make it.
            weight: returns the cost of moving the tensor from one order to another, which count as
                one if they differ only in axes of size 1.
            start: the cost of a Transpose to any other order.
        """
        made, demands = self._made(term, term.moving), self._demands(term, term.moving)
        self._add(made, demands, weight)
        if term.has_ones:
            made, demands = self._made(term, tuple), self._demands(term, tuple)
        self._add(made, demands, lambda made, wanted: start)

    def _add(
        self,
        made: tuple[Permutation, Permutation, int],
        demands: Mapping[Permutation, _Demand],
        weight: Weight,
    ) -> None:
        kept, took, maker = made
        edge = self.network.add_edge
        for wanted, demand in demands.items():
            if wanted in (kept, took) and kept == took:
                continue
            is_kept, is_taken = wanted == kept, wanted == took
            from_kept = 0 if is_kept else weight(kept, wanted)
            from_taken = 0 if is_taken else weight(took, wanted)
            if demand.always:
                if from_taken > from_kept:
                    edge(SOURCE, maker, from_taken - from_kept)
                elif from_kept > from_taken:
                    edge(maker, SINK, from_kept - from_taken)
            elif demand.taking:
                least = from_kept if is_taken else min(from_kept, from_taken)
                edge(maker if is_taken else SOURCE, self._first(demand.taking), least)
            else:
                least = from_taken if is_kept else min(from_kept, from_taken)
                edge(self._last(demand.keeping), maker if is_kept else SINK, least)

    def add_work(self, operator: Operator, price: int) -> None:
        """Add the time that an operator takes in its orders.

        Args:
            operator: one of those that may take another order.
            price: the cost of a nanosecond.
        """
        work, number = operator.work, self._numbers[operator]
        more = work.get(self.targets[operator], 0) - work.get(self.assignment[operator], 0)
        if more > 0:
            self.network.add_edge(SOURCE, number, more * price)
        elif more < 0:
            self.network.add_edge(number, SINK, -more * price)

    def add_preference(self, operator: Operator, weight: int) -> None:
        """Add the cost of an operator that is not in the layout that the user asks for."""
        number = self._numbers.get(operator)
        if number is None:
            return
        if self.assignment[operator] == operator.wanted:
            self.network.add_edge(SOURCE, number, weight)
        elif self.targets[operator] == operator.wanted:
            self.network.add_edge(number, SINK, weight)

    def _made(self, term: TensorCost, key: Key) -> tuple[Permutation, Permutation, int]:
        """Return the orders of the producer, kept and taken, and its network node."""
        if term.producer is None:
            identity = key(term.tensor.identity)
            return identity, identity, SOURCE
        operator, at = term.producer
        return (*self._orders(operator, at, key), self._numbers.get(operator, SOURCE))

    def _orders(self, operator: Operator, at: int, key: Key) -> tuple[Permutation, Permutation]:
        choices = operator.choices
        kept = key(choices[self.assignment[operator]].orders[at])
        target = self.targets.get(operator)
        return kept, kept if target is None else key(choices[target].orders[at])

    def _demands(self, term: TensorCost, key: Key) -> dict[Permutation, _Demand]:
        demands: dict[Permutation, _Demand] = {}
        for order in sorted(term.pinned):
            demands.setdefault(key(order), _Demand()).always = True
        for operator, at in term.consumers:
            kept, took = self._orders(operator, at, key)
            if kept == took:
                demands.setdefault(kept, _Demand()).always = True
            else:
                demands.setdefault(kept, _Demand()).keeping.append(self._numbers[operator])
                demands.setdefault(took, _Demand()).taking.append(self._numbers[operator])
        return demands

    def _first(self, numbers: list[int]) -> int:
        """Return a node that is on the sink side if any of these is."""
        if len(set(numbers)) == 1:
            return numbers[0]
        between = self.network.add_node()
        for number in numbers:
            self.network.add_edge(between, number)
        return between

    def _last(self, numbers: list[int]) -> int:
        """Return a node that is on the source side if any of these is."""
        if len(set(numbers)) == 1:
            return numbers[0]
        between = self.network.add_node()
        for number in numbers:
            self.network.add_edge(number, between)
        return between


# --- The proposals of expansion moves: one order for each operator, consistent along the tensors --

MAX_PROPOSALS: Final = 6

Proposal = Mapping[Operator, int]
"""The number of the choice that is proposed to each operator."""

Seed = tuple[TensorClass, Permutation]


def proposals(
    operators: Sequence[Operator], tensor_costs: Mapping[TensorClass, TensorCost]
) -> list[Proposal]:
    """Return proposals that together contain every order of every tensor, largest tensors first."""
    pending = _seeds(operators, tensor_costs)
    found: list[Proposal] = []
    while pending and len(found) < MAX_PROPOSALS:
        builder = _ProposalBuilder(tensor_costs)
        for tensor, order in pending:
            builder.propagate(tensor, order)
        left = [(tensor, order) for tensor, order in pending if builder.orders[tensor] != order]
        if len(left) == len(pending):
            break
        for tensor in tensor_costs:
            builder.propagate(tensor, tensor.identity)
        found.append(builder.proposal)
        pending = left
    return found


def _seeds(
    operators: Sequence[Operator], tensor_costs: Mapping[TensorClass, TensorCost]
) -> list[Seed]:
    """Return the orders that operators may have their tensors in, the largest tensors first."""
    seeds: dict[Seed, int] = {}
    for operator in operators:
        terms = [tensor_costs.get(port.tensor) for port in operator.ports]
        for number in operator.candidates:
            for term, order in zip(terms, operator.choices[number].orders, strict=True):
                if term is not None:
                    seeds[term.tensor, order] = term.nbytes
    return sorted(seeds, key=lambda seed: -seeds[seed])


class _ProposalBuilder:
    """A proposal that is built by propagating orders from tensor to tensor."""

    def __init__(self, tensor_costs: Mapping[TensorClass, TensorCost]) -> None:
        self.tensor_costs = tensor_costs
        self.orders: dict[TensorClass, Permutation] = {}
        self.proposal: dict[Operator, int] = {}

    def propagate(self, tensor: TensorClass, order: Permutation) -> None:
        """Fix the order of a tensor that has none yet, and all orders that follow from it."""
        if tensor in self.orders:
            return
        self.orders[tensor] = order
        pending = [tensor]
        while pending:
            tensor = pending.pop()
            for operator, _ in self.tensor_costs[tensor].free_ports:
                number = operator.find(tensor, self.orders[tensor])
                if number is not None and self._fits(operator, number):
                    pending += self._assign(operator, number)

    def _fits(self, operator: Operator, number: int) -> bool:
        """Return whether a choice of an unassigned operator agrees with all fixed orders."""
        if operator in self.proposal or number not in operator.candidates:
            return False
        orders = operator.choices[number].orders
        return all(
            self.orders.get(port.tensor, order) == order
            for port, order in zip(operator.ports, orders, strict=True)
        )

    def _assign(self, operator: Operator, number: int) -> list[TensorClass]:
        """Assign a choice to an operator; return the tensors that get their order from it."""
        self.proposal[operator] = number
        fresh = []
        for port, order in zip(operator.ports, operator.choices[number].orders, strict=True):
            if port.tensor in self.tensor_costs and port.tensor not in self.orders:
                self.orders[port.tensor] = order
                fresh.append(port.tensor)
        return fresh
