"""Regions: operators with several choices, connected by the tensors that their choices affect.

An assignment maps each operator to the number of its choice; 0 is the present order. The cost of an
assignment is the sum of the costs of its tensors.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from typing import Final

from tiered.analysis.layout.cost import Cost, TensorCost, tensor_costs_of, total
from tiered.analysis.layout.cost_terms import Term, terms_of
from tiered.analysis.layout.equivalence import LayoutOperator, OperatorPort, TensorClass
from tiered.analysis.layout.expansion_cut import Proposal, proposals
from tiered.analysis.layout.permutation import Permutation
from tiered.analysis.layout.reach import Reach
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.analysis.layout.work import estimate_work

PREFERENCE_PENALTY: Final = 1 << 60
"""Cost in bytes of an operator that is not in the layout that the user asks for."""

Assignment = Mapping[LayoutOperator, int]


class LayoutRegion:
    """Operators that are solved together, and the costs of their tensors."""

    def __init__(
        self,
        reach: Reach,
        operators: Sequence[LayoutOperator],
        tensor_costs: Mapping[TensorClass, TensorCost],
    ) -> None:
        self.reach = reach
        self.operators = list(operators)
        own = set(operators)
        tensors = dict.fromkeys(chain.from_iterable([each.places for each in operators]))
        # A tensor whose order is the same for all choices of these may belong to another region.
        self.tensor_costs = {
            tensor: tensor_costs[tensor]
            for tensor in tensors
            if tensor in tensor_costs and not own.isdisjoint(tensor_costs[tensor].operators)
        }
        self.wanted = [operator for operator in operators if operator.wanted is not None]
        self.working = [operator for operator in operators if operator.work]

    @cached_property
    def _terms(self) -> list[Term]:
        return list(terms_of(self.operators, self.tensor_costs.values()))

    @cached_property
    def _terms_at(self) -> dict[LayoutOperator, list[Term]]:
        """The terms of the tensors that each operator reads or makes."""
        term_of = dict(zip(self.tensor_costs, self._terms, strict=True))
        return {
            operator: [term_of[tensor] for tensor in operator.places if tensor in term_of]
            for operator in self.operators
        }

    def terms_at(self, operators: Iterable[LayoutOperator]) -> Collection[Term]:
        """Return the terms of the tensors that some operators read or make."""
        return dict.fromkeys(chain.from_iterable(map(self._terms_at.__getitem__, operators)))

    @cached_property
    def proposals(self) -> list[Proposal]:
        """The proposals of expansion moves: orders for all operators at once."""
        return proposals(self.operators, self.tensor_costs)

    def cache_key(self) -> Hashable:
        """Return a key that is equal only for regions with the same solution.

        It contains all inputs of the solver: the choices of each operator with the order of each
        of its tensors, and the cost terms of each tensor.
        """
        numbers = {operator: number for number, operator in enumerate(self.operators)}
        operators = tuple(
            (
                each.wanted,
                *(
                    (number, each.choices[number].orders, each.work.get(number, 0))
                    for number in each.candidates
                ),
            )
            for each in self.operators
        )
        tensor_costs = tuple(
            (
                term.nbytes,
                term.dims,
                term.start,
                term.moving(term.tensor.identity),
                term.producer and (numbers[term.producer[0]], term.producer[1]),
                tuple([(numbers[each], *own) for each, own in term.consumers.items()]),
                tuple(sorted(term.pinned)),
            )
            for term in self.tensor_costs.values()
        )
        return operators, tensor_costs

    def cost(self, assignment: Assignment, of: Collection[LayoutOperator] | None = None) -> Cost:
        """Return the cost of an assignment; that of some operators and their tensors, if given."""
        terms: Iterable[Term] = self._terms if of is None else self.terms_at(of)
        moved = total([term.kind.cost(term.choices(assignment)) for term in terms])
        wanted = self.wanted if of is None else [each for each in of if each.wanted is not None]
        working = self.working if of is None else [each for each in of if each.work]
        unmet = sum(operator.wanted != assignment[operator] for operator in wanted)
        penalty = unmet * PREFERENCE_PENALTY
        work = sum([each.work.get(assignment[each], 0) for each in working])
        return Cost(moved.nbytes + penalty, moved.transposes, moved.time + work + penalty)


def regions(reach: Reach, sizes: LayoutSizes) -> Iterator[LayoutRegion]:
    """Yield the regions of a model, without the choices that no optimal assignment needs.

    The caller may write each region before it asks for the next one.
    """
    # Merging equal views may have removed unused operators.
    free = [operator for operator in reach.free if operator.node.is_live]
    tensor_costs = tensor_costs_of(free, sizes)
    estimate_work(reach, free, sizes)
    prune_choices(free, tensor_costs)
    seen: set[LayoutOperator] = set()
    for start in free:
        if start in seen or not start.is_free:
            continue
        found = _connected(start, tensor_costs, seen)
        seen.update(found)
        kept = [operator for operator in found if operator.node.is_live]
        _drop_dead_readers(found, tensor_costs)
        if kept:
            yield LayoutRegion(reach, sorted(kept, key=lambda each: each.node.id), tensor_costs)


def _connected(
    start: LayoutOperator,
    tensor_costs: Mapping[TensorClass, TensorCost],
    others: Collection[LayoutOperator],
) -> Collection[LayoutOperator]:
    """Return the free operators that tensors connect to one, without those of other regions.

    An operator that has a tensor in one order in all of its choices is not among those that decide
    the order, so what it is connected to may not be connected to it.
    """
    found, pending = {start: None}, [start]
    visited: set[TensorCost] = set()
    while pending:
        for tensor in pending.pop().places:
            term = tensor_costs.get(tensor)
            if term is None or term in visited:
                continue
            visited.add(term)
            fresh = [each for each in term.operators if each not in found and each not in others]
            found.update(dict.fromkeys(fresh))
            pending += fresh
    return found


def _drop_dead_readers(
    operators: Iterable[LayoutOperator], tensor_costs: Mapping[TensorClass, TensorCost]
) -> None:
    """Drop readers that were removed (they computed sizes that are no longer needed)."""
    for operator in operators:
        if operator.node.is_live:
            continue
        for tensor in operator.places:
            if tensor in tensor_costs:
                tensor_costs[tensor].consumers.pop(operator, None)


# --- Pruning: remove choices that no optimal assignment needs, before the search (persistency) ----


def prune_choices(
    operators: Iterable[LayoutOperator], tensor_costs: Mapping[TensorClass, TensorCost]
) -> None:
    """Remove choices that no optimal assignment needs, until none is found.

    What is removed does not depend on the order of the operators: the fewer choices others have,
    the more choices of an operator cannot pay off.
    """
    pending = deque(operators)
    waiting = set(pending)
    # The operators that wait for nothing: of thousands that read one tensor, few wait again.
    idle: dict[TensorCost, list[LayoutOperator]] = {}
    while pending:
        operator = pending.popleft()
        waiting.discard(operator)
        terms: dict[TensorCost, list[int]] = {}
        for at in operator.moving_ports:
            terms.setdefault(tensor_costs[operator.ports[at].tensor], []).append(at)
        operator.candidates = [
            number
            for number in operator.candidates
            if not number or not _cannot_pay_off(operator, number, terms)
        ]
        if operator.is_free:
            for term in terms:
                idle.setdefault(term, []).append(operator)
            continue
        for tensor in operator.places:
            found = tensor_costs.get(tensor)
            if found is None:
                continue
            found.pin(operator)
            for each in idle.pop(found, ()):
                if each not in waiting and each.is_free:
                    waiting.add(each)
                    pending.append(each)


def _cannot_pay_off(
    operator: LayoutOperator, number: int, terms: Mapping[TensorCost, Sequence[int]]
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
    read = [orders[at] for own in term.consumers.values() for at in own]
    return term.cost(made, [*term.pinned, *read])


def _saves_nothing(term: TensorCost, port: OperatorPort, order: Permutation) -> bool:
    """Return whether a tensor costs no less if an operator has it in another order.

    Others may read it in the present one, or make it so.
    """
    if port.view == order or port.view in term.pinned:
        return True
    return term.producer is None and port.view == term.tensor.identity
