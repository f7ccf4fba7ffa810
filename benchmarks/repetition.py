"""Equal blocks in one model beside as many models of one: `python -m benchmarks.repetition`.

The blocks are those of a Llama as exporters write it, with weights of their own. A figure is the
processor time of so many models of one block, over that of one model of so many blocks: the first
are run before and after the second, and their median counts.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import onnx

import tiered
from benchmarks.llama import little
from tiered import Model, get_pass

SINGLE: Final = 8
"""How often a model of one block is run before each large one, and after it."""

RUNS: Mapping[str, Callable[[onnx.ModelProto], object]] = {
    "O2": lambda model: tiered.optimize(model, opt_level=2),
    "O3": lambda model: tiered.optimize(model, opt_level=3),
    "verify": lambda model: tiered.optimize(model, opt_level=3, verify="final"),
    "certify": lambda model: tiered.optimize(model, opt_level=2, certify="on"),
    "quantize": lambda model: get_pass("quantize").apply(Model.from_proto(model)),
}
"""What is measured: levels 2 and 3, level 3 with `--verify=final` (without the time of the worker
that runs models), level 2 with `--certify`, and `quantize` with generated inputs."""


def seconds(run: Callable[[onnx.ModelProto], object], model: onnx.ModelProto) -> float:
    """Return the processor time of a run."""
    start = time.process_time()
    run(model)
    return time.process_time() - start


def main(blocks: Sequence[int], names: Sequence[str] = ("O2", "O3")) -> dict[str, list[float]]:
    """Print and return by run, for each number of blocks, how many times faster one model is."""
    single, models = little(1), [little(count) for count in blocks]
    found: dict[str, list[float]] = {}
    for name in names:
        run = RUNS[name]
        for _ in range(2):
            run(single)  # loads code and fills caches
        for count, model in zip(blocks, models, strict=True):
            alone = [seconds(run, single) for _ in range(SINGLE)]
            whole = seconds(run, model)
            alone += [seconds(run, single) for _ in range(SINGLE)]
            one = statistics.median(alone)
            found.setdefault(name, []).append(count * one / whole)
            share = (whole - one) / max(1, count - 1) / one
            print(
                f"{name:8} {count:4} blocks: {count * one / whole:.2f} times faster than one by "
                f"one; {one * 1e3:.0f} ms for one, a further one {share:.2f} of that",
                flush=True,
            )
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--blocks", type=int, nargs="+", default=[20, 50, 100])
    parser.add_argument("--runs", nargs="+", choices=RUNS, default=["O2", "O3"])
    given = parser.parse_args()
    main(given.blocks, given.runs)
