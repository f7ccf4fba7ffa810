"""Regions: operators with a choice, joined by the wires that they have a say in.

A state of an operator is the number of its choice; 0 is as it is. What a placement costs is what
its wires cost together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Final

from tiered.layout.cost import Cost, LayoutSizes, Strand, strands_of, total
from tiered.layout.equivalence import Operator, Wire
from tiered.layout.expansion_moves import Offer, offers
from tiered.layout.permutation import Permutation
from tiered.layout.pruning import peel
from tiered.layout.reach import Wiring

REFUSAL: Final = 1 << 60
"""Bytes that it counts when an operator is not in the order that the user wants."""

State = Mapping[Operator, int]


class Region:
    """Operators whose orders are chosen together, and the strands of their wires."""

    def __init__(
        self, wiring: Wiring, operators: Sequence[Operator], strands: Mapping[Wire, Strand]
    ) -> None:
        self.wiring = wiring
        self.operators = list(operators)
        own = set(operators)
        wires = dict.fromkeys(port.wire for operator in operators for port in operator.ports)
        # What an operator has in one order in any case may be for another region to choose.
        self.strands = {
            wire: strands[wire]
            for wire in wires
            if wire in strands and any(each in own for each, _ in strands[wire].places)
        }
        self.wanted = [operator for operator in operators if operator.wanted is not None]

    @cached_property
    def offers(self) -> list[Offer]:
        """The orders that are offered to all operators at once."""
        return offers(self.operators, self.strands)

    def likeness(self) -> Hashable:
        """Return what is equal for two regions only if one placement is right for both.

        All that a placement rests on: what each operator may be and has its wires in then, and what
        each wire costs.
        """
        numbers = {operator: number for number, operator in enumerate(self.operators)}
        operators = tuple(
            (each.wanted, *((number, each.choices[number].orders) for number in each.open))
            for each in self.operators
        )
        strands = tuple(
            (
                strand.nbytes,
                strand.moving(strand.wire.identity),
                strand.producer and (numbers[strand.producer[0]], strand.producer[1]),
                tuple((numbers[operator], at) for operator, at in strand.readers),
                tuple(sorted(strand.pinned)),
            )
            for strand in self.strands.values()
        )
        return operators, strands

    def cost(self, state: State, wires: Iterable[Wire] | None = None) -> Cost:
        """Return what a placement costs, or what it costs on some wires."""
        strands: Iterable[Strand] = self.strands.values()
        if wires is not None:
            strands = [self.strands[wire] for wire in dict.fromkeys(wires) if wire in self.strands]
        moved = total(strand.cost(_made(strand, state), _read(strand, state)) for strand in strands)
        refused = sum(operator.wanted != state[operator] for operator in self.wanted)
        return Cost(moved.nbytes + refused * REFUSAL, moved.transposes)


def _made(strand: Strand, state: State) -> Permutation:
    """Return the order in which a wire is made."""
    if strand.producer is None:
        return strand.wire.identity
    operator, at = strand.producer
    return operator.choices[state[operator]].orders[at]


def _read(strand: Strand, state: State) -> Iterator[Permutation]:
    """Yield the orders in which a wire is read."""
    yield from strand.pinned
    for operator, at in strand.readers:
        yield operator.choices[state[operator]].orders[at]


def regions(wiring: Wiring, sizes: LayoutSizes) -> Iterator[Region]:
    """Yield the regions of a model, without the choices that no placement needs.

    Each may be written before the next one is asked for.
    """
    # What nobody read may have gone with views that there were twice.
    free = [operator for operator in wiring.free if operator.node.is_live]
    strands = strands_of(free, sizes)
    peel(free, strands)
    seen: set[Operator] = set()
    for start in free:
        if start in seen or not start.is_free:
            continue
        seen.add(start)
        found, pending = [], [start]
        while pending:
            operator = pending.pop()
            found.append(operator)
            for port in operator.ports:
                strand = strands.get(port.wire)
                for other, _ in strand.places if strand is not None else ():
                    if other not in seen:
                        seen.add(other)
                        pending.append(other)
        kept = [operator for operator in found if operator.node.is_live]
        if len(kept) < len(found):
            _forget_the_gone(kept, strands)
        if kept:
            yield Region(wiring, sorted(kept, key=lambda each: each.node.id), strands)


def _forget_the_gone(operators: Iterable[Operator], strands: Mapping[Wire, Strand]) -> None:
    """Leave out who read wires of operators, but only to make sizes that nobody needs any more."""
    for operator in operators:
        for port in operator.ports:
            strand = strands.get(port.wire)
            if strand is not None:
                strand.readers = [place for place in strand.readers if place[0].node.is_live]
