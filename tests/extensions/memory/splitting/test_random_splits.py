"""Which regions of random graphs are cut into parts, as `random_splits.txt` has it."""

import random
from typing import Any

import pytest

from tests.recorded import assert_values
from tiered import Model
from tiered.analysis.layout.sizes import LayoutSizes
from tiered.extensions.memory import memory_plan, split_model
from tiered.extensions.memory.splitting import peak_budget, split_region
from tiered.extensions.memory.splitting.split_region import SearchWork, SplitRegion, region_around
from tiered.testing import parse


def drawn(seed: int, nodes: int) -> Model:
    """Return a graph of matrices: operators along an axis or none, products, views."""
    draw, sizes, lines = random.Random(seed), {"x": (8, 4)}, list[str]()
    for at in range(nodes):
        one = draw.choice(sorted(sizes)[-4:])
        name, (rows, columns), kind = f"v{at:02}", sizes[one], draw.randrange(8)
        other = draw.choice([each for each in sorted(sizes) if sizes[each] == sizes[one]])
        if kind == 0:
            lines.append(f"{name} = Add({one}, {other})")
        elif kind == 1:
            lines.append(f"{name} = Softmax<axis={draw.randrange(2)}>({one})")
        elif kind == 2:
            lines.append(f"{name} = Transpose({one})")
            rows, columns = columns, rows
        elif kind == 3 and rows * columns < 500:
            axis = draw.randrange(2)
            lines.append(f"{name} = Concat<axis={axis}>({one}, {other}, {one})")
            rows, columns = (rows * 3, columns) if axis == 0 else (rows, columns * 3)
        elif kind == 4:
            lines.append(f"{name} = ReduceMax({one}, axis{draw.randrange(2)})")
            rows, columns = (1, columns) if "axis0" in lines[-1] else (rows, 1)
        elif kind == 5 and rows * columns < 500:
            lines.append(f"t{at} = Transpose({other})  {name} = MatMul({one}, t{at})")
            columns = rows
        else:
            lines.append(f"{name} = {('Tanh', 'Relu')[kind % 2]}({one})")
        sizes[name] = rows, columns
    last = f"v{nodes - 1:02}"
    return Model.from_proto(parse(
        f"(float[8,4] x) => (float[{sizes[last][0]},{sizes[last][1]}] {last}) "
        f"<int64[1] axis0 = {{0}}, int64[1] axis1 = {{1}}> {{ {' '.join(lines)} }}"
    ))  # fmt: skip


def split(seed: int, nodes: int, share: float, **limits: Any) -> None:
    """Print the peaks before and after, the regions, and why tensors stay whole."""
    model = drawn(seed, nodes)
    before = memory_plan(model).peak
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in limits.items():
            patch.setattr(split_region if name == "MOST_NODES" else peak_budget, name, limit)
        done = split_model(model, int(share * before))
    print(f"{before} -> {done.peak} in {done.regions}: {len(model.main.nodes)} nodes")
    for value, reason in done.kept:
        print(f"{value.name}: {reason}")


def around(seed: int, nodes: int, name: str, axis: int, left: int = 1 << 20) -> None:
    """Print the region around a tensor, what it holds, and the work that is left."""
    work = SearchWork(left)
    value = drawn(seed, nodes).main.values[name]
    found = region_around(value, axis, LayoutSizes(), work)
    if isinstance(found, SplitRegion):
        print(" ".join(f"{each.name}:{at}" for each, at in found.inner.items()))
        print(" ".join(f"{each.output.name}:{cut.axis}" for each, cut in found.nodes.items()))
    else:
        print(found)
    print(left - work.left)


def test_splits_are_as_they_are_written_down() -> None:
    shown: dict[str, Any] = {"split": split, "around": around}
    assert_values(__file__, shown)
