"""Time and gain of `schedule`: `python -m benchmarks.schedule [MODEL ...]`.

Without a model: seconds by node for graphs of 1,000 to 20,000 nodes, of blocks with branches and of
branches alone. With models, in fixed shapes: the peak of memory before, after `-O3`, and after
`schedule` too, and whether its outputs have the same bits.
"""

import argparse
import math
import time
from pathlib import Path

import onnx

import tiered
from tests.conformance.inputs import feeds_for
from tiered.extensions.memory import memory_plan, schedule_model
from tiered.runtime.session import Session
from tiered.testing import parse

SIZES = (1_000, 5_000, 20_000)


def blocks(nodes: int) -> onnx.ModelProto:
    """Return a stack of blocks, each with four branches that grow, shrink and meet."""
    lines, last = [], "x"
    for at in range(nodes // 10):
        names = [f"{at}_{branch}" for branch in range(4)]
        lines += [f"a{name} = Concat<axis=0>({last}, {last})" for name in names]
        lines += [f"b{name} = ReduceMean(a{name}, zero)" for name in names]
        lines += [f"c{at} = Sum({', '.join(f'b{name}' for name in names)}, {last})"]
        lines += [f"d{at} = Softmax(c{at})"]
        last = f"d{at}"
    return parse(
        f"(float[1] x) => (float[1] {last}) <int64[1] zero = {{0}}> {{ {' '.join(lines)} }}"
    )


def branches(nodes: int) -> onnx.ModelProto:
    """Return branches from one input to one sum, all first nodes first."""
    count = nodes // 2
    lines = [f"a{at} = Concat<axis=0>(x, x)" for at in range(count)]
    lines += [f"b{at} = ReduceMean(a{at}, zero)" for at in range(count)]
    named = ", ".join(f"b{at}" for at in range(count))
    return parse(
        f"(float[4] x) => (float[1] y) <int64[1] zero = {{0}}> {{ {' '.join(lines)} "
        f"y = Sum({named}) }}"
    )


def report(name: str, proto: onnx.ModelProto) -> None:
    model = tiered.Model.from_proto(proto)
    before = memory_plan(model).peak
    start = time.process_time()
    memory_plan(model)
    planned = time.process_time() - start
    start = time.process_time()
    schedule_model(model)
    taken = time.process_time() - start
    after = memory_plan(model).peak
    count = len(model.main)
    print(
        f"{name:10} {count:6} nodes: plan {planned:.2f} s, schedule {taken:.2f} s, "
        f"{taken / count * 1e6:.0f} us a node, peak {before} -> {after}"
    )


def peaks(path: Path, folder: Path | None) -> tuple[float, float]:
    """Print the peaks of a model with fixed shapes; return those after -O3 and `schedule` too.

    Args:
        path: the model; the shapes of its inputs are in the `.json` beside it.
        folder: where to write the model with fixed shapes, for other tools; None for nowhere.
    """
    given = onnx.load(path)
    feeds = feeds_for(path, given, Session(given), binding=0)
    shapes = {name: list(array.shape) for name, array in feeds.items()}
    fixed = tiered.optimize(given, opt_level=0, passes="infer_shapes", input_shapes=shapes)
    if folder is not None:
        onnx.save(fixed, folder / path.name)
    better = tiered.optimize(fixed, opt_level=3)
    source, model = tiered.Model.from_proto(fixed), tiered.Model.from_proto(better)
    before, level3 = memory_plan(source).peak, memory_plan(model).peak
    start = time.process_time()
    schedule_model(model)
    taken = time.process_time() - start
    after = memory_plan(model).peak
    expected, found = Session(better).run(feeds), Session(model.to_proto()).run(feeds)
    is_same = all(found[name].tobytes() == expected[name].tobytes() for name in expected)
    said = "same bits" if is_same else "DIFFERENT"
    print(f"{path.name:28} {before:12} {level3:12} {after:12} {taken:6.2f} s  {said}", flush=True)
    return level3 / before, after / before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--write", type=Path, help="a folder for the models with fixed shapes")
    found = parser.parse_args()
    if not found.models:
        for make in (blocks, branches):
            for nodes in SIZES:
                report(make.__name__, make(nodes))
        return
    ratios = [peaks(path, found.write) for path in found.models]
    for name, each in zip(("-O3", "-O3 and schedule"), zip(*ratios, strict=True), strict=True):
        mean = math.exp(sum(map(math.log, each)) / len(each))
        print(f"geometric mean of the peak after {name}: {mean:.3f}")


if __name__ == "__main__":
    main()
