"""What calls from Python take, file to file: `python -m benchmarks.calls --models DIR`.

Each tool calls its function twice in a fresh process, after its own import statement; the tools
take turns. Each figure is the time of a call of tiered over that of the tool's first call in the
same turn: tiered's first call, the first one with its code loaded before, and its second call.
Processor time is in parentheses. `--python` is the Python that has the peers, if this one does not.
"""

import argparse
import compileall
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.processes import is_there
from benchmarks.worker import TOOLS, seconds_of_calls

PEERS = ("onnxsim", "onnxslim", "onnxoptimizer", "ort-extended", "load-and-save")
KINDS = {
    "first call": ("tiered", 0),
    "first call, code loaded": ("tiered-loaded", 0),
    "second call": ("tiered", 1),
}
"""The tool and the number of the call of each kind."""

Times = list[tuple[float, float]]
"""The time and the processor time of each call of a process."""


def measured(name: str, source: Path, target: Path, python: str) -> Times | None:
    """Return the times of two calls of a tool in a process of its own; None if it fails."""
    program = sys.executable if name.startswith("tiered") else python
    words = [program, "-m", "benchmarks.calls", "--call", name, str(source), str(target)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    return [(taken, processor) for taken, processor in json.loads(done.stdout.splitlines()[-1])]


def ratios(
    source: Path, peers: Sequence[str], python: str, turns: int, folder: Path
) -> dict[tuple[str, str], tuple[float, float]]:
    """Return by peer and kind the medians of both ratios of times."""
    found: dict[tuple[str, str], list[tuple[float, float]]] = {}
    names = ["tiered", "tiered-loaded", *peers]
    for turn in range(turns):
        first = turn % len(names)
        took = {
            name: measured(name, source, folder / f"{name}.onnx", python)
            for name in [*names[first:], *names[:first]]
        }
        for peer in peers:
            other = took[peer]
            for kind, (own, number) in KINDS.items():
                mine = took[own]
                if mine is None:
                    sys.exit(f"{own} fails on {source}")
                if other is not None:
                    pair = (mine[number][0] / other[0][0], mine[number][1] / other[0][1])
                    found.setdefault((peer, kind), []).append(pair)
    return {
        key: (statistics.median(a for a, _ in of), statistics.median(b for _, b in of))
        for key, of in found.items()
    }


def main(models: Path, python: str, turns: int) -> dict[tuple[str, str], tuple[float, float]]:
    """Print the ratios by model and their geometric means, and return the means."""
    # What pip installs is compiled, so a checkout is too before it is measured.
    compileall.compile_dir(Path(__file__).parents[1] / "tiered", quiet=2)
    peers = [name for name in PEERS if is_there(TOOLS[name].modules[-1].partition(".")[0], python)]
    rows: dict[str, dict[tuple[str, str], tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted(models.glob("*.onnx")):
            row = rows[source.stem] = ratios(source, peers, python, turns, Path(folder))
            _print(source.stem, row, peers)
    means: dict[tuple[str, str], tuple[float, float]] = {}
    for key in dict.fromkeys(key for row in rows.values() for key in row):
        of = [row[key] for row in rows.values() if key in row]
        mean = statistics.geometric_mean
        means[key] = mean([a for a, _ in of]), mean([b for _, b in of])
    _print("geometric mean", means, peers)
    return means


def _print(
    title: str, row: dict[tuple[str, str], tuple[float, float]], peers: Sequence[str]
) -> None:
    print(f"{title:36}" + "".join(f"{peer:>18}" for peer in peers))
    for kind in KINDS:
        cells = (row.get((peer, kind)) for peer in peers)
        shown = ("failed" if cell is None else f"{cell[0]:.2f} ({cell[1]:.2f})" for cell in cells)
        print(f"  {kind:34}" + "".join(f"{cell:>18}" for cell in shown), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=Path("examples/models"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--call", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.call:
        print("\n" + json.dumps(seconds_of_calls(*given.call, level=3, calls=2)))
    else:
        main(given.models, given.python, given.turns)
