"""Global placement: which operators take another order, so that the fewest bytes are moved.

For two orders this is a minimum cut, and exact. For more, one order after the other is offered to
all operators at once, each offer a minimum cut, until no offer makes it better.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Final

import networkx as nx
from networkx.algorithms.flow import boykov_kolmogorov

from tiered.layout.permutation import Permutation
from tiered.layout.region import REFUSAL, Region, State
from tiered.layout.strand import Cost, Strand
from tiered.layout.wires import Operator

Key = Callable[[Permutation], Permutation]

LARGE: Final = 1000
"""From so many operators on, one starting point must do."""

EFFORT: Final = 4_000
"""Operators times offers: with fewer operators, more is tried."""

# Nodes of the network are numbers: what hashes otherwise makes runs differ.
_KEEP, _TAKE = -1, -2

_FEW: Final = 1 << 24
"""More Transposes than a region has: one byte weighs more than all of them."""


Known = dict[Hashable, tuple[int, ...]]
"""The states of regions that were placed before: models repeat their layers."""


def place(region: Region, known: Known) -> dict[Operator, int]:
    """Return the state of each operator; all 0 where nothing is better than what is there.

    Args:
        region: the operators that are placed together.
        known: what is known of equal regions, to which this one is added.
    """
    if not region.candidates:
        return dict.fromkeys(region.operators, 0)
    likeness = region.likeness()
    if likeness not in known:
        known[likeness] = tuple(_placed(region).values())
    return dict(zip(region.operators, known[likeness], strict=True))


def _placed(region: Region) -> dict[Operator, int]:
    here = dict.fromkeys(region.operators, 0)
    now = region.cost(here)
    if now == Cost(0, 0):
        return here
    for weigh in (_by_bytes, _by_count):
        best = _search(region, here, weigh)
        cost = region.cost(best)
        # What the user wants may need more of them.
        fewer = cost.transposes <= now.transposes or now.nbytes >= REFUSAL
        if cost.nbytes <= now.nbytes and fewer:
            return here if cost == now else best
    return here


def _by_bytes(cost: Cost) -> int:
    return cost.nbytes * _FEW + cost.transposes


def _by_count(cost: Cost) -> int:
    return cost.nbytes + cost.transposes * (1 << 90)


Weigh = Callable[[Cost], int]


def _search(region: Region, here: dict[Operator, int], weigh: Weigh) -> dict[Operator, int]:
    count = len(region.candidates)
    targets = [
        {operator: region.target(operator, state) for operator in region.operators}
        for state in range(1, count + 1)
    ]
    starts = [{each: state or 0 for each, state in found.items()} for found in targets]
    if count == 2 and not any(None in found.values() for found in targets):
        # Each has either order: one cut decides.
        return _offer(region, starts[0], 2, weigh) or starts[0]
    starts.append(here)
    if len(region.operators) > LARGE:
        starts = [min(starts, key=lambda start: weigh(region.cost(start)))]
    offers = max(2, EFFORT // len(region.operators))
    best = here
    for start in starts:
        state, refused, offered = start, 0, 0
        while refused < count and offers:
            offers -= 1
            better = _offer(region, state, 1 + offered % count, weigh)
            offered += 1
            refused = refused + 1 if better is None else 0
            state = state if better is None else better
        best = min(best, state, key=lambda each: weigh(region.cost(each)))
    return best


def _offer(region: Region, state: State, offer: int, weigh: Weigh) -> dict[Operator, int] | None:
    """Return the best placement in which each operator keeps its state or takes the one offered."""
    targets: dict[Operator, int] = {}
    for operator in region.operators:
        target = region.target(operator, offer)
        if target is not None and target != state[operator]:
            targets[operator] = target
    if not targets:
        return None
    cut = _Cut(region, state, targets)
    for strand in region.strands.values():
        cut.add(strand, strand.moving, strand.nbytes * weigh(Cost(1, 0)))
        cut.add(strand, tuple, weigh(Cost(0, 1)))
    for operator in region.wanted:
        cut.add_wish(operator, weigh(Cost(REFUSAL, 0)))
    taken = dict(state) | {operator: targets[operator] for operator in cut.taking()}
    return taken if weigh(region.cost(taken)) < weigh(region.cost(state)) else None


@dataclass(slots=True)
class _Demand:
    """Who wants a wire in one order: those that keep their state, those that take another."""

    always: bool = False
    keeping: list[int] = field(default_factory=list)
    taking: list[int] = field(default_factory=list)


class _Cut:
    """The network of an offer: who is cut off from `keep` takes the order that is offered.

    In one offer each wire has one order that is offered. So who wants that one wants it by taking
    or in any case, and who wants another wants it by keeping or in any case: each term of the cost
    is an edge, with a node between where several share it.
    """

    def __init__(self, region: Region, state: State, targets: Mapping[Operator, int]) -> None:
        self.region = region
        self.state = state
        self.targets = targets
        self.network: nx.DiGraph[int] = nx.DiGraph()
        self.network.add_nodes_from((_KEEP, _TAKE))
        self._free = list(targets)
        self._numbers = {operator: at for at, operator in enumerate(self._free)}
        self._next = len(self._free)

    def taking(self) -> list[Operator]:
        """Return who takes what is offered, in a cheapest cut."""
        _, (_, taking) = nx.minimum_cut(
            self.network, _KEEP, _TAKE, flow_func=boykov_kolmogorov
        )
        return [operator for operator, number in self._numbers.items() if number in taking]

    def add(self, strand: Strand, key: Key, weight: int) -> None:
        """Add what it costs that a wire is wanted in orders in which it is not made.

        Args:
            strand: the wire.
            key: what of an order counts.
            weight: the cost of each.
        """
        kept, took, maker = self._made(strand, key)
        for wanted, demand in self._demands(strand, key).items():
            if wanted in (kept, took) and kept == took:
                continue
            is_kept, is_taken = wanted == kept, wanted == took
            if demand.always:
                if is_kept:
                    self._edge(_KEEP, maker, weight)
                elif is_taken:
                    self._edge(maker, _TAKE, weight)
            elif demand.taking:
                self._edge(maker if is_taken else _KEEP, self._first(demand.taking), weight)
            else:
                self._edge(self._last(demand.keeping), maker if is_kept else _TAKE, weight)

    def add_wish(self, operator: Operator, weight: int) -> None:
        """Add what it costs that an operator is not in the order that the user wants."""
        target = self.targets.get(operator)
        if target is None:
            return
        number = self._numbers[operator]
        kept, took = (
            self.region.is_met(operator, state) for state in (self.state[operator], target)
        )
        if kept and not took:
            self._edge(_KEEP, number, weight)
        elif took and not kept:
            self._edge(number, _TAKE, weight)

    def _made(self, strand: Strand, key: Key) -> tuple[Permutation, Permutation, int]:
        """Return the orders of the producer, kept and taken, and its number."""
        if strand.producer is None:
            identity = key(tuple(range(strand.wire.rank)))
            return identity, identity, _KEEP
        operator, at = strand.producer
        return (*self._orders(operator, at, key), self._numbers.get(operator, _KEEP))

    def _orders(self, operator: Operator, at: int, key: Key) -> tuple[Permutation, Permutation]:
        state = self.state[operator]
        kept = key(self.region.order(operator, at, state))
        target = self.targets.get(operator)
        if target is None:
            return kept, kept
        return kept, key(self.region.order(operator, at, target))

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

    def _edge(self, source: int, target: int, weight: int) -> None:
        edges = self.network.adj[source] if source in self.network else {}
        if target in edges:
            edges[target]["capacity"] += weight
        else:
            self.network.add_edge(source, target, capacity=weight)

    def _first(self, numbers: list[int]) -> int:
        """Return a node that takes as soon as one of these does."""
        if len(set(numbers)) == 1:
            return numbers[0]
        self._next += 1
        # An edge without a capacity is never cut.
        self.network.add_edges_from((self._next, number) for number in numbers)
        return self._next

    def _last(self, numbers: list[int]) -> int:
        """Return a node that keeps as long as one of these does."""
        if len(set(numbers)) == 1:
            return numbers[0]
        self._next += 1
        self.network.add_edges_from((number, self._next) for number in numbers)
        return self._next
