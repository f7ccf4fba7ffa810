"""Pruning: remove choices that no optimal assignment needs, before the search (persistency).

The time of an operator in a choice is known, and so is the cost on tensors that no other free
operator has. On a tensor that it shares with others, a choice saves at most one Transpose, and
nothing if a pinned consumer reads the tensor in the operator's present order. A choice that costs
at least what it may save is removed. An operator with one choice left is pinned, so its neighbours
are examined again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping

from tiered.layout.cost import Cost, TensorCost
from tiered.layout.equivalence import Operator, TensorClass
from tiered.layout.kernel_times import TRANSPOSE_START
from tiered.layout.permutation import Permutation


def prune_choices(
    operators: Iterable[Operator], tensor_costs: Mapping[TensorClass, TensorCost]
) -> None:
    """Remove choices that no optimal assignment needs, until none is found."""
    pending = deque(operators)
    waiting = set(pending)
    while pending:
        operator = pending.popleft()
        waiting.discard(operator)
        kept = [
            number
            for number in operator.candidates
            if not number or not _cannot_pay_off(operator, number, tensor_costs)
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
    operator: Operator, number: int, tensor_costs: Mapping[TensorClass, TensorCost]
) -> bool:
    """Return whether a choice costs at least what it may save, whatever others choose."""
    if operator.wanted == number:
        return False
    balance = Cost(0, 0, operator.work.get(number, 0) - operator.work.get(0, 0))
    present, there = operator.choices[0].orders, operator.choices[number].orders
    for tensor in dict.fromkeys([port.tensor for port in operator.ports]):
        term = tensor_costs.get(tensor)
        if term is None:
            continue
        if term.is_local_to(operator):
            now, then = (_local_cost(operator, term, orders) for orders in (present, there))
            balance = Cost(
                balance.nbytes + then.nbytes - now.nbytes,
                balance.transposes + then.transposes - now.transposes,
                balance.time + then.time - now.time,
            )
        else:
            balance = _minus_savings(balance, operator, term, there)
    return balance.nbytes >= 0 and balance.transposes >= 0 and balance.time >= 0


def _local_cost(operator: Operator, term: TensorCost, orders: tuple[Permutation, ...]) -> Cost:
    """Return the cost of a tensor whose order depends on this operator only."""
    made = term.tensor.identity
    if term.producer is not None:
        made = orders[term.producer[1]]
    return term.cost(made, term.pinned.union([orders[at] for _, at in term.consumers]))


def _minus_savings(
    balance: Cost, operator: Operator, term: TensorCost, there: tuple[Permutation, ...]
) -> Cost:
    """Return a balance minus the most that the operator may save on a shared tensor."""
    nbytes, transposes, time = balance
    made = term.tensor.identity if term.producer is None else None
    for at, port in enumerate(operator.ports):
        order = port.view
        if port.tensor is not term.tensor or there[at] == order or order in term.pinned:
            continue
        if not port.is_output and order == made:
            continue
        transposes -= 1
        time -= TRANSPOSE_START
        if term.moving(order) != term.moving(there[at]):
            nbytes -= term.nbytes
            time -= term.most_time
    return Cost(nbytes, transposes, time)
