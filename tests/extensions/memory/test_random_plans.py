"""What orders, copies and cuts of random graphs come to, as `random_plans.txt` has it."""

import random
from typing import Any

import pytest

from tests.extensions.memory.graphs import stretch
from tests.recorded import assert_values
from tiered import Model
from tiered.extensions.memory import memory_plan, node_orders, recomputation, schedule_model
from tiered.extensions.memory.checkpoints import Extent, best_cuts
from tiered.extensions.memory.order_search import backward_order, best_order, forward_order
from tiered.extensions.memory.recomputation import recompute_values
from tiered.testing import parse


def graph(seed: int, nodes: int) -> Model:
    """Return a graph whose operators keep, grow, shrink or join tensors, and views."""
    draw, sizes, lines = random.Random(seed), {"x": 4}, list[str]()
    for at in range(nodes):
        one = draw.choice(sorted(sizes)[-6:])
        name, size, kind = f"v{at:02}", sizes[one], draw.randrange(6)
        other = draw.choice([each for each in sorted(sizes) if sizes[each] == size])
        if kind == 0:
            lines.append(f"{name} = Add({one}, {other})")
        elif kind == 1 and size < 64:
            lines.append(f"{name} = Concat<axis=0>({one}, {other}, {one})")
            size *= 3
        elif kind == 2:
            lines.append(f"{name} = ReduceMean({one}, zero)")
            size = 1
        elif kind == 3:
            lines.append(f"{name} = Reshape({one}, all)")
        else:
            lines.append(f"{name} = {('Softmax', 'Relu')[kind % 2]}({one})")
        sizes[name] = size
    used = {each for line in lines for each in sizes if f"({each}," in line or f"({each})" in line
            or f", {each})" in line}  # fmt: skip
    outputs = [each for each in sizes if each not in used]
    shown = ", ".join(f"float[{sizes[each]}] {each}" for each in outputs)
    return Model.from_proto(parse(
        f"(float[4] x) => ({shown}) <int64[1] zero = {{0}}, int64[1] all = {{-1}}> "
        f"{{ {' '.join(lines)} }}"
    ))  # fmt: skip


def names(model: Model) -> str:
    return " ".join(node.output.name for node in model.main.topological_order())


def scheduled(seed: int, nodes: int, **limits: int) -> None:
    """Print the peaks before and after, and the order."""
    model = graph(seed, nodes)
    before = memory_plan(model).peak
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(node_orders, name, limit)
        changed = schedule_model(model)
    print(f"{before} -> {memory_plan(model).peak}: {names(model) if changed else 'same'}")


def by_depth(seed: int, nodes: int) -> None:
    model = graph(seed, nodes)
    schedule_model(model, by_depth=True)
    print(names(model))


def searched(seed: int, nodes: int, floor: int, limit: int) -> None:
    """Print what a search finds, and the orders that are chosen greedily."""
    whole = stretch(graph(seed, nodes))
    found = best_order(whole, floor=floor, limit=limit)
    print(found.order, found.is_decided, found.tried)
    print(forward_order(whole))
    print(backward_order(whole))


def recomputed(seed: int, nodes: int, **limits: int) -> None:
    """Print the peaks before and after, the copies, and why others stay."""
    model = graph(seed, nodes)
    before, order = memory_plan(model).peak, names(model)
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(recomputation, name, limit)
        done = recompute_values(model)
    after = names(model)
    print(f"{before} -> {memory_plan(model).peak}: {'same' if after == order else after}")
    for node, reason in done.kept:
        print(f"{node.output.name}: {reason}")


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
        each.__name__: each for each in (scheduled, by_depth, searched, recomputed, cuts)
    }
    assert_values(__file__, shown)
