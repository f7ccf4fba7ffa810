"""Pruning: remove choices that no optimal assignment needs, before the search (persistency).

The time of an operator in a choice is known, and so is the cost on tensors that no other free
operator has. On a tensor that it shares with others, a choice saves at most one Transpose, and
nothing if a pinned consumer reads the tensor in the operator's present order. A choice that costs
at least what it may save is removed. An operator with one choice left is pinned, so its neighbours
are examined again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence

from tiered.analysis.layout.cost import Cost, TensorCost
from tiered.analysis.layout.equivalence import Operator, Port, TensorClass
from tiered.analysis.layout.permutation import Permutation


def prune_choices(
    operators: Iterable[Operator], tensor_costs: Mapping[TensorClass, TensorCost]
) -> None:
    """Remove choices that no optimal assignment needs, until none is found."""
    pending = deque(operators)
    waiting = set(pending)
    while pending:
        operator = pending.popleft()
        waiting.discard(operator)
        terms: dict[TensorCost, list[int]] = {}
        for at in operator.moving_ports:
            terms.setdefault(tensor_costs[operator.ports[at].tensor], []).append(at)
        kept = [
            number
            for number in operator.candidates
            if not number or not _cannot_pay_off(operator, number, terms)
        ]
        if len(kept) == len(operator.candidates):
            continue
        operator.candidates = kept
        if operator.is_free:
            continue
        for port in operator.ports:
            term = tensor_costs.get(port.tensor)
            if term is None:
                continue
            term.pin(operator)
            for neighbour, _ in term.free_ports:
                if neighbour not in waiting:
                    waiting.add(neighbour)
                    pending.append(neighbour)


def _cannot_pay_off(
    operator: Operator, number: int, terms: Mapping[TensorCost, Sequence[int]]
) -> bool:
    """Return whether a choice costs at least what it may save, whatever others choose.

    Args:
        operator: the operator.
        number: the choice.
        terms: the tensors that it may have in several orders, with their ports.
    """
    if operator.wanted == number:
        return False
    nbytes, transposes = 0, 0
    time = operator.work.get(number, 0) - operator.work.get(0, 0)
    present, there = operator.choices[0].orders, operator.choices[number].orders
    for term, ports in terms.items():
        if term.is_local_to(operator):
            now, then = _local_cost(term, present), _local_cost(term, there)
            nbytes += then.nbytes - now.nbytes
            transposes += then.transposes - now.transposes
            time += then.time - now.time
            continue
        for at in ports:
            if _saves_nothing(term, operator.ports[at], there[at]):
                continue
            transposes -= 1
            time -= term.start
            if term.moving(present[at]) != term.moving(there[at]):
                nbytes -= term.nbytes
                time -= term.most_time
    return nbytes >= 0 and transposes >= 0 and time >= 0


def _local_cost(term: TensorCost, orders: Sequence[Permutation]) -> Cost:
    """Return the cost of a tensor if one operator alone decides its order."""
    made = term.tensor.identity if term.producer is None else orders[term.producer[1]]
    return term.cost(made, [*term.pinned, *[orders[at] for _, at in term.consumers]])


def _saves_nothing(term: TensorCost, port: Port, order: Permutation) -> bool:
    """Return whether a tensor costs no less if an operator has it in another order.

    Others may read it in the present one, or make it so.
    """
    if port.view == order or port.view in term.pinned:
        return True
    return not port.is_output and term.producer is None and port.view == term.tensor.identity
