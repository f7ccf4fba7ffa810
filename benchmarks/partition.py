"""Whether partitioning takes linear time: `python -m benchmarks.partition`.

Two models: a stack of blocks as an exporter writes them, where a mask that the first block makes is
read by all of them, and a random graph with long edges. A target takes all operators but one.
Processor time to propose partitions, connected and not, and to make functions of them; the fastest
run counts. `--check` makes it an error if twice the nodes take more than `LIMIT` times as long.
"""

import argparse
import itertools
import random
import sys
import time
from collections.abc import Callable, Sequence

import onnx
from onnx import helper

from tiered import Model
from tiered.extensions.partition import OperatorSupport, fuse_partitions, propose_partitions

SIZES = (10_000, 20_000, 40_000)
LIMIT = 3.0
TAKEN = OperatorSupport(dict.fromkeys(["Neg", "Add", "Mul"]))


def stacked(nodes: int) -> onnx.ModelProto:
    """Return a stack of blocks with a refused operator each, which all read one mask."""
    made = [helper.make_node("Neg", ["x"], ["mask"])]
    last = "x"
    for block in range(nodes // 8):
        for at, kind in enumerate(("Neg", "Add", "Mul", "Sin", "Neg", "Add", "Mul", "Add")):
            out = f"v{block}_{at}"
            second = {"Add": "mask", "Mul": f"v{block}_0"}.get(kind)
            made.append(helper.make_node(kind, [last, second] if second else [last], [out], out))
            last = out
    return _model(made, last)


def scattered(nodes: int) -> onnx.ModelProto:
    """Return a random graph: most edges are short, some are from anywhere before."""
    draw = random.Random(0)
    names = ["x"]
    made = []
    for at in range(nodes):
        kind = draw.choices(("Neg", "Add", "Mul", "Sin"), (4, 3, 2, 1))[0]
        recent = names[-12:]
        first = draw.choice(recent)
        second = draw.choice(recent if draw.random() < 0.95 else names)
        reads = [first] if kind in ("Neg", "Sin") else [first, second]
        made.append(helper.make_node(kind, reads, [f"v{at}"], f"v{at}"))
        names.append(f"v{at}")
    return _model(made, names[-1])


def _model(nodes: Sequence[onnx.NodeProto], last: str) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(name, 1, [2]) for name in ("x", last)]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=10)


def seconds(make: Callable[[int], onnx.ModelProto], nodes: int, runs: int) -> list[float]:
    """Return the fastest times to propose connected and other partitions, and to fuse them."""
    proto = make(nodes)
    taken: list[list[float]] = []
    for _ in range(runs):
        model = Model.from_proto(proto)
        times = [time.process_time()]
        propose_partitions(model, TAKEN, skip_horizontal_fusion=True)
        times.append(time.process_time())
        found = propose_partitions(model, TAKEN)
        times.append(time.process_time())
        fuse_partitions(found)
        times.append(time.process_time())
        taken.append([after - before for before, after in itertools.pairwise(times)])
    return [min(column) for column in zip(*taken, strict=True)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    steps = ("connected", "horizontal", "fuse")
    failed = False
    for make in (stacked, scattered):
        before: list[float] | None = None
        for nodes in options.sizes:
            found = seconds(make, nodes, options.runs)
            ratios = [now / past for now, past in zip(found, before or found, strict=True)]
            said = ", ".join(
                f"{step} {time_:.2f} s (x {ratio:.1f})"
                for step, time_, ratio in zip(steps, found, ratios, strict=True)
            )
            print(f"{make.__name__} {nodes:>6}: {said}")
            failed |= before is not None and max(ratios) > LIMIT
            before = found
    return int(failed and options.check)


if __name__ == "__main__":
    sys.exit(main())
