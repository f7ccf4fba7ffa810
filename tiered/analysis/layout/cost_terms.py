"""The cost terms of a region, for the choices that a search asks for.

A search asks for the same few choices again and again, and a model that repeats a step has many
equal terms: what a term costs, and what it adds to a cut, is computed once for all equal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import cast

from tiered.analysis.layout.cost import Cost, TensorCost
from tiered.analysis.layout.equivalence import LayoutOperator
from tiered.analysis.layout.expansion_cut import FIRST_OPERATOR, TensorCut
from tiered.analysis.layout.permutation import Permutation
from tiered.support.max_flow import SINK, SOURCE, UNLIMITED

Choices = tuple[int, ...]
"""The choice of each operator of a tensor, in the order of `TensorCost.operators`."""

Objective = Callable[[Cost], int]


class TensorKind:
    """Tensors with equal costs whose operators have equal choices.

    Attributes:
        term: one of them.
    """

    __slots__ = ("_costs", "_cuts", "term")

    def __init__(self, term: TensorCost) -> None:
        self.term = term
        self._costs: dict[Choices, Cost] = {}
        self._cuts: dict[tuple[Choices, Choices], TensorCut] = {}

    def cost(self, choices: Choices) -> Cost:
        """Return what such a tensor costs."""
        known = self._costs.get(choices)
        if known is None:
            own = dict(zip(self.term.operators, choices, strict=True))
            made, read = _produced(self.term, own), _consumed(self.term, own)
            known = self._costs[choices] = self.term.cost(made, read)
        return known

    def cut(self, kept: Choices, taken: Choices) -> TensorCut:
        """Return what it adds to a cut between these choices."""
        move = kept, taken
        known = self._cuts.get(move)
        if known is None:
            known = self._cuts[move] = TensorCut(self.term, kept, taken)
        return known


def _produced(term: TensorCost, assignment: Mapping[LayoutOperator, int]) -> Permutation:
    """Return the order in which a tensor is made."""
    if term.producer is None:
        return term.tensor.identity
    operator, at = term.producer
    return operator.choices[assignment[operator]].orders[at]


def _consumed(term: TensorCost, assignment: Mapping[LayoutOperator, int]) -> Iterator[Permutation]:
    """Yield the orders in which a tensor is read."""
    yield from term.pinned
    for operator, own in term.consumers.items():
        for at in own:
            yield operator.choices[assignment[operator]].orders[at]


class Term:
    """A tensor of a region.

    Attributes:
        kind: what it has in common with others.
        choices: returns the choices of its operators in an assignment.
        nodes: the numbers that SOURCE, SINK and its operators have in the network of a move.
    """

    __slots__ = ("choices", "kind", "nodes")

    def __init__(
        self, kind: TensorKind, operators: Sequence[LayoutOperator], numbers: Sequence[int]
    ) -> None:
        self.kind = kind
        self.choices = _choices_of(operators)
        self.nodes = (SOURCE, SINK, *numbers)


def _choices_of(
    operators: Sequence[LayoutOperator],
) -> Callable[[Mapping[LayoutOperator, int]], Choices]:
    if len(operators) == 1:
        only = operators[0]
        return lambda assignment: (assignment[only],)
    return cast(Callable[[Mapping[LayoutOperator, int]], Choices], itemgetter(*operators))


def terms_of(
    operators: Iterable[LayoutOperator], tensor_costs: Iterable[TensorCost]
) -> Iterator[Term]:
    """Yield the terms of some tensors, whose operators have numbers by their order."""
    numbers = {operator: number for number, operator in enumerate(operators, FIRST_OPERATOR)}
    kinds: dict[Hashable, TensorKind] = {}
    for tensor_cost in tensor_costs:
        own = tensor_cost.operators
        key = _kind_of(tensor_cost, own)
        kind = kinds.get(key)
        if kind is None:
            kind = kinds[key] = TensorKind(tensor_cost)
        yield Term(kind, own, [numbers[operator] for operator in own])


def _kind_of(term: TensorCost, operators: Sequence[LayoutOperator]) -> Hashable:
    """Return a key that is equal only for terms of the same kind."""
    places = {operator: place for place, operator in enumerate(operators)}
    ports = [(places[operator], operator.table.orders_of(at)) for operator, at in term.free_ports]
    return (
        term.nbytes,
        term.dims,
        term.tensor.shape,
        term.start,
        term.tensor.identity,
        frozenset(term.pinned),
        term.producer is None,
        *ports,
    )


# --- the weights of a cut -------------------------------------------------------------------------


class CutWeights:
    """What tensors add to a cut if an objective is minimised.

    Attributes:
        auxiliary: how many auxiliary nodes there are.
        alone: nodes, and what they cost on the sink side, less what they cost on the other one.
        pairs: two nodes, and what it costs to cut between them, from either to the other.
    """

    __slots__ = ("alone", "auxiliary", "pairs")

    def __init__(self, cut: TensorCut, objective: Objective) -> None:
        self.auxiliary = cut.auxiliary
        self.alone = [(node, objective(cost)) for node, cost in cut.alone.items()]
        amounts = {pair: objective(cost) for pair, cost in cut.pairs.items()}
        self.pairs = [
            (source, target, amount, amounts.get((target, source), 0))
            for (source, target), amount in amounts.items()
            if source < target or (target, source) not in amounts
        ]
        self.pairs += [(source, target, UNLIMITED, 0) for source, target in cut.bound]
