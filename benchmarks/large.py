"""Large models: time and peak memory of tiered, of a plain copy, and of the peers that are asked.

    python -m benchmarks.large                     # 32 layers, 4.4 GB of weights beside the model
    python -m benchmarks.large --shape embedded    # 7 layers, 1 GB of weights in the model
    python -m benchmarks.large --shape deep        # 100 and 200 layers, next to no weights
    python -m benchmarks.large --peers onnxsim,onnxslim --python /where/the/peers/are/bin/python

Every tool is a process of its own, from file to file, with a bound on its memory and its time.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import cyclopts
import onnx

from benchmarks.llama import make_model

LAYERS = {"external": (32,), "embedded": (7,), "deep": (100, 200)}
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
    peak: int
    """Bytes of memory that were resident at most, mapped files too."""
    own: int
    """Bytes of those that were its own, and not a file's."""
    failed: str = ""


def measured(command: Sequence[str], *, memory: int, seconds: float) -> Measured:
    """Run a process and look how much memory it takes, a few hundred times a second."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", LIMITED, str(memory), *command],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    peak = own = 0
    while process.poll() is None:
        for resident, anonymous in _memory(process.pid):
            peak, own = max(peak, resident), max(own, anonymous)
        if time.perf_counter() - began > seconds:
            process.kill()
            process.wait()
            return Measured(seconds, peak, own, f"more than {seconds:.0f} s")
        time.sleep(0.002)
    code = process.returncode
    failed = "" if code == 0 else f"exit code {code}" if code > 0 else f"signal {-code}"
    return Measured(time.perf_counter() - began, peak, own, failed)


def _memory(pid: int) -> Iterator[tuple[int, int]]:
    """Yield what is resident of a process, and what of that is its own; Linux tells."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return
    fields = dict(line.split(":", 1) for line in lines)
    sizes = [fields[name].split()[0] for name in ("VmHWM", "RssAnon") if name in fields]
    if len(sizes) == 2:  # the process has not ended
        peak, own = sizes
        yield int(peak) * 1024, int(own) * 1024


def main(
    *,
    shape: Literal["external", "embedded", "deep"] = "external",
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
        shape: what is large about them: weights in a file of their own or in the model, or depth.
        folder: where they go; room for three copies is needed.
        layers: another number of layers than the usual one.
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
        make_model(source, layers=count, is_external=shape == "external", is_deep=shape == "deep")
        _print_size(source, count)
        target.parent.mkdir(exist_ok=True)
        print(f"{'copy':14} {_copied(folder, target.parent):8.1f} s", flush=True)
        for name in ("tiered", *filter(None, peers.split(","))):
            shutil.rmtree(target.parent)
            target.parent.mkdir()
            command = _command(name, str(source), str(target))
            program = sys.executable if name == "tiered" else str(python)
            took = measured([program, *command], memory=int(memory * 1e9), seconds=seconds)
            print(
                f"{name:14} {took.seconds:8.1f} s  {took.peak / 1e6:8,.0f} MB resident, "
                f"{took.own / 1e6:8,.0f} MB its own  {took.failed}",
                flush=True,
            )
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


def _copied(source: Path, target: Path) -> float:
    """Copy the files of a folder; return how many seconds that took."""
    began = time.perf_counter()
    for entry in source.iterdir():
        if entry.is_file():
            shutil.copyfile(entry, target / entry.name)
    return time.perf_counter() - began


if __name__ == "__main__":
    # A child that this process starts must not count what this process holds.
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    cyclopts.run(main)
