"""An expansion move as a minimum cut: each operator keeps its choice or takes the proposed one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from tiered.analysis.layout.cost import FREE, Cost, TensorCost, total
from tiered.analysis.layout.equivalence import LayoutOperator, TensorClass
from tiered.analysis.layout.permutation import Permutation
from tiered.support.max_flow import SINK, SOURCE

Key = Callable[[Permutation], Permutation]
Weight = Callable[[Permutation, Permutation], Cost]


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


class TensorCut:
    """What one tensor adds to the network of a move.

    Operators on the sink side of the cut take the proposed choice. A proposal contains one order of
    each tensor. An operator needs that order because it takes the proposed choice, or in either
    case; it needs another order because it keeps its choice, or in either case. So each cost term
    is one edge, with an auxiliary node where several operators share the term.

    The nodes have numbers of their own: SOURCE, SINK, the operators of the tensor, auxiliary ones.
    Operators that have the same choice in either case are SOURCE.

    Attributes:
        auxiliary: how many auxiliary nodes there are.
        alone: the cost of each node on the sink side, less its cost on the source side.
        pairs: pairs of nodes, and what it costs to cut from one to the other.
        bound: pairs of nodes that no cut may part in this direction.
    """

    def __init__(self, term: TensorCost, kept: Sequence[int], taken: Sequence[int]) -> None:
        """Find the edges.

        An order that may be made from two others costs the smaller one of both, so that with more
        than two orders a cut is a lower bound. Orders that differ only in axes of size 1 count as
        one, but for the start of a Transpose.

        Args:
            term: the tensor and the operators that read and make it.
            kept: the present choice of each of them, in the order of `term.operators`.
            taken: the proposed choice of each.
        """
        self.auxiliary = 0
        self.alone: dict[int, Cost] = {}
        self.pairs: dict[tuple[int, int], Cost] = {}
        self.bound: list[tuple[int, int]] = []
        self._term = term
        self._choices = {
            operator: pair for operator, *pair in zip(term.operators, kept, taken, strict=True)
        }
        self._numbers = {
            operator: number
            for number, (operator, (now, then)) in enumerate(self._choices.items(), FIRST_OPERATOR)
            if now != then
        }
        self._known: dict[tuple[bool, tuple[int, ...]], int] = {}
        self._add(term.moving, lambda made, wanted: Cost(term.nbytes, 0, term.time(made, wanted)))
        start = Cost(0, 1, term.start)
        self._add(tuple if term.has_ones else term.moving, lambda made, wanted: start)

    def _add(self, key: Key, weight: Weight) -> None:
        kept, took, maker = self._made(key)
        for wanted, demand in self._demands(key).items():
            if wanted in (kept, took) and kept == took:
                continue
            is_kept, is_taken = wanted == kept, wanted == took
            from_kept = FREE if is_kept else weight(kept, wanted)
            from_taken = FREE if is_taken else weight(took, wanted)
            if demand.always:
                self._edge(SOURCE, maker, from_taken)
                self._edge(maker, SINK, from_kept)
            elif demand.taking:
                least = from_kept if is_taken else min(from_kept, from_taken)
                self._edge(maker if is_taken else SOURCE, self._first(demand.taking), least)
            else:
                least = from_taken if is_kept else min(from_kept, from_taken)
                self._edge(self._last(demand.keeping), maker if is_kept else SINK, least)

    def _edge(self, source: int, target: int, cost: Cost) -> None:
        """Add what it costs if one node is on the source side and the other is not."""
        if target == SOURCE or cost == FREE:
            return
        if source == SOURCE:
            if target != SINK:
                self.alone[target] = total([self.alone.get(target, FREE), cost])
        elif target == SINK:
            less = Cost(-cost.nbytes, -cost.transposes, -cost.time)
            self.alone[source] = total([self.alone.get(source, FREE), less])
        else:
            self.pairs[source, target] = total([self.pairs.get((source, target), FREE), cost])

    def _made(self, key: Key) -> tuple[Permutation, Permutation, int]:
        """Return the orders of the producer, kept and taken, and its network node."""
        term = self._term
        if term.producer is None:
            identity = key(term.tensor.identity)
            return identity, identity, SOURCE
        operator, at = term.producer
        return (*self._orders(operator, at, key), self._numbers.get(operator, SOURCE))

    def _orders(
        self, operator: LayoutOperator, at: int, key: Key
    ) -> tuple[Permutation, Permutation]:
        now, then = self._choices[operator]
        kept = key(operator.choices[now].orders[at])
        return kept, kept if now == then else key(operator.choices[then].orders[at])

    def _demands(self, key: Key) -> dict[Permutation, _Demand]:
        demands: dict[Permutation, _Demand] = {}
        for order in sorted(self._term.pinned):
            demands.setdefault(key(order), _Demand()).always = True
        for operator, own in self._term.consumers.items():
            for at in own:
                kept, took = self._orders(operator, at, key)
                if kept == took:
                    demands.setdefault(kept, _Demand()).always = True
                else:
                    demands.setdefault(kept, _Demand()).keeping.append(self._numbers[operator])
                    demands.setdefault(took, _Demand()).taking.append(self._numbers[operator])
        return demands

    def _first(self, numbers: Sequence[int]) -> int:
        """Return a node that is on the sink side if any of these is."""
        return self._between(tuple(dict.fromkeys(numbers)), is_first=True)

    def _last(self, numbers: Sequence[int]) -> int:
        """Return a node that is on the source side if any of these is."""
        return self._between(tuple(dict.fromkeys(numbers)), is_first=False)

    def _between(self, numbers: tuple[int, ...], *, is_first: bool) -> int:
        """Return the auxiliary node for some operators; of one operator its own."""
        if len(numbers) == 1:
            return numbers[0]
        node = self._known.get((is_first, numbers))
        if node is None:
            node = FIRST_OPERATOR + len(self._choices) + self.auxiliary
            self._known[is_first, numbers] = node
            self.auxiliary += 1
            self.bound += [(node, each) if is_first else (each, node) for each in numbers]
        return node


FIRST_OPERATOR: Final = 2
"""The number of the first operator in a network, behind SOURCE and SINK."""


# --- The proposals of expansion moves: one order for each operator, consistent along the tensors --

MAX_PROPOSALS: Final = 6

Proposal = Mapping[LayoutOperator, int]
"""The number of the choice that is proposed to each operator."""

Seed = tuple[TensorClass, Permutation]


def proposals(
    operators: Sequence[LayoutOperator], tensor_costs: Mapping[TensorClass, TensorCost]
) -> list[Proposal]:
    """Return proposals that together contain every order of every tensor, largest tensors first."""
    pending = _seeds(operators, tensor_costs)
    found: list[Proposal] = []
    while pending and len(found) < MAX_PROPOSALS:
        builder = _ProposalBuilder(tensor_costs)
        for tensor, order in pending:
            builder.propagate(tensor, order)
        left = [(tensor, order) for tensor, order in pending if builder.orders[tensor] != order]
        for tensor in tensor_costs:
            builder.propagate(tensor, tensor.identity)
        found.append(builder.proposal)
        pending = left
    return found


def _seeds(
    operators: Sequence[LayoutOperator], tensor_costs: Mapping[TensorClass, TensorCost]
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
        self.proposal: dict[LayoutOperator, int] = {}

    def propagate(self, tensor: TensorClass, order: Permutation) -> None:
        """Fix the order of a tensor that has none yet, and all orders that follow from it."""
        if tensor in self.orders:
            return
        self.orders[tensor] = order
        pending = [tensor]
        while pending:
            tensor = pending.pop()
            for operator in self.tensor_costs[tensor].operators:
                if operator in self.proposal:
                    continue
                number = operator.find(tensor, self.orders[tensor])
                if number is not None and number in operator.candidates:
                    pending += self._assign(operator, number)

    def _assign(self, operator: LayoutOperator, number: int) -> Iterable[TensorClass]:
        """Assign a choice to an operator if it agrees with all fixed orders.

        Return the tensors that get their order from it.
        """
        fresh: dict[TensorClass, Permutation] = {}
        for port, order in zip(operator.ports, operator.choices[number].orders, strict=True):
            tensor = port.tensor
            known = self.orders.get(tensor)
            if known is None:
                if tensor in self.tensor_costs:
                    fresh.setdefault(tensor, order)
            elif known != order:
                return ()
        self.proposal[operator] = number
        self.orders.update(fresh)
        return fresh
