"""Global placement: which operators take another order, so that the fewest bytes are moved.

For two orders this is a minimum cut, and exact. For more, one order after the other is offered to
all operators at once, each offer a minimum cut, until no offer makes it better.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Final

from tiered.layout.cost import Cost
from tiered.layout.equivalence import Operator, Wire
from tiered.layout.expansion_cut import Cut
from tiered.layout.expansion_moves import Offer
from tiered.layout.region import REFUSAL, Region, State

LARGE: Final = 1000
"""From so many operators on, one starting point must do."""

EFFORT: Final = 4_000
"""Operators times offers: with fewer operators, more is tried."""

_FEW: Final = 1 << 24
"""More Transposes than a region has: one byte weighs more than all of them."""

Known = dict[Hashable, tuple[int, ...]]
"""The states of regions that were placed before: models repeat their layers."""

Weigh = Callable[[Cost], int]


def place(region: Region, known: Known) -> dict[Operator, int]:
    """Return the state of each operator; all 0 where nothing is better than what is there.

    Args:
        region: the operators that are placed together.
        known: what is known of equal regions, to which this one is added.
    """
    likeness = region.likeness()
    if likeness not in known:
        state = _placed(region)
        known[likeness] = tuple([state[operator] for operator in region.operators])
    return dict(zip(region.operators, known[likeness], strict=True))


def _placed(region: Region) -> dict[Operator, int]:
    here = dict.fromkeys(region.operators, 0)
    now = region.cost(here)
    if now == Cost(0, 0):
        return here
    for weigh in (_by_bytes, _by_count):
        best = _search(region, here, weigh)
        cost = region.cost(best)
        # What the user wants may need more of them.
        fewer = cost.transposes <= now.transposes or now.nbytes >= REFUSAL
        if cost.nbytes <= now.nbytes and fewer:
            return here if cost == now else best
    return here


def _by_bytes(cost: Cost) -> int:
    return cost.nbytes * _FEW + cost.transposes


def _by_count(cost: Cost) -> int:
    return cost.nbytes + cost.transposes * (1 << 90)


def _search(region: Region, here: dict[Operator, int], weigh: Weigh) -> dict[Operator, int]:
    if _is_either_or(region):
        first, second = region.offers
        return _offer(region, first, second, weigh) or dict(first)
    offers: list[Offer] = [*region.offers, here]
    starts = [here, *({**here, **offer} for offer in region.offers)]
    if len(region.operators) > LARGE:
        starts = [min(starts, key=lambda start: weigh(region.cost(start)))]
    effort = max(2, EFFORT // len(region.operators))
    best = here
    for start in starts:
        state, refused, offered = start, 0, 0
        while refused < len(offers) and effort:
            effort -= 1
            better = _offer(region, state, offers[offered % len(offers)], weigh)
            offered += 1
            refused = refused + 1 if better is None else 0
            state = state if better is None else better
        best = min(best, state, key=lambda each: weigh(region.cost(each)))
    return best


def _is_either_or(region: Region) -> bool:
    """Tell whether each operator has the order of either of two offers, so that one cut decides."""
    if len(region.offers) != 2:
        return False
    return all(
        all(operator in offer for offer in region.offers)
        and {offer[operator] for offer in region.offers}.issuperset(operator.open)
        for operator in region.operators
    )


def _offer(region: Region, state: State, offer: Offer, weigh: Weigh) -> dict[Operator, int] | None:
    """Return the best placement in which each operator keeps its state or takes the one offered.

    None where that is no better than what it is.
    """
    targets = {operator: target for operator, target in offer.items() if target != state[operator]}
    wires = _wires(region, targets)
    if not wires:
        return None
    cut = Cut(state, targets)
    for wire in wires:
        strand = region.strands[wire]
        cut.add(strand, strand.moving, strand.nbytes * weigh(Cost(1, 0)))
        cut.add(strand, tuple, weigh(Cost(0, 1)))
    for operator in region.wanted:
        cut.add_wish(operator, weigh(Cost(REFUSAL, 0)))
    changes = {operator: targets[operator] for operator in cut.taking()}
    if not changes:
        return None
    taken, reached = {**state, **changes}, _wires(region, changes)
    better = weigh(region.cost(taken, reached)) < weigh(region.cost(state, reached))
    return taken if better else None


def _wires(region: Region, targets: Mapping[Operator, int]) -> list[Wire]:
    """Return the wires of a region that some operators have."""
    wires = dict.fromkeys(port.wire for operator in targets for port in operator.ports)
    return [wire for wire in wires if wire in region.strands]
