"""What the turn of a pass costs that has nothing to do: `python -m benchmarks.idle`.

The default pipeline runs on a model of one Relu: nearly all of its turns are skipped or idle, as
half of them are in models of any size. Those passes that run at each call, as the last check, are
not counted among the turns, nor is their time. `--check` makes more than `LIMIT` an error.
"""

import argparse
import statistics
import sys
import time

from onnx import helper

import tiered
from tiered import Model, PassContext
from tiered.passes.execution import execute
from tiered.passes.interface.pass_info import Place

LIMIT = 5.0
"""Microseconds of a turn."""


def small() -> Model:
    """Return a model without work for any pass."""
    x, y = (helper.make_tensor_value_info(name, 1, [2]) for name in "xy")
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "small", [x], [y])
    opsets = [helper.make_opsetid("", 17)]
    return Model.from_proto(helper.make_model(graph, opset_imports=opsets, ir_version=8))


def microseconds_per_turn(calls: int, level: int = 3) -> float:
    """Return the median over calls of the time of a turn that edits nothing."""
    model, pipeline = small(), tiered.default_pipeline()
    names = {leaf.name for leaf in pipeline.leaves()}
    taken = []
    for number in range(calls + 3):  # The first calls load code and decide.
        context = PassContext(opt_level=level)
        start = time.perf_counter()
        execute(pipeline, model, context, Place())
        seconds = time.perf_counter() - start
        leaves = [result for result in context.report.results if result.name in names]
        # An idle turn takes a few microseconds; one of a pass that looked takes longer.
        looked = [result.seconds for result in leaves if result.seconds > 2 * LIMIT * 1e-6]
        if number >= 3:
            taken.append((seconds - sum(looked)) / (len(leaves) - len(looked)))
    return statistics.median(taken) * 1e6


def main(calls: int = 300, level: int = 3) -> float:
    """Print and return the microseconds of a turn."""
    found = microseconds_per_turn(calls, level)
    print(f"{found:.2f} µs a turn without work (limit {LIMIT:.0f})")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--calls", type=int, default=300)
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--check", action="store_true")
    given = parser.parse_args()
    if main(given.calls, given.level) > LIMIT and given.check:
        sys.exit(f"a turn without work takes more than {LIMIT:.0f} µs")
