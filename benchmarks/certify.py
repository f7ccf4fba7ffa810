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


class Row(NamedTuple):
    """What a model showed: ratios of time and memory, and rewrites by how they were proved."""

    time: float
    memory: float
    counts: dict[str, int]
    left: dict[str, int]


def row_of(file: Path, level: int, backend: str | None, runs: int) -> Row:
    """Measure one model, with and without `--certify` in turns."""
    pairs = [
        (measured(file, level, backend), measured(file, level, backend, "--certify"))
        for _ in range(runs)
    ]
    plain, certified = (min(pair[at].seconds for pair in pairs) for at in (0, 1))
    peaks = [min(pair[at].peak for pair in pairs) for at in (0, 1)]
    found = pairs[0][1].record["certified"]
    left = Counter(f"{each['pass']}: {each['how']}" for each in found["left"])
    return Row(certified / plain, peaks[1] / max(peaks[0], 1), found["counts"], dict(left))


def main(
    models: Path,
    level: int = 2,
    runs: int = 3,
    backend: str | None = None,
    state: Path | None = None,
) -> dict[str, Row]:
    """Print a line for each model, small files first; return what each showed.

    Args:
        models: a folder of models.
        level: the optimisation level.
        runs: how often each model is optimised with and without `--certify`.
        backend: the target.
        state: a JSON file that keeps each model's row: a run that ended early goes on there.
    """
    known: dict[str, Any] = {}
    if state is not None and state.exists():
        known = json.loads(state.read_text(encoding="utf-8"))
    rows: dict[str, Row] = {}
    for file in sorted(models.glob("*.onnx"), key=lambda each: each.stat().st_size):
        key = f"{file.stem} -O{level} {backend or ''}".rstrip()
        if key not in known:
            known[key] = row_of(file, level, backend, runs)
            if state is not None:
                state.write_text(json.dumps(known, indent=1), encoding="utf-8")
        row = rows[file.stem] = Row(*known[key])
        counts = ", ".join(f"{count:,} {how}" for how, count in row.counts.items())
        print(f"{file.stem:24}{row.time:>7.2f}{row.memory:>7.2f}  {counts}", flush=True)
    time = statistics.median(row.time for row in rows.values())
    memory = statistics.median(row.memory for row in rows.values())
    total, left = Counter[str](), Counter[str]()
    for row in rows.values():
        total.update(row.counts)
        left.update(row.left)
    print(f"{'median':24}{time:>7.2f}{memory:>7.2f}  {dict(total)}")
    for reason, count in left.most_common():
        print(f"{count:>6}  {reason}")
    return rows


if __name__ == "__main__":
    app = cyclopts.App(result_action="return_value")
    app.default(main)
    app()
