"""Orders of nodes: of a low peak of memory, or by depth.

A node that is ordered with all others has one place in every order; the stretches between such
nodes do not influence each other. Each stretch that reaches the peak is searched
(`order_search.py`); one that is too long for that gets the best of several orders, which searches
of windows around its peak then improve.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import Final

from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.memory.liveness import Planner
from tiered.extensions.memory.order_problem import Stretch, stretch_of
from tiered.extensions.memory.order_search import backward_order, best_order, forward_order
from tiered.graph import Graph, Model, Node

SMALL: Final = 14
"""The nodes of a stretch that is searched to the end, within the budget of its graph."""

TRIED: Final = SMALL << SMALL - 1
"""How many nodes a search of a small stretch tries as the next one, at most."""

TRIED_LARGE: Final = 20_000
"""The same for a longer stretch, after which other orders are tried."""

TRIED_A_NODE: Final = 20
"""How many more the searches of a graph try together, by node."""

WINDOW: Final = 24
"""The nodes of a window around a peak."""

_DEFAULT: Final = LayoutSizes()


def schedule_model(model: Model, *, sizes: LayoutSizes = _DEFAULT, by_depth: bool = False) -> int:
    """Set the order of the nodes of the main graph and of all bodies; return how many changed.

    Inner graphs come first, as their peaks count at their nodes. A graph that gains nothing keeps
    its order.
    """
    changed = 0
    planner = Planner(sizes, views=True, in_place=True)
    for graph in sorted(model.graphs(), key=lambda graph: -graph.depth):
        if graph.root.is_function:
            continue
        order = depth_order(graph) if by_depth else low_peak_order(graph, planner)
        if order is not None:
            graph.order_nodes(order)
            changed += 1
    return changed


def depth_order(graph: Graph) -> list[Node] | None:
    """Return the nodes by the length of the longest path to them; None if that is their order."""
    order = graph.topological_order()
    stretch = stretch_of(graph, order, Planner(LayoutSizes(), views=True, in_place=True))
    depths: list[int] = []
    for step in stretch.steps:
        depths.append(max((depths[each] + 1 for each in step.before), default=0))
    sorted_nodes = [order[at] for at in sorted(range(len(order)), key=depths.__getitem__)]
    return None if sorted_nodes == list(order) else sorted_nodes


def low_peak_order(graph: Graph, planner: Planner) -> list[Node] | None:
    """Return an order of a lower peak than that of the present one; None if none was found."""
    whole = graph.topological_order()
    nodes = [node for node in whole if not node.is_op("Constant")]
    stretch = stretch_of(graph, nodes, planner)
    order = list(range(len(nodes)))
    while (found := _improved(stretch)) is not None:
        order = [order[at] for at in found]
        stretch = stretch.permuted(found)
    if order == list(range(len(nodes))):
        return None
    return _with_constants(whole, [nodes[at] for at in order])


def _with_constants(whole: Sequence[Node], order: Sequence[Node]) -> list[Node]:
    """Return an order with each Constant directly before its first consumer."""
    placed: dict[Node, None] = {}
    for node in order:
        for value in node.reads:
            producer = value.producer if value.graph is node.graph else None
            if producer is not None and producer.is_op("Constant"):
                placed.setdefault(producer)
        placed[node] = None
    for node in whole:
        placed.setdefault(node)
    return list(placed)


def _improved(stretch: Stretch) -> list[int] | None:
    """Return an order of a lower peak; None if no stretch between cuts that reaches it gains."""
    run = list(stretch.run(range(len(stretch))))
    parts = sorted(
        (-max(at for _, at in run[low:high]), low, high) for low, high in _parts(stretch)
    )
    order, floor = list(range(len(stretch))), 0
    budget = TRIED + TRIED_A_NODE * len(stretch)
    for negative, low, high in parts:
        if -negative <= floor:
            break
        part = stretch.window(low, high, run[low][0])
        found, tried = _improved_part(part, floor, budget)
        budget -= tried
        if found is None:
            floor = max(floor, -negative)
            continue
        floor = max(floor, part.peak(found))
        order[low:high] = [low + at for at in found]
    return order if stretch.peak(order) < stretch.peak(range(len(stretch))) else None


def _parts(stretch: Stretch) -> Iterator[tuple[int, int]]:
    """Yield the stretches between the nodes that have one place in every order, and these nodes.

    Each node before such a node has a consumer up to it, and each node after it a producer from it
    on: so all of them are ordered with it.
    """
    count = len(stretch)
    first = [min(step.after, default=count) for step in stretch.steps]
    last = [max(step.before, default=-1) for step in stretch.steps]
    furthest = [-1, *accumulate(first, max)]
    nearest = [*accumulate(reversed(last), min)][::-1]
    low = 0
    for at in range(count):
        if furthest[at] <= at and (at + 1 == count or nearest[at + 1] >= at):
            if low < at:
                yield low, at
            yield at, at + 1
            low = at + 1
    if low < count:
        yield low, count


def _improved_part(part: Stretch, floor: int, limit: int) -> tuple[list[int] | None, int]:
    """Return an order of a lower peak or None, and how many nodes were tried as the next one."""
    if len(part) == 1:
        return None, 0
    limit = min(limit, TRIED if len(part) <= SMALL else TRIED_LARGE)
    found = best_order(part, floor=floor, limit=limit)
    if found.is_decided:
        return found.order, found.tried
    same = list(range(len(part)))
    order = min((same, forward_order(part), backward_order(part)), key=part.peak)
    order, tried = _by_windows(part, order, floor, limit)
    return (order if part.peak(order) < part.peak(same) else None), found.tried + tried


def _by_windows(part: Stretch, order: list[int], floor: int, limit: int) -> tuple[list[int], int]:
    """Search windows at the peak until one does not gain; return the order, and what was tried."""
    tried = 0
    while True:
        there = part.permuted(order)
        run = list(there.run(range(len(there))))
        peak = max(at for _, at in run)
        better, high = list(order), 0
        for at, (_, nbytes) in enumerate(run):
            if nbytes < peak or at < high:
                continue
            low, high = max(high, at - WINDOW * 2 // 3), min(len(run), at + WINDOW // 3)
            window = there.window(low, high, run[low][0])
            found = best_order(window, floor=floor, limit=limit - tried)
            tried += found.tried
            if found.order is None:
                return order, tried
            better[low:high] = [order[low + each] for each in found.order]
        order = better
