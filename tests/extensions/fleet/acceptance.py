"""Acceptance of batches: `make fleet`.

A fleet of models (see `fleet_models`) is optimised by single runs of `tiered optimize`, and by
`tiered batch`. The single runs are in one process, one after the other; some of them also in a
process of their own, with the same results. Then

1. all results are equal byte for byte, and what fails in one fails in the other;
2. a batch that is killed at random moments and resumed loses nothing and does nothing twice;
3. the processes never hold more memory than --max-memory allows.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from benchmarks.fleet import one_process
from tests.extensions.fleet.fleet_models import make_fleet
from tiered.extensions.fleet import read_manifest
from tiered.extensions.fleet.manifest import NAME
from tiered.extensions.fleet.process import held_by_tree
from tiered.extensions.fleet.tasks import SCRATCH

TIERED = (sys.executable, "-m", "tiered")
OPTIONS = ("-O3",)


def single_runs(models: Path, out: Path, own: int) -> dict[str, bytes | None]:
    """Return the result of a single run of each model, None for those that fail.

    Args:
        models: the folder of the models.
        out: a folder for results.
        own: how many of them also run in a process of their own.
    """
    names = [path.relative_to(models).as_posix() for path in sorted(models.rglob("*.onnx"))]
    start = cpu_seconds()
    subprocess.run(one_process(models, out), input=json.dumps(names).encode(), check=True)
    print(f"one process: {cpu_seconds() - start:.1f} s of processor time", flush=True)
    found = {name: _content(out / name) for name in names}
    for name in random.Random(1).sample(names, own):
        target = out / "own.onnx"
        command = [*TIERED, "optimize", str(models / name), str(target), *OPTIONS, "-q"]
        subprocess.run(command, capture_output=True, check=False, timeout=600)
        assert _content(target) == found[name], f"{name} depends on the runs before it"
        target.unlink(missing_ok=True)
    return found


def _content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


def cpu_seconds() -> float:
    """Return the processor time of all processes below this one that have ended."""
    times = os.times()
    return times.children_user + times.children_system


def batch_command(models: Path, out: Path, *more: str) -> list[str]:
    """Return the command line of a batch."""
    return [*TIERED, "batch", str(models), "--out-dir", str(out), *OPTIONS, "-q", *more]


def check_results(expected: dict[str, bytes | None], out: Path) -> None:
    """Check that the folder holds the expected results and a manifest that says so."""
    different = []
    for name, content in expected.items():
        path = out / name
        if _content(path) != content:
            different.append(name)
    assert not different, f"{len(different)} results differ: {different[:5]}"
    lines = Counter(line.target for line in read_manifest(str(out / NAME)) if line.ok)
    assert set(lines) == {str(out / name) for name, content in expected.items() if content}
    assert set(lines.values()) <= {1}, "a model was done twice"
    assert not (out / SCRATCH).exists(), "unfinished files are left"


def kill_and_resume(models: Path, out: Path, kills: int, seconds: float, seed: int = 0) -> int:
    """Kill a batch at random moments, resume it, and let the last one end; return the kills."""
    rng, killed = random.Random(seed), 0
    for _ in range(kills):
        command = batch_command(models, out, "--resume")
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            process.wait(rng.uniform(0.5, seconds))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
    subprocess.run(batch_command(models, out, "--resume"), stdout=subprocess.DEVNULL, check=False)
    return killed


def most_held(command: list[str]) -> tuple[int, int]:
    """Run a command; return its exit code and the most bytes that its processes held."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    most, done = [0], threading.Event()

    def look() -> None:
        while not done.wait(0.02):
            most[0] = max(most[0], held_by_tree(process.pid))

    watcher = threading.Thread(target=look)
    watcher.start()
    code = process.wait()
    done.set()
    watcher.join()
    return code, most[0]


def main() -> None:
    """Run all checks and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, default=Path("examples/models"))
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--own", type=int, default=30, help="single runs in own processes")
    parser.add_argument("--max-memory", type=int, default=400, help="in MiB")
    given = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="tiered-fleet-"))
    try:
        models = work / "models"
        print(f"{len(make_fleet(models, given.models, given.count))} models", flush=True)
        expected = single_runs(models, work / "single", given.own)
        failed = sum(content is None for content in expected.values())
        print(f"single runs: {len(expected) - failed} results, {failed} fail", flush=True)
        start, used = time.perf_counter(), cpu_seconds()
        limit = f"--max-memory={given.max_memory}MiB"
        _, most = most_held(batch_command(models, work / "batch", limit))
        seconds = time.perf_counter() - start
        check_results(expected, work / "batch")
        used = cpu_seconds() - used
        print(f"batch: all results equal those of single runs; {seconds:.0f} s,", flush=True)
        print(f"  {used:.1f} s of processor time", flush=True)
        print(f"memory: at most {most / 2**20:.0f} MiB of {given.max_memory} MiB", flush=True)
        assert most <= given.max_memory << 20, "more memory than the limit"
        killed = kill_and_resume(models, work / "killed", given.kills, 2 * seconds / given.kills)
        check_results(expected, work / "killed")
        print(f"killed {killed} times and resumed: nothing lost, nothing twice", flush=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
