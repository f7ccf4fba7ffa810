"""The proposals of expansion moves: one order for each operator, consistent along the tensors.

A proposal starts from an order of one tensor; every operator that has the tensor hands the order
on. Orders that contradict an earlier one are left to the next proposal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tiered.analysis.layout.cost import TensorCost
from tiered.analysis.layout.equivalence import Operator, TensorClass
from tiered.analysis.layout.permutation import Permutation

MAX_PROPOSALS: Final = 6

Proposal = Mapping[Operator, int]
"""The number of the choice that is proposed to each operator."""

Seed = tuple[TensorClass, Permutation]


def proposals(
    operators: Sequence[Operator], tensor_costs: Mapping[TensorClass, TensorCost]
) -> list[Proposal]:
    """Return proposals that together contain every order of every tensor, largest tensors first."""
    pending = _seeds(operators, tensor_costs)
    found: list[Proposal] = []
    while pending and len(found) < MAX_PROPOSALS:
        builder = _ProposalBuilder(tensor_costs)
        for tensor, order in pending:
            builder.propagate(tensor, order)
        left = [(tensor, order) for tensor, order in pending if builder.orders[tensor] != order]
        if len(left) == len(pending):
            break
        for tensor in tensor_costs:
            builder.propagate(tensor, tensor.identity)
        found.append(builder.proposal)
        pending = left
    return found


def _seeds(
    operators: Sequence[Operator], tensor_costs: Mapping[TensorClass, TensorCost]
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
        self.proposal: dict[Operator, int] = {}

    def propagate(self, tensor: TensorClass, order: Permutation) -> None:
        """Fix the order of a tensor that has none yet, and all orders that follow from it."""
        if tensor in self.orders:
            return
        self.orders[tensor] = order
        pending = [tensor]
        while pending:
            tensor = pending.pop()
            for operator, _ in self.tensor_costs[tensor].free_ports:
                number = operator.find(tensor, self.orders[tensor])
                if number is not None and self._fits(operator, number):
                    pending += self._assign(operator, number)

    def _fits(self, operator: Operator, number: int) -> bool:
        """Return whether a choice of an unassigned operator agrees with all fixed orders."""
        if operator in self.proposal or number not in operator.candidates:
            return False
        orders = operator.choices[number].orders
        return all(
            self.orders.get(port.tensor, order) == order
            for port, order in zip(operator.ports, orders, strict=True)
        )

    def _assign(self, operator: Operator, number: int) -> list[TensorClass]:
        """Assign a choice to an operator; return the tensors that get their order from it."""
        self.proposal[operator] = number
        fresh = []
        for port, order in zip(operator.ports, operator.choices[number].orders, strict=True):
            if port.tensor in self.tensor_costs and port.tensor not in self.orders:
                self.orders[port.tensor] = order
                fresh.append(port.tensor)
        return fresh
