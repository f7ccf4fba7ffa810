"""What `--certify` costs and proves: processes with it and without it, in turns.

    python -m benchmarks.certify --models examples/models --level 2 --runs 3

For each model the rewrites by how they were proved, and the ratios of processor time and of peak
memory of `tiered optimize`, the smallest of the runs; at the end the medians. The peak is that of
the process.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

import cyclopts


class Run(NamedTuple):
    """One process: its processor time, its peak of memory, and its record."""

    seconds: float
    peak: int
    record: dict[str, Any]


def measured(file: Path, level: int, backend: str | None, *more: str) -> Run:
    """Optimise a file in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        target = str(Path(folder) / "out.onnx")
        command = [sys.executable, "-m", "tiered", "optimize", str(file), target, f"-O{level}"]
        command += [f"--backend={backend}"] if backend else []
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command += ["--json", *more]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    record = json.loads(done.stdout)
    return Run(seconds, record["peak_memory"] or 0, record)


def main(
    models: Path, level: int = 2, runs: int = 3, backend: str | None = None
) -> dict[str, tuple[float, float]]:
    """Print a line for each model; return the ratios of time and memory of each."""
    ratios: dict[str, tuple[float, float]] = {}
    total: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    for file in sorted(models.glob("*.onnx")):
        pairs = [
            (measured(file, level, backend), measured(file, level, backend, "--certify"))
            for _ in range(runs)
        ]
        plain, certified = (min(pair[at].seconds for pair in pairs) for at in (0, 1))
        peaks = [min(pair[at].peak for pair in pairs) for at in (0, 1)]
        found = pairs[0][1].record["certified"]
        total.update(found["counts"])
        reasons.update((each["pass"], each["how"]) for each in found["left"])
        ratios[file.stem] = certified / plain, peaks[1] / max(peaks[0], 1)
        time, memory = ratios[file.stem]
        counts = ", ".join(f"{count:,} {how}" for how, count in found["counts"].items())
        print(f"{file.stem:24}{time:>7.2f}{memory:>7.2f}  {counts}", flush=True)
    medians = [statistics.median(pair[at] for pair in ratios.values()) for at in (0, 1)]
    print(f"{'median':24}{medians[0]:>7.2f}{medians[1]:>7.2f}  {dict(total)}")
    for (name, how), count in reasons.most_common():
        print(f"{count:>6}  {name}: {how}")
    return ratios


if __name__ == "__main__":
    cyclopts.run(main)
