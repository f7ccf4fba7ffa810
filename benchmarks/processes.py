"""The whole processes that people start: `python -m benchmarks.processes --models DIR`.

Each tool's own command line, and three lines of Python where it has none, from file to file. The
tools take turns, and a ratio compares two processes of one turn: the time, the processor time and
the peak memory of tiered over those of the tool. `--python` is the Python that has the peers, if
this one does not.
"""

import argparse
import compileall
import importlib.util
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

ORT = """import sys, onnxruntime as ort
options = ort.SessionOptions(); options.optimized_model_filepath = sys.argv[2]
options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
options.log_severity_level = 3
ort.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])"""
COPY = "import sys, onnx; onnx.save(onnx.load(sys.argv[1]), sys.argv[2])"

TOOLS = {
    "tiered": ["-m", "tiered", "optimize", "{source}", "{target}", "-O3", "-q"],
    "onnxsim": ["-m", "onnxsim", "{source}", "{target}"],
    "onnxslim": ["-m", "onnxslim", "{source}", "{target}"],
    "onnxoptimizer": ["-m", "onnxoptimizer", "{source}", "{target}"],
    "onnxruntime": ["-c", ORT, "{source}", "{target}"],
    "load and save": ["-c", COPY, "{source}", "{target}"],
}


PACKAGES = {"load and save": "onnx"}
"""The packages of the tools that have another name."""


class Used(NamedTuple):
    """What a process used; or, of two processes, the ratios.

    Attributes:
        seconds: the time from its start to its end.
        processor: its processor time, in seconds.
        peak: the most memory that was resident, in the unit of the system.
    """

    seconds: float
    processor: float
    peak: float

    def __str__(self) -> str:
        return f"{self.seconds:.2f} ({self.processor:.2f}) {self.peak:.2f}"


def measured(python: str, name: str, source: Path, folder: Path) -> Used | None:
    """Return what one process used; None if the tool fails."""
    target = folder / f"{source.stem}.onnx"
    target.unlink(missing_ok=True)
    words = [word.format(source=source, target=target) for word in TOOLS[name]]
    program = sys.executable if name == "tiered" else python
    # On Linux its peak is at least that of this process, which so imports no more than it needs.
    start = time.perf_counter()
    process = subprocess.Popen(
        [program, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    taken = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode or not target.exists():
        return None
    return Used(taken, usage.ru_utime + usage.ru_stime, usage.ru_maxrss)


def ratios(
    source: Path, tools: Sequence[str], python: str, turns: int, folder: Path
) -> dict[str, Used]:
    """Return by tool the medians of what tiered used over what the tool used."""
    found: dict[str, list[Used]] = {name: [] for name in tools}
    for turn in range(turns):
        first = turn % (len(tools) + 1)
        order = ["tiered", *tools]
        used = {
            name: measured(python, name, source, folder)
            for name in [*order[first:], *order[:first]]
        }
        own = used["tiered"]
        if own is None:
            sys.exit(f"tiered fails on {source}")
        for name in tools:
            other = used[name]
            if other is not None:
                found[name].append(Used(*(a / b for a, b in zip(own, other, strict=True))))
    return _means(statistics.median, found)


def _means(
    mean: Callable[[Iterable[float]], float], found: Mapping[str, Sequence[Used]]
) -> dict[str, Used]:
    """Return the means by tool, without tools of which nothing was found."""
    return {name: Used(*map(mean, zip(*of, strict=True))) for name, of in found.items() if of}


def main(models: Path, python: str, turns: int) -> dict[str, Used]:
    """Print the ratios by model and their geometric means, and return the means."""
    # What pip installs is compiled, so a checkout is too before it is measured.
    compileall.compile_dir(Path(__file__).parents[1] / "tiered", quiet=2)
    peers = [name for name in TOOLS if name != "tiered"]
    tools = [name for name in peers if is_there(PACKAGES.get(name, name), python)]
    rows: dict[str, dict[str, Used]] = {}
    print(f"{'time (processor) memory of tiered over':40}" + "".join(f"{t:>20}" for t in tools))
    with tempfile.TemporaryDirectory() as folder:
        for source in sorted(models.glob("*.onnx")):
            row = rows[source.stem] = ratios(source, tools, python, turns, Path(folder))
            print(_line(source.stem, row, tools), flush=True)
    found = {tool: [row[tool] for row in rows.values() if tool in row] for tool in tools}
    means = _means(statistics.geometric_mean, found)
    print(_line("geometric mean", means, tools))
    print(_line("median", _means(statistics.median, found), tools))
    return means


def _line(title: str, row: Mapping[str, Used], tools: Sequence[str]) -> str:
    cells = (str(row[tool]) if tool in row else "failed" for tool in tools)
    return f"{title:40}" + "".join(f"{cell:>20}" for cell in cells)


def is_there(package: str, python: str) -> bool:
    """Return whether a Python has a package."""
    if python == sys.executable:
        return importlib.util.find_spec(package) is not None
    asked = [python, "-c", f"import {package}"]
    return subprocess.run(asked, capture_output=True, check=False).returncode == 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=Path("examples/models"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--turns", type=int, default=3)
    given = parser.parse_args()
    main(given.models, given.python, given.turns)
