"""Minimum-cost layout assignment: one axis order for each operator, in the least time.

This is a labelling problem, as in Markov random fields:

- The variables are the operators of a region. The labels of an operator are its choices: the
  permutations of its axes for which it can be written (`equivalence.Choice`).
- The unary cost is the time that the operator takes in an order (`work`), and what the user asked
  for: an operator that is not in that layout costs `PREFERENCE_PENALTY`.
- The pairwise cost is the Transposes between a producer and its consumers: each tensor costs the
  time of one for each order in which a consumer reads it and its producer does not make it
  (`cost.TensorCost`). Consumers that need the same order share one Transpose.

Algorithm: alpha-expansion. A move proposes one order for each operator (`expansion_moves`); each
operator either keeps its label or takes the proposed one. The best such move is a minimum cut
(`expansion_cut`, put together from `terms`), found as a maximum flow by Dinic's algorithm
(`max_flow`). Moves repeat until no proposal lowers the cost. If two proposals together contain
every label of every operator, one cut is the global optimum; otherwise the result is a local
optimum with respect to expansion moves, and the search is repeated from several assignments. Of a
region with few assignments, the costs of all are compared instead.

Before this, `pruning` removes labels that no optimal assignment needs, and `region` splits the
model into parts that share no tensor. Afterwards `apply` writes the assignment into the model.

Time is compared first, then bytes, then the number of Transposes. If the result would move more
bytes than before, or need more Transposes, the search is repeated with a price on them, and with
them first. An assignment is applied only if it takes no more time, bytes or Transposes than the
present one, and less of one of them; of time alone, clearly less. So conversion terminates.

Source: Boykov, Veksler, Zabih 2001, "Fast approximate energy minimization via graph cuts", IEEE
TPAMI 23 (11), section 5 (expansion moves); Dinic 1970 (maximum flow).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from tiered.analysis.layout.cost import Cost
from tiered.analysis.layout.cost_terms import CutWeights, Objective, Term
from tiered.analysis.layout.equivalence import LayoutOperator
from tiered.analysis.layout.expansion_cut import FIRST_OPERATOR, Proposal, TensorCut
from tiered.analysis.layout.kernel_times import TRANSPOSE_START
from tiered.analysis.layout.layout_region import PREFERENCE_PENALTY, Assignment, LayoutRegion
from tiered.analysis.layout.search_memory import Solutions
from tiered.support.max_flow import SINK, SOURCE, Network

ENUMERATED: Final = 64
"""Of regions with so few assignments, all are compared: that takes less time than cuts."""

LARGE_REGION: Final = 1000
"""Regions with more operators are searched from one starting assignment only."""

WORK: Final = 4_000
"""Bound on operators times moves: small regions try more moves."""

_TRANSPOSE_BOUND: Final = 1 << 24
"""More Transposes than a region has, so that one byte outweighs all of them."""

_WORTH: Final = 8
"""A gain in the time by the table alone must exceed an eighth."""

_SHARES: Final = (4, 1)
"""If the fastest assignment has too many Transposes, each costs as much as a share of all more."""

_BYTE_BOUND: Final = 1 << 90
"""More than the bytes and times of a region, so that what is compared first outweighs them."""


def solve(region: LayoutRegion, solutions: Solutions) -> dict[LayoutOperator, int]:
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


def _solve(region: LayoutRegion) -> dict[LayoutOperator, int]:
    present, best = dict.fromkeys(region.operators, 0), cheapest(region)
    if best == present:
        return present
    return best if pays(region.cost(best), region.cost(present)) else present


def cheapest(region: LayoutRegion) -> dict[LayoutOperator, int]:
    """Return the assignment that takes the least time; that of the present orders if none does."""
    present = dict.fromkeys(region.operators, 0)
    now = region.cost(present)
    if now[:2] == (0, 0):
        return present
    best, least = present, now
    few = _costs_of_all(region)
    for objective in _objectives(now):
        if few:
            cost, found = min(few, key=lambda each: objective(each[0]))
        else:
            found = _search(region, present, objective)
            cost = region.cost(found)
        if is_allowed(cost, now) and by_time(cost) < by_time(least):
            best, least = found, cost
        if objective is by_time and is_allowed(cost, now):
            # Nothing takes less time.
            break
    return best


def _costs_of_all(region: LayoutRegion) -> list[tuple[Cost, dict[LayoutOperator, int]]]:
    """Return each assignment of a region with its cost, the present one first; none of many."""
    operators = region.operators
    if math.prod([len(operator.candidates) for operator in operators]) > ENUMERATED:
        return []
    choices = itertools.product(*[operator.candidates for operator in operators])
    found = [dict(zip(operators, each, strict=True)) for each in choices]
    return [(region.cost(assignment), assignment) for assignment in found]


def _objectives(now: Cost) -> Iterator[Objective]:
    """Yield what to minimise: time, then what leads to fewer Transposes and bytes."""
    yield by_time
    for share in _SHARES:
        yield _by_time_and_count(now.time // (share * max(1, now.transposes)))
    yield _by_bytes
    yield _by_count


def is_allowed(cost: Cost, now: Cost) -> bool:
    """Return whether an assignment is no worse than the present one in anything that counts."""
    # A layout that the user asks for may need more Transposes.
    fewer = cost.transposes <= now.transposes or now.nbytes >= PREFERENCE_PENALTY
    return fewer and cost.nbytes <= now.nbytes and cost.time <= now.time


def pays(cost: Cost, now: Cost) -> bool:
    """Return whether an allowed assignment is worth an edit."""
    if cost[:2] != now[:2]:
        return True
    return cost.time + TRANSPOSE_START < now.time - now.time // _WORTH


def by_time(cost: Cost) -> int:
    """Return what the solver minimises: time, then bytes, then Transposes, in one number."""
    return cost.time * _BYTE_BOUND + cost.nbytes * _TRANSPOSE_BOUND + cost.transposes


def _by_time_and_count(price: int) -> Objective:
    return lambda cost: by_time(cost._replace(time=cost.time + price * cost.transposes))


def _by_bytes(cost: Cost) -> int:
    return cost.nbytes * _BYTE_BOUND + cost.time * _TRANSPOSE_BOUND + cost.transposes


def _by_count(cost: Cost) -> int:
    return cost.transposes * (_BYTE_BOUND << 90) + cost.time * _BYTE_BOUND + cost.nbytes


def _search(
    region: LayoutRegion, present: dict[LayoutOperator, int], objective: Objective
) -> dict[LayoutOperator, int]:
    if _is_binary(region):
        first, second = region.proposals
        return _expand(region, first, second, objective, {}) or dict(first)
    proposals: list[Proposal] = [*region.proposals, present]
    starts = [present, *({**present, **proposal} for proposal in region.proposals)]
    if len(region.operators) > LARGE_REGION:
        starts = [min(starts, key=lambda start: objective(region.cost(start)))]
    moves_left = max(2, WORK // len(region.operators))
    best, least = present, objective(region.cost(present))
    # Searches from several starts come to the same assignments.
    known: dict[tuple[object, ...], dict[LayoutOperator, int] | None] = {}
    weights: dict[TensorCut, CutWeights] = {}
    for start in starts:
        assignment, rejected, tried = start, 0, 0
        while rejected < len(proposals) and moves_left:
            moves_left -= 1
            at = tried % len(proposals)
            move = (at, *assignment.values())
            if move not in known:
                known[move] = _expand(region, assignment, proposals[at], objective, weights)
            better = known[move]
            tried += 1
            rejected = rejected + 1 if better is None else 0
            assignment = assignment if better is None else better
        cost = objective(region.cost(assignment))
        if cost < least:
            best, least = assignment, cost
        if not moves_left:
            break
    return best


def _is_binary(region: LayoutRegion) -> bool:
    """Return whether two proposals contain all labels of all operators: one cut is optimal."""
    if len(region.proposals) != 2:
        return False
    first, second = region.proposals
    return all(
        {first.get(operator), second.get(operator)}.issuperset(operator.candidates)
        for operator in region.operators
    )


def _expand(
    region: LayoutRegion,
    assignment: Assignment,
    proposal: Proposal,
    objective: Objective,
    weights: dict[TensorCut, CutWeights],
) -> dict[LayoutOperator, int] | None:
    """Return the best assignment in which each operator keeps its choice or takes the proposed one.

    None if it is no better than the given assignment. `weights` are known for the objective.
    """
    targets = {
        operator: target for operator, target in proposal.items() if target != assignment[operator]
    }
    terms = region.terms_at(targets)
    if not terms:
        return None
    network = _network(region, assignment, targets, objective, terms, weights)
    if network is None:
        return None
    side = network.sink_side()
    changes = {
        operator: targets[operator]
        for number, operator in enumerate(region.operators, FIRST_OPERATOR)
        if side[number]
    }
    if not changes:
        return None
    changed = {**assignment, **changes}
    # Objectives are sums: what does not change is left out on both sides.
    before, after = (objective(region.cost(each, changes)) for each in (assignment, changed))
    return changed if after < before else None


def _network(
    region: LayoutRegion,
    assignment: Assignment,
    targets: Mapping[LayoutOperator, int],
    objective: Objective,
    terms: Collection[Term],
    weights: dict[TensorCut, CutWeights],
) -> Network | None:
    """Return the network of a move; None if nothing becomes cheaper by it."""
    operators, proposed = region.operators, {**assignment, **targets}
    # What each node costs on the sink side, less what it costs on the other one.
    alone = [0] * (FIRST_OPERATOR + len(operators))
    edges: list[tuple[int, int, int, int]] = []
    for term in terms:
        cut = term.kind.cut(term.choices(assignment), term.choices(proposed))
        own = weights.get(cut)
        if own is None:
            own = weights[cut] = CutWeights(cut, objective)
        nodes: Sequence[int] = term.nodes
        if own.auxiliary:
            nodes = (*nodes, *range(len(alone), len(alone) + own.auxiliary))
            alone += [0] * own.auxiliary
        for node, amount in own.alone:
            alone[nodes[node]] += amount
        for one, other, there, back in own.pairs:
            edges.append((nodes[one], nodes[other], there, back))
    price = objective(Cost(0, 0, 1))
    preference = objective(Cost(PREFERENCE_PENALTY, 0, PREFERENCE_PENALTY))
    for number, operator in enumerate(operators, FIRST_OPERATOR):
        now, work = assignment[operator], operator.work
        target = proposed[operator]
        if target == now:
            continue
        if work:
            alone[number] += (work.get(target, 0) - work.get(now, 0)) * price
        if operator.wanted is not None:
            alone[number] += preference * ((now == operator.wanted) - (target == operator.wanted))
    if min(alone) >= 0:
        return None
    network = Network(len(alone))
    network.add_edges(edges)
    network.add_edges([(SOURCE, node, cost, 0) for node, cost in enumerate(alone) if cost > 0])
    network.add_edges([(node, SINK, -cost, 0) for node, cost in enumerate(alone) if cost < 0])
    return network
