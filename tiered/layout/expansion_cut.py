"""An offer as a minimum cut: each operator keeps its state or takes what is offered."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tiered.layout.cost import Strand
from tiered.layout.equivalence import Operator
from tiered.layout.max_flow import SINK, SOURCE, Network
from tiered.layout.permutation import Permutation

Key = Callable[[Permutation], Permutation]


class _Demand:
    """Who wants a wire in one order: those that keep their state, those that take another."""

    def __init__(self) -> None:
        self.always = False
        self.keeping: list[int] = []
        self.taking: list[int] = []


class Cut:
    """The network of an offer: who is cut off from the source takes the order that is offered.

    In one offer each wire has one order that is offered. So who wants that one wants it by taking
    or in any case, and who wants another wants it by keeping or in any case: each term of the cost
    is an edge, with a node between where several share it.
    """

    def __init__(self, state: Mapping[Operator, int], targets: Mapping[Operator, int]) -> None:
        self.state = state
        self.targets = targets
        self.network = Network()
        self._numbers = {operator: self.network.add_node() for operator in targets}

    def taking(self) -> list[Operator]:
        """Return who takes what is offered, in a cheapest cut."""
        side = self.network.sink_side()
        return [operator for operator, number in self._numbers.items() if side[number]]

    def add(self, strand: Strand, key: Key, weight: int) -> None:
        """Add what it costs that a wire is wanted in orders in which it is not made.

        Args:
            strand: the wire.
            key: what of an order counts.
            weight: the cost of each.
        """
        kept, took, maker = self._made(strand, key)
        edge = self.network.add_edge
        for wanted, demand in self._demands(strand, key).items():
            if wanted in (kept, took) and kept == took:
                continue
            is_kept, is_taken = wanted == kept, wanted == took
            if demand.always:
                if is_kept:
                    edge(SOURCE, maker, weight)
                elif is_taken:
                    edge(maker, SINK, weight)
            elif demand.taking:
                edge(maker if is_taken else SOURCE, self._first(demand.taking), weight)
            else:
                edge(self._last(demand.keeping), maker if is_kept else SINK, weight)

    def add_wish(self, operator: Operator, weight: int) -> None:
        """Add what it costs that an operator is not in the order that the user wants."""
        number = self._numbers.get(operator)
        if number is None:
            return
        if self.state[operator] == operator.wanted:
            self.network.add_edge(SOURCE, number, weight)
        elif self.targets[operator] == operator.wanted:
            self.network.add_edge(number, SINK, weight)

    def _made(self, strand: Strand, key: Key) -> tuple[Permutation, Permutation, int]:
        """Return the orders of the producer, kept and taken, and its number."""
        if strand.producer is None:
            identity = key(strand.wire.identity)
            return identity, identity, SOURCE
        operator, at = strand.producer
        return (*self._orders(operator, at, key), self._numbers.get(operator, SOURCE))

    def _orders(self, operator: Operator, at: int, key: Key) -> tuple[Permutation, Permutation]:
        choices, state = operator.choices, self.state[operator]
        kept = key(choices[state].orders[at])
        target = self.targets.get(operator)
        return kept, kept if target is None else key(choices[target].orders[at])

    def _demands(self, strand: Strand, key: Key) -> dict[Permutation, _Demand]:
        demands: dict[Permutation, _Demand] = {}
        for order in sorted(strand.pinned):
            demands.setdefault(key(order), _Demand()).always = True
        for operator, at in strand.readers:
            kept, took = self._orders(operator, at, key)
            if kept == took:
                demands.setdefault(kept, _Demand()).always = True
            else:
                demands.setdefault(kept, _Demand()).keeping.append(self._numbers[operator])
                demands.setdefault(took, _Demand()).taking.append(self._numbers[operator])
        return demands

    def _first(self, numbers: list[int]) -> int:
        """Return a node that takes as soon as one of these does."""
        if len(set(numbers)) == 1:
            return numbers[0]
        between = self.network.add_node()
        for number in numbers:
            self.network.add_edge(between, number)
        return between

    def _last(self, numbers: list[int]) -> int:
        """Return a node that keeps as long as one of these does."""
        if len(set(numbers)) == 1:
            return numbers[0]
        between = self.network.add_node()
        for number in numbers:
            self.network.add_edge(number, between)
        return between
