"""The order of passes by constraints: one pass before another."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tiered.passes import Pass
from tiered.passes.interface.registry import registry
from tiered.pipeline.pipeline_base import names_in
from tiered.support.errors import UsageError

Constraint = tuple[str, str]
"""Two names of passes: if both are there, the first comes before the second."""


def ordered(passes: Sequence[Pass], constraints: Iterable[Constraint]) -> tuple[Pass, ...]:
    """Return passes in an order that meets the constraints, otherwise in the given order.

    A group is ordered by all of its members; the order within it stays.

    Raises:
        PassNotFoundError: a constraint names a pass that is neither here nor registered.
        UsageError: the constraints contradict each other.
    """
    pairs = [_checked(pair) for pair in constraints]
    if not pairs:
        return tuple(passes)
    import networkx as nx

    held = [set(names_in(pass_)) for pass_ in passes]
    order = nx.DiGraph()
    order.add_nodes_from(range(len(passes)))
    for pair in pairs:
        before, after = (_places(name, held) for name in pair)
        order.add_edges_from((one, other) for one in before for other in after if one != other)
    try:
        places = list(nx.lexicographical_topological_sort(order))
    except nx.NetworkXUnfeasible:
        cycle = [passes[edge[0]].name for edge in nx.find_cycle(order)]
        text = " before ".join((*cycle, cycle[0]))
        raise UsageError(f"no order of the passes meets the constraints: {text}") from None
    return tuple(passes[place] for place in places)


def _checked(pair: Sequence[str]) -> Constraint:
    if isinstance(pair, str) or len(pair) != 2:
        raise UsageError(f"a constraint is two names, (first, second), not {pair!r}")
    return pair[0], pair[1]


def _places(name: str, held: Sequence[set[str]]) -> list[int]:
    known = any(name in names for names in held)
    wanted = {name} if known else set(registry.resolve(name))
    return [place for place, names in enumerate(held) if not names.isdisjoint(wanted)]
