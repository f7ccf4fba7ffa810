"""Throughput of a batch beside one process: `python -m benchmarks.fleet --models DIR`.

`--small N` takes N models of 54 nodes instead, of which one differs from the next in a weight.

Three ways to optimise the same models, each `--runs` times in turn: one process that optimises one
after the other, `tiered batch --jobs 1`, and `tiered batch --jobs N`. Of each the time of the clock
and the processor time of all its processes; the best run counts. On a machine that does nothing
else the clock says how much faster a batch is. On a busy one the processor time does: N processors
take at least its N-th part.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx

from benchmarks.growth import stacked
from tests.extensions.fleet.fleet_models import make_fleet

SMALL = 54
OPTIONS = ("-O3", "-q")
ONE = """
import contextlib, io, json, os, sys
from tiered.cli import main
models, out = sys.argv[1:3]
for name in json.loads(sys.stdin.read()):
    target = os.path.join(out, name)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with contextlib.redirect_stderr(io.StringIO()):
        main(["optimize", os.path.join(models, name), target, *sys.argv[3:]])
"""


@dataclass(frozen=True)
class Taken:
    """The seconds of a run: of the clock, and of the processors."""

    wall: float
    cpu: float


def measured(command: Sequence[str], given: bytes = b"") -> Taken:
    """Run a command with all processes below it, and return the time that they took."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(command, input=given, capture_output=True, check=False)
    wall, after = time.perf_counter() - start, os.times()
    used = (after.children_user, after.children_system)
    return Taken(wall, sum(used) - before.children_user - before.children_system)


def make_small(folder: Path, count: int) -> int:
    """Write so many small models, and return their number."""
    model = stacked(SMALL)
    for number in range(count):
        model.graph.initializer[0].raw_data = np.full((4, 4), number + 1, np.float32).tobytes()
        onnx.save(model, folder / f"{number}.onnx")
    return count


def one_process(models: Path, out: Path) -> list[str]:
    """Return a command that optimises the models whose names it reads as JSON, one by one."""
    return [sys.executable, "-c", ONE, str(models), str(out), *OPTIONS]


def measure(models: Path, jobs: int, runs: int) -> dict[str, Taken]:
    """Return the best run of each way."""
    found: dict[str, list[Taken]] = {}
    names = [path.relative_to(models).as_posix() for path in sorted(models.rglob("*.onnx"))]
    for _ in range(runs):
        with tempfile.TemporaryDirectory(prefix="tiered-fleet-") as folder:
            one = one_process(models, Path(folder, "one"))
            batch = [sys.executable, "-m", "tiered", "batch", str(models), *OPTIONS]
            ways = {
                "one process": (one, json.dumps(names).encode()),
                "batch --jobs 1": ([*batch, "--jobs=1", f"--out-dir={folder}/1"], b""),
                f"batch --jobs {jobs}": ([*batch, f"--jobs={jobs}", f"--out-dir={folder}/n"], b""),
            }
            for name, (command, given) in ways.items():
                found.setdefault(name, []).append(measured(command, given))
    return {
        name: Taken(min(each.wall for each in taken), min(each.cpu for each in taken))
        for name, taken in found.items()
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=Path("examples/models"))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--small", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="tiered-fleet-"))
    try:
        if given.small:
            count = make_small(folder, given.small)
        else:
            count = len(make_fleet(folder, given.models, given.count))
        best = measure(folder, given.jobs, given.runs)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    one = best["one process"]
    print(f"{count} models, {given.jobs} jobs, best of {given.runs}")
    for name, taken in best.items():
        shared = taken.cpu / (given.jobs if name.endswith(f" {given.jobs}") else 1)
        print(
            f"{name:<16} {taken.wall:7.1f} s, {taken.cpu:7.1f} s of processors; "
            f"faster {one.wall / taken.wall:.2f} times by the clock, "
            f"at most {one.cpu / shared:.2f} by the processors"
        )


if __name__ == "__main__":
    main()
