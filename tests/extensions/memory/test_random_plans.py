"""What orders, copies and cuts of random graphs come to, as `random_plans.txt` has it."""

import random
from typing import Any

import pytest

from tests.extensions.memory.graphs import drawn_graph, stretch
from tests.recorded import assert_values
from tiered import Model
from tiered.extensions.memory import memory_plan, node_orders, recomputation, schedule_model
from tiered.extensions.memory.checkpoints import Extent, best_cuts
from tiered.extensions.memory.order_search import backward_order, best_order, forward_order
from tiered.extensions.memory.recomputation import recompute_values


def names(model: Model) -> str:
    return " ".join(node.output.name for node in model.main.topological_order())


def scheduled(seed: int, nodes: int, **limits: int) -> None:
    """Print the peaks before and after, and the order."""
    model = drawn_graph(seed, nodes)
    before = memory_plan(model).peak
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(node_orders, name, limit)
        changed = schedule_model(model)
    print(f"{before} -> {memory_plan(model).peak}: {names(model) if changed else 'same'}")


def by_depth(seed: int, nodes: int) -> None:
    model = drawn_graph(seed, nodes)
    schedule_model(model, by_depth=True)
    print(names(model))


def searched(seed: int, nodes: int, floor: int, limit: int) -> None:
    """Print what a search finds, and the orders that are chosen greedily."""
    whole = stretch(drawn_graph(seed, nodes))
    found = best_order(whole, floor=floor, limit=limit)
    print(found.order, found.is_decided, found.tried)
    print(forward_order(whole))
    print(backward_order(whole))


def recomputed(seed: int, nodes: int, **limits: int) -> None:
    """Print the peaks before and after, the copies, and why others stay."""
    model = drawn_graph(seed, nodes)
    before, order = memory_plan(model).peak, names(model)
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(recomputation, name, limit)
        done = recompute_values(model)
    after = names(model)
    print(f"{before} -> {memory_plan(model).peak}: {'same' if after == order else after}")
    for node, reason in done.kept:
        print(f"{node.output.name}: {reason}")


def planned(seed: int, nodes: int, **options: Any) -> None:
    """Print the bytes at each node, and the first and last place of each tensor."""
    plan = memory_plan(drawn_graph(seed, nodes), **options)
    print(" ".join(f"{step.node}:{step.nbytes}" for step in plan.steps))
    print(" ".join(f"{each.name}:{each.first}-{each.last}" for each in plan.lifetimes))


def cuts(seed: int, count: int) -> None:
    """Print where a forward pass of random tensors is cut."""
    draw = random.Random(seed)
    extents = [
        Extent(draw.choice((1, 4, 16)), at, min(count - 1, at + draw.choice((1, 1, 2, 9))),
               draw.random() < 0.7)
        for at in range(count) for _ in range(draw.choice((0, 1, 2)))
    ]  # fmt: skip
    print(best_cuts(extents, count))


def test_plans_are_as_they_are_written_down() -> None:
    shown: dict[str, Any] = {
        each.__name__: each for each in (planned, scheduled, by_depth, searched, recomputed, cuts)
    }
    assert_values(__file__, shown)
