"""Regions: operators that permutations pass, joined by wires, and the orders that they may have.

A state of an operator is 0, as it is, or the number of a candidate: an order of all axes of the
region, which gives each wire and each operator one order. What a placement costs is what its wires
cost together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from tiered.layout.passage import insert_missing
from tiered.layout.permutation import Permutation
from tiered.layout.precedence import Names, Precedence
from tiered.layout.strand import Cost, Sizes, Strand, total
from tiered.layout.wires import Operator, Wire, Wiring

MOST_CANDIDATES: Final = 6

REFUSAL: Final = 1 << 60
"""Bytes that it counts when an operator is not in the order that the user wants."""

State = Mapping[Operator, int]


class Region:
    """Operators whose orders are chosen together."""

    def __init__(self, wiring: Wiring, operators: Sequence[Operator], sizes: Sizes) -> None:
        self.wiring = wiring
        self.operators = list(operators)
        self.wanted = [operator for operator in operators if operator.wanted is not None]
        self.strands: dict[Wire, Strand] = {}
        for operator in self.operators:
            for at, port in enumerate(operator.ports):
                strand = self.strands.get(port.wire)
                if strand is None:
                    strand = self.strands[port.wire] = Strand(port.wire, sizes.nbytes(port.wire))
                if port.is_output:
                    strand.producer = operator, at
                else:
                    strand.readers.append((operator, at))
        for strand in self.strands.values():
            strand.pinned = self._pinned(strand)
        self.candidates = _candidates(self)
        self._targets: dict[tuple[Operator, int], int | None] = {}
        self._orders: dict[tuple[Operator, int], list[Permutation]] = {}
        self._labels: dict[tuple[Operator, int], tuple[int, ...]] = {}

    def _pinned(self, strand: Strand) -> set[Permutation]:
        """Return the orders in which the wire is read by what is not of the region."""
        ports = {(operator.node, operator.ports[at].slot) for operator, at in strand.readers}
        views = strand.wire.views
        pinned = set()
        for value, view in views.items():
            uses = (use for use in value.users if use not in ports)
            others = (node for node, _ in uses if node.outputs[:1] and node.outputs[0] not in views)
            if value.output_of or value.pins or any(True for _ in others):
                pinned.add(view)
        return pinned

    def likeness(self) -> Hashable:
        """Return what is equal for two regions only if one placement is right for both.

        All that a placement rests on: what each operator may be and has its wires in then, and what
        each wire costs.
        """
        numbers = {operator: number for number, operator in enumerate(self.operators)}
        states = range(1, len(self.candidates) + 1)
        operators = tuple(
            (
                tuple(self.target(operator, state) for state in states),
                tuple(self.is_met(operator, state) for state in (0, *states)),
                tuple(
                    self.order(operator, at, state)
                    for state in (0, *states)
                    for at in range(len(operator.ports))
                ),
            )
            for operator in self.operators
        )
        strands = tuple(
            (
                strand.nbytes,
                strand.moving(tuple(range(strand.wire.rank))),
                strand.producer and (numbers[strand.producer[0]], strand.producer[1]),
                tuple((numbers[operator], at) for operator, at in strand.readers),
                tuple(sorted(strand.pinned)),
            )
            for strand in self.strands.values()
        )
        return operators, strands

    # --- states -----------------------------------------------------------------------------------

    def target(self, operator: Operator, state: int) -> int | None:
        """Return the state that an operator has where it follows a candidate.

        0 where nothing of it changes then; None where there is no such operator.
        """
        key = operator, state
        if key not in self._targets:
            self._targets[key] = self._find_target(operator, state)
        return self._targets[key]

    def _find_target(self, operator: Operator, state: int) -> int | None:
        order = self.labels(operator, state)
        if all(port.order(order) == port.view for port in operator.ports):
            return 0
        return state if operator.passage.allows(order) else None

    def labels(self, operator: Operator, state: int) -> tuple[int, ...]:
        """Return the labels of an operator in the order of a candidate."""
        key = operator, state
        if key not in self._labels:
            places, own, axis = self.candidates[state - 1], operator.axes, self.wiring.axis
            last = len(places)
            place_of = {label: places.get(axis(own[label]), last) for label in own}
            labels = operator.passage.labels
            self._labels[key] = tuple(sorted(labels, key=lambda label: place_of.get(label, last)))
        return self._labels[key]

    def order(self, operator: Operator, at: int, state: int) -> Permutation:
        """Return the order in which an operator in a state has the wire of a port."""
        key = operator, state
        orders = self._orders.get(key)
        if orders is None:
            labels = self.labels(operator, state) if state else ()
            ports = operator.ports
            orders = [port.order(labels) if state else port.view for port in ports]
            self._orders[key] = orders
        return orders[at]

    def cost(self, state: State, wires: Iterable[Wire] | None = None) -> Cost:
        """Return what a placement costs, or what it costs on some wires."""
        strands: Iterable[Strand] = self.strands.values()
        if wires is not None:
            strands = [self.strands[wire] for wire in dict.fromkeys(wires)]
        moved = total(self._strand_cost(strand, state) for strand in strands)
        refused = sum(not self.is_met(operator, state[operator]) for operator in self.wanted)
        return Cost(moved.nbytes + refused * REFUSAL, moved.transposes)

    def is_met(self, operator: Operator, state: int) -> bool:
        """Tell whether an operator is in the order that the user wants, if he wants one."""
        wanted = operator.wanted
        return wanted is None or (state > 0 and self.labels(operator, state) == wanted)

    def _strand_cost(self, strand: Strand, state: State) -> Cost:
        made = self.made(strand, state)
        wanted = {self.order(each, at, state[each]) for each, at in strand.readers}
        return strand.cost(made, wanted | strand.pinned)

    def made(self, strand: Strand, state: State) -> Permutation:
        """Return the order in which a wire is made."""
        if strand.producer is None:
            return tuple(range(strand.wire.rank))
        operator, at = strand.producer
        return self.order(operator, at, state[operator])


def regions(wiring: Wiring, sizes: Sizes) -> Iterator[Region]:
    """Yield the regions of a model: operators that no contested wire joins are apart."""
    seen: set[Operator] = set()
    by_wire: dict[Wire, list[Operator]] = {}
    for operator in wiring.operators.values():
        for wire in _contested(operator):
            by_wire.setdefault(wire, []).append(operator)
    for start in wiring.operators.values():
        if start in seen or not _contested(start):
            continue
        seen.add(start)
        found, pending = [], [start]
        while pending:
            operator = pending.pop()
            found.append(operator)
            for wire in _contested(operator):
                for other in by_wire[wire]:
                    if other not in seen:
                        seen.add(other)
                        pending.append(other)
        yield Region(wiring, sorted(found, key=lambda each: each.node.id), sizes)


def _contested(operator: Operator) -> list[Wire]:
    return list(dict.fromkeys(port.wire for port in operator.ports if port.wire.is_contested))


# --- candidates -----------------------------------------------------------------------------------


def _candidates(region: Region) -> list[dict[int, int]]:
    """Return the orders to choose from.

    Each begins with an order that some wire may have and that no other candidate gives it, the
    heaviest first, and takes in as many orders of other wires as it can.
    """
    fixed, anchors = _anchors(region)
    found: list[dict[int, int]] = []
    covered: set[Names] = set()
    while len(covered) < len(anchors) and len(found) < MOST_CANDIDATES:
        precedence = Precedence()
        fresh = [names for names in anchors if names not in covered]
        for names in (fresh[0], *fixed, *fresh[1:], *(name for name in anchors if name in covered)):
            precedence.add(names)
        order = _extended(region, precedence.sorted())
        places = {name: at for at, name in enumerate(order)}
        found.append(places)
        now = {names for names in anchors if _is_sorted([places[name] for name in names])}
        covered |= now | {fresh[0]}
    return found


def _anchors(region: Region) -> tuple[list[Names], list[Names]]:
    """Return the orders of wires that have only one, and all orders of the others."""
    weights: dict[Names, int] = {}
    fixed: dict[Names, None] = {}
    for wire, strand in region.strands.items():
        for order in wire.orders if wire.is_contested else ():
            names = region.wiring.names(wire, order)
            weights[names] = weights.get(names, 0) + strand.nbytes
        if not wire.is_contested:
            fixed[region.wiring.names(wire, tuple(range(wire.rank)))] = None
    for operator in region.wanted:
        named = _names_of(region, operator)
        names = tuple(named[label] for label in operator.wanted or () if label in named)
        weights[names] = weights.get(names, 0) + REFUSAL
    return list(fixed), sorted(weights, key=lambda names: (-weights[names], names))


def _is_sorted(places: Sequence[int]) -> bool:
    return all(one < other for one, other in pairwise(places))


def _extended(region: Region, anchor: Sequence[int]) -> Names:
    """Return an order of all axes of a region, which continues that of some of them."""
    order = list(anchor)
    known = set(order)
    pending = list(region.operators)
    while pending:
        rest = [operator for operator in pending if not _extend(region, operator, order, known)]
        if len(rest) == len(pending):
            # What nothing leads to begins on its own.
            fresh = [name for name in _names_of(region, pending[0]).values() if name not in known]
            known.update(fresh)
            order += fresh
        pending = rest
    return tuple(order)


def _names_of(region: Region, operator: Operator) -> dict[int, int]:
    """Return the name of each label that a wire has."""
    return {label: region.wiring.axis(number) for label, number in operator.axes.items()}


def _extend(region: Region, operator: Operator, order: list[int], known: set[int]) -> bool:
    """Place the axes of an operator, if the place of one of them is known; tell whether it was."""
    names = _names_of(region, operator)
    if names and known.isdisjoint(names.values()):
        return False
    if not known.issuperset(names.values()):
        have = sorted(
            (label for label, name in names.items() if name in known),
            key=lambda label: order.index(names[label]),
        )
        completed = operator.passage.completed(tuple(have))
        sequence = dict.fromkeys(names[label] for label in completed if label in names)
        insert_missing(order, tuple(sequence))
        known.update(sequence)
    return True
