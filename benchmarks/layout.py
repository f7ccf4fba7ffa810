"""What Transposes are left, and what they move: tiered beside its peers, in one run.

    python -m benchmarks.layout --models examples/models --check

Each tool optimises each model in a process of its own; of the result the Transposes of tensors that
are no constants are counted, and the bytes that they move. `--check` makes it an error if tiered
leaves more bytes than the model had, or than a peer leaves.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.worker import TOOLS
from tiered import Model
from tiered.analysis.layout.cost import Cost, transpose_cost
from tiered.analysis.layout.layout_conversion import reach_of
from tiered.analysis.layout.sizes import LayoutSizes

PEERS = ("ort-basic", "onnxslim", "onnxsim")
"""Of onnxruntime what it does in standard operators, its transpose optimiser among it: its own
operators beyond that take a Transpose as a flag."""


def main(models: Path, peers: Sequence[str], timeout: float = 300.0) -> list[str]:
    """Print a line for each model and tool; return what tiered does worse than another."""
    worse = []
    for file in sorted(models.glob("*.onnx")):
        before = counted(file)
        _print(file.stem, "as it is", before)
        with tempfile.TemporaryDirectory() as folder:
            own = optimized("tiered", file, Path(folder), timeout)
            if own is None:
                worse.append(f"{file.stem}: tiered failed")
                continue
            _print("", "tiered", own)
            others = {"the model": before}
            for peer in peers:
                found = optimized(peer, file, Path(folder), timeout)
                _print("", peer, found)
                if found is not None:
                    others[peer] = found
        worse += [
            f"{file.stem}: {own.nbytes:,} bytes, {name} {other.nbytes:,}"
            for name, other in others.items()
            if own.nbytes > other.nbytes
        ]
    return worse


def _print(model: str, tool: str, cost: Cost | None) -> None:
    what = "failed" if cost is None else f"{cost.transposes:5d} {cost.nbytes:14,d} bytes"
    print(f"{model:24} {tool:12} {what}")


def counted(file: Path) -> Cost:
    """Return how many Transposes a model has, and the bytes that they move."""
    return transpose_cost(reach_of(Model.load(file)), LayoutSizes())


def optimized(tool: str, file: Path, folder: Path, timeout: float) -> Cost | None:
    """Return the same of what a tool makes of a model; None if it fails."""
    target = folder / f"{tool}.onnx"
    command = [sys.executable, "-m", "benchmarks.worker", tool, str(file), str(target), "3"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=timeout)
        return counted(target)
    except (subprocess.SubprocessError, OSError):
        return None


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=Path("examples/models"))
    parser.add_argument("--peers", default=",".join(PEERS), help="by comma; empty for none")
    parser.add_argument("--check", action="store_true", help="fail if tiered leaves more bytes")
    given = parser.parse_args()
    chosen = [name for name in given.peers.split(",") if name]
    if unknown := [name for name in chosen if name not in TOOLS]:
        sys.exit(f"no peer named {unknown[0]}; known: {', '.join(TOOLS)}")
    found_worse = main(given.models, chosen)
    if given.check and found_worse:
        sys.exit("\n".join(found_worse))
