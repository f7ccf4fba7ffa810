"""Minimum-cost layout assignment: one axis order for each operator, moving the fewest bytes.

This is a labelling problem, as in Markov random fields:

- The variables are the operators of a region. The labels of an operator are its choices: the
  permutations of its axes for which it can be written (`equivalence.Choice`).
- The unary cost is the user's preference: an operator that is not in the layout that the user asked
  for costs `PREFERENCE_PENALTY`.
- The pairwise cost is the Transposes between a producer and its consumers: each tensor costs its
  bytes once for each order in which a consumer reads it and its producer does not make it
  (`cost.TensorCost`). Consumers that need the same order share one Transpose.

Algorithm: alpha-expansion. A move proposes one order for each operator (`expansion_moves`); each
operator either keeps its label or takes the proposed one. The best such move is a minimum cut
(`expansion_cut`), found as a maximum flow by Dinic's algorithm (`max_flow`). Moves repeat until no
proposal lowers the cost. If two proposals together contain every label of every operator, one
cut is the global optimum; otherwise the result is a local optimum with respect to expansion moves,
and the search is repeated from several assignments.

Before this, `pruning` removes labels that no optimal assignment needs, and `region` splits the
model into parts that share no tensor. Afterwards `apply` writes the assignment into the model.

Bytes are compared first and the number of Transposes second; if the result would need more
Transposes than before, the order of the two is reversed. An assignment is applied only if it costs
less than the present one, so conversion terminates.

Source: Boykov, Veksler, Zabih 2001, "Fast approximate energy minimization via graph cuts", IEEE
TPAMI 23 (11), section 5 (expansion moves); Dinic 1970 (maximum flow).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final

from tiered.layout.cost import Cost
from tiered.layout.equivalence import Operator, TensorClass
from tiered.layout.expansion_cut import ExpansionCut
from tiered.layout.expansion_moves import Proposal
from tiered.layout.region import PREFERENCE_PENALTY, Assignment, Region

LARGE_REGION: Final = 1000
"""Regions with more operators are searched from one starting assignment only."""

WORK: Final = 4_000
"""Bound on operators times moves: small regions try more moves."""

_TRANSPOSE_BOUND: Final = 1 << 24
"""More Transposes than a region has, so that one byte outweighs all of them."""

Solutions = dict[Hashable, tuple[int, ...]]
"""The assignments of solved regions by cache key: models repeat their layers."""

Objective = Callable[[Cost], int]


def solve(region: Region, solutions: Solutions) -> dict[Operator, int]:
    """Return the choice of each operator; all 0 if no choice is better than the present orders.

    Args:
        region: the operators that are solved together.
        solutions: the solutions of equal regions; the solution of this region is added.
    """
    key = region.cache_key()
    if key not in solutions:
        assignment = _solve(region)
        solutions[key] = tuple([assignment[operator] for operator in region.operators])
    return dict(zip(region.operators, solutions[key], strict=True))


def _solve(region: Region) -> dict[Operator, int]:
    present = dict.fromkeys(region.operators, 0)
    now = region.cost(present)
    if now == Cost(0, 0):
        return present
    for objective in (_by_bytes, _by_count):
        best = _search(region, present, objective)
        cost = region.cost(best)
        # A layout that the user asks for may need more Transposes.
        fewer = cost.transposes <= now.transposes or now.nbytes >= PREFERENCE_PENALTY
        if cost.nbytes <= now.nbytes and fewer:
            return present if cost == now else best
    return present


def _by_bytes(cost: Cost) -> int:
    return cost.nbytes * _TRANSPOSE_BOUND + cost.transposes


def _by_count(cost: Cost) -> int:
    return cost.nbytes + cost.transposes * (1 << 90)


def _search(
    region: Region, present: dict[Operator, int], objective: Objective
) -> dict[Operator, int]:
    if _is_binary(region):
        first, second = region.proposals
        return _expand(region, first, second, objective) or dict(first)
    proposals: list[Proposal] = [*region.proposals, present]
    starts = [present, *({**present, **proposal} for proposal in region.proposals)]
    if len(region.operators) > LARGE_REGION:
        starts = [min(starts, key=lambda start: objective(region.cost(start)))]
    moves_left = max(2, WORK // len(region.operators))
    best = present
    for start in starts:
        assignment, rejected, tried = start, 0, 0
        while rejected < len(proposals) and moves_left:
            moves_left -= 1
            better = _expand(region, assignment, proposals[tried % len(proposals)], objective)
            tried += 1
            rejected = rejected + 1 if better is None else 0
            assignment = assignment if better is None else better
        best = min(best, assignment, key=lambda each: objective(region.cost(each)))
    return best


def _is_binary(region: Region) -> bool:
    """Return whether two proposals contain all labels of all operators: one cut is optimal."""
    if len(region.proposals) != 2:
        return False
    return all(
        all(operator in proposal for proposal in region.proposals)
        and {proposal[operator] for proposal in region.proposals}.issuperset(operator.candidates)
        for operator in region.operators
    )


def _expand(
    region: Region, assignment: Assignment, proposal: Proposal, objective: Objective
) -> dict[Operator, int] | None:
    """Return the best assignment in which each operator keeps its choice or takes the proposed one.

    None if it is no better than the given assignment.
    """
    targets = {
        operator: target for operator, target in proposal.items() if target != assignment[operator]
    }
    tensors = _tensors(region, targets)
    if not tensors:
        return None
    cut = ExpansionCut(assignment, targets)
    for tensor in tensors:
        term = region.tensor_costs[tensor]
        cut.add(term, term.moving, term.nbytes * objective(Cost(1, 0)))
        cut.add(term, tuple, objective(Cost(0, 1)))
    for operator in region.wanted:
        cut.add_preference(operator, objective(Cost(PREFERENCE_PENALTY, 0)))
    changes = {operator: targets[operator] for operator in cut.switching()}
    if not changes:
        return None
    changed, affected = {**assignment, **changes}, _tensors(region, changes)
    better = objective(region.cost(changed, affected)) < objective(
        region.cost(assignment, affected)
    )
    return changed if better else None


def _tensors(region: Region, targets: Mapping[Operator, int]) -> list[TensorClass]:
    """Return the tensors of a region that these operators read or make."""
    tensors = dict.fromkeys(port.tensor for operator in targets for port in operator.ports)
    return [tensor for tensor in tensors if tensor in region.tensor_costs]
