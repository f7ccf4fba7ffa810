"""Peeling: choices that can be no better than to stay are closed before anything is searched.

What an operator pays on wires that are its own to decide is known. What it may save on a wire that
others have a say in is at most one Transpose of it, and nothing where somebody reads the wire in
the operator's present order in any case. If a choice costs at least what it may save, no placement
needs it. An operator without choices is one more that has its orders in any case, which lets its
neighbours be looked at again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from tiered.layout.cost import FREE, Cost, Strand
from tiered.layout.equivalence import Operator, Wire
from tiered.layout.permutation import Permutation


def peel(operators: Iterable[Operator], strands: Mapping[Wire, Strand]) -> None:
    """Close choices of operators as long as one is found that no best placement needs."""
    pending = deque(operators)
    waiting = set(pending)
    while pending:
        operator = pending.popleft()
        waiting.discard(operator)
        kept = [
            number
            for number in operator.open
            if not number or not _is_needless(operator, number, strands)
        ]
        if len(kept) == len(operator.open):
            continue
        operator.open = kept
        if operator.is_free:
            continue
        for port in operator.ports:
            strand = strands.get(port.wire)
            if strand is None:
                continue
            strand.fix(operator)
            for neighbour, _ in strand.places:
                if neighbour not in waiting:
                    waiting.add(neighbour)
                    pending.append(neighbour)


def _is_needless(operator: Operator, number: int, strands: Mapping[Wire, Strand]) -> bool:
    """Tell whether a choice costs at least what it may save, whatever others choose."""
    if operator.wanted == number:
        return False
    balance = FREE
    here, there = operator.choices[0].orders, operator.choices[number].orders
    for wire in dict.fromkeys([port.wire for port in operator.ports]):
        strand = strands.get(wire)
        if strand is None:
            continue
        if strand.is_only_of(operator):
            now, then = (_alone(operator, strand, orders) for orders in (here, there))
            balance = Cost(
                balance.nbytes + then.nbytes - now.nbytes,
                balance.transposes + then.transposes - now.transposes,
            )
        else:
            balance = _less_savings(balance, operator, strand, there)
    return balance.nbytes >= 0 and balance.transposes >= 0


def _alone(operator: Operator, strand: Strand, orders: tuple[Permutation, ...]) -> Cost:
    """Return what a wire costs on which only this operator has a choice."""
    made = strand.wire.identity
    if strand.producer is not None:
        made = orders[strand.producer[1]]
    return strand.cost(made, strand.pinned.union([orders[at] for _, at in strand.readers]))


def _less_savings(
    balance: Cost, operator: Operator, strand: Strand, there: tuple[Permutation, ...]
) -> Cost:
    """Return a balance less the most that the operator may save on a wire that it shares."""
    nbytes, transposes = balance
    made = strand.wire.identity if strand.producer is None else None
    for at, port in enumerate(operator.ports):
        order = port.view
        if port.wire is not strand.wire or there[at] == order or order in strand.pinned:
            continue
        if not port.is_output and order == made:
            continue
        transposes -= 1
        if strand.moving(order) != strand.moving(there[at]):
            nbytes -= strand.nbytes
    return Cost(nbytes, transposes)
