"""Large models: time and peak memory of tiered, of a plain copy, and of the peers that are asked.

    python -m benchmarks.large                     # 32 layers, 4.4 GB of weights beside the model
    python -m benchmarks.large --shape embedded    # 7 layers, 1 GB of weights in the model
    python -m benchmarks.large --shape deep        # 100 and 200 layers, next to no weights
    python -m benchmarks.large --shape trees       # 2000 trees: attributes of millions of numbers
    python -m benchmarks.large --peers onnxsim,onnxslim --python /where/the/peers/are/bin/python

Every tool is a process of its own, from file to file, with a bound on its memory and its time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cyclopts
import onnx

from benchmarks.llama import make_model
from benchmarks.trees import make_trees

LAYERS = {"external": (32,), "embedded": (7,), "deep": (100, 200), "trees": (2000,)}
COMMANDS = {
    "tiered": ["-m", "tiered", "optimize", "-O3", "-q", "{source}", "{target}"],
    "onnxsim": ["-m", "onnxsim", "{source}", "{target}", "--save-as-external-data"],
    "onnxslim": ["-m", "onnxslim", "{source}", "{target}", "--save-as-external-data"],
    "onnxscript": ["-c", "from onnxscript.optimizer import optimize as run; {through}"],
    "rewriter": ["-c", "from onnxscript.rewriter import rewrite as run; {through}"],
    "onnxoptimizer": ["-c", "from onnxoptimizer import optimize as run; {through}"],
}
THROUGH = (
    "import onnx; onnx.save(run(onnx.load({source!r})), {target!r}, save_as_external_data=True)"
)
LIMITED = """import os, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[1]),) * 2)
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.execv(sys.argv[2], sys.argv[2:])"""
"""Runs a program that cannot take more memory than it is given."""


@dataclass(frozen=True)
class Measured:
    """What a process took: `failed` says how it ended, if not well."""

    seconds: float
    processor: float
    """Seconds of processor time: what is left of the other where the machine has more to do."""
    peak: int
    """Bytes of memory that were resident at most, mapped files too."""
    own: int
    """Bytes of those that were its own, and not a file's."""
    failed: str = ""

    def __str__(self) -> str:
        return (
            f"{self.seconds:8.1f} s {self.processor:8.1f} s of processor "
            f"{self.peak / 1e6:8,.0f} MB resident {self.own / 1e6:8,.0f} MB its own  {self.failed}"
        )


def measured(command: Sequence[str], *, memory: int, seconds: float) -> Measured:
    """Run a process and look how much memory it takes, a hundred times a second."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", LIMITED, str(memory), *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    peak, own, failed = 0, 0, ""
    while True:
        ended, status, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            break
        # Not by `usage`, in which what this process holds counts too.
        known = _memory(process.pid)
        if known is not None:
            peak, own = known[0], max(own, known[1])
        if not failed and time.perf_counter() - began > seconds:
            failed = f"more than {seconds:.0f} s"
            process.kill()
        time.sleep(0.01)
    took = time.perf_counter() - began
    process.returncode = code = os.waitstatus_to_exitcode(status)
    if code and not failed:
        failed = f"exit code {code}" if code > 0 else f"signal {-code}"
    return Measured(took, usage.ru_utime + usage.ru_stime, peak, own, failed)


def _memory(pid: int) -> tuple[int, int] | None:
    """Return how much was resident at most, and how much of it is no file's now; Linux tells."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    sizes = {line.split(":")[0]: line.split()[1] for line in text.splitlines() if " kB" in line}
    if "RssAnon" not in sizes:  # it has ended
        return None
    return int(sizes["VmHWM"]) * 1024, int(sizes["RssAnon"]) * 1024


def main(
    *,
    shape: Literal["external", "embedded", "deep", "trees"] = "external",
    folder: Path = Path("build/large"),
    layers: int = 0,
    peers: str = "",
    python: Path = Path(sys.executable),
    memory: float = 14.0,
    seconds: float = 240.0,
    keep: bool = False,
) -> None:
    """Make large models, and measure what each tool takes for them.

    Args:
        shape: what is large about them: weights in a file of their own or in the model, depth,
            or attributes.
        folder: where they go; room for three copies is needed.
        layers: another number of layers, or of trees, than the usual one.
        peers: the tools to measure beside tiered, separated by commas: onnxsim, onnxslim,
            onnxscript, rewriter, onnxoptimizer.
        python: the Python that has the peers.
        memory: GB of address space that a tool may have.
        seconds: how long a tool may take.
        keep: leave the files there.
    """
    for count in (layers,) if layers else LAYERS[shape]:
        folder.mkdir(parents=True, exist_ok=True)
        source, target = folder / "llama.onnx", folder / "out" / "llama.onnx"
        if shape == "trees":
            make_trees(source, count)
        else:
            external, deep = shape == "external", shape == "deep"
            make_model(source, layers=count, is_external=external, is_deep=deep)
        _print_size(source, count)
        target.parent.mkdir(exist_ok=True)
        print(f"{'copy':14} {_copied(folder, target.parent)}", flush=True)
        for name in ("tiered", *filter(None, peers.split(","))):
            shutil.rmtree(target.parent)
            target.parent.mkdir()
            command = _command(name, str(source), str(target))
            program = sys.executable if name == "tiered" else str(python)
            took = measured([program, *command], memory=int(memory * 1e9), seconds=seconds)
            print(f"{name:14} {took}", flush=True)
        if not keep:
            shutil.rmtree(folder)


def _command(name: str, source: str, target: str) -> list[str]:
    through = THROUGH.format(source=source, target=target)
    return [text.format(source=source, target=target, through=through) for text in COMMANDS[name]]


def _print_size(source: Path, layers: int) -> None:
    operators = [node.op_type for node in onnx.load(source, load_external_data=False).graph.node]
    total = sum(entry.stat().st_size for entry in source.parent.iterdir() if entry.is_file())
    others = len(operators) - operators.count("Constant")
    print(
        f"{layers} layers, {len(operators):,} nodes ({others:,} without Constant), "
        f"{total / 1e9:.2f} GB"
    )


def _copied(source: Path, target: Path) -> str:
    """Copy the files of a folder; return how long that took."""
    began, processor = time.perf_counter(), time.process_time()
    for entry in source.iterdir():
        if entry.is_file():
            shutil.copyfile(entry, target / entry.name)
    took, processor = time.perf_counter() - began, time.process_time() - processor
    return f"{took:8.1f} s {processor:8.1f} s of processor"


if __name__ == "__main__":
    # A child that this process starts must not count what this process holds.
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    cyclopts.run(main)
