"""Offers: an order for each operator of a region, such that all agree about their wires.

An offer begins with an order of one wire and is handed on by all operators that have it. What
another order contradicts is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tiered.layout.cost import Strand
from tiered.layout.equivalence import Operator, Wire
from tiered.layout.permutation import Permutation

MOST_OFFERS: Final = 6

Offer = Mapping[Operator, int]
"""The number of the choice that is offered to an operator."""

Seed = tuple[Wire, Permutation]


def offers(operators: Sequence[Operator], strands: Mapping[Wire, Strand]) -> list[Offer]:
    """Return offers that together have every order of every wire, the heaviest wires first."""
    pending = _seeds(operators, strands)
    found: list[Offer] = []
    while pending and len(found) < MOST_OFFERS:
        growing = _Growing(strands)
        for wire, order in pending:
            growing.begin(wire, order)
        left = [(wire, order) for wire, order in pending if growing.orders[wire] != order]
        if len(left) == len(pending):
            break
        for wire in strands:
            growing.begin(wire, wire.identity)
        found.append(growing.offer)
        pending = left
    return found


def _seeds(operators: Sequence[Operator], strands: Mapping[Wire, Strand]) -> list[Seed]:
    """Return the orders that operators may have their wires in, the heaviest wires first."""
    seeds: dict[Seed, int] = {}
    for operator in operators:
        for number in operator.open:
            for port, order in zip(operator.ports, operator.choices[number].orders, strict=True):
                if port.wire in strands:
                    seeds[port.wire, order] = strands[port.wire].nbytes
    return sorted(seeds, key=lambda seed: -seeds[seed])


class _Growing:
    """An offer that grows from orders of wires."""

    def __init__(self, strands: Mapping[Wire, Strand]) -> None:
        self.strands = strands
        self.orders: dict[Wire, Permutation] = {}
        self.offer: dict[Operator, int] = {}

    def begin(self, wire: Wire, order: Permutation) -> None:
        """Take in an order of a wire that has none yet, and all that it leads to."""
        if wire in self.orders:
            return
        self.orders[wire] = order
        pending = [wire]
        while pending:
            wire = pending.pop()
            for operator, _ in self.strands[wire].places:
                number = operator.find(wire, self.orders[wire])
                if number is not None and self._fits(operator, number):
                    pending += self._take(operator, number)

    def _fits(self, operator: Operator, number: int) -> bool:
        """Tell whether an operator that has no offer yet can take a choice."""
        if operator in self.offer or number not in operator.open:
            return False
        orders = operator.choices[number].orders
        return all(
            self.orders.get(port.wire, order) == order
            for port, order in zip(operator.ports, orders, strict=True)
        )

    def _take(self, operator: Operator, number: int) -> list[Wire]:
        """Offer an operator its order; return the wires that have one by that."""
        self.offer[operator] = number
        fresh = []
        for port, order in zip(operator.ports, operator.choices[number].orders, strict=True):
            if port.wire in self.strands and port.wire not in self.orders:
                self.orders[port.wire] = order
                fresh.append(port.wire)
        return fresh
