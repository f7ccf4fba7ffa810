"""tiered beside its peers: time, memory, nodes; `python -m benchmarks.peers --help`.

Each measurement is a fresh process, file to file. Tools take turns, and a ratio compares the two
measurements of one turn, so that a machine which slows down slows all. Medians are reported.
"""

import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import cyclopts
from rich.console import Console
from rich.table import Table

from benchmarks.worker import TOOLS

# Linux counts the memory of the process that forks to the peak of its child, up to the exec. So
# this one stays small: it imports onnx only after the last measurement.

PEERS = tuple(name for name in TOOLS if name != "tiered")

_console = Console()
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss: bytes on macOS, else KiB


@dataclasses.dataclass(frozen=True)
class Measurement:
    """One process.

    Attributes:
        optimize_s: the optimise call: read, optimise, write.
        process_s: the life of the process, imports included.
        peak_mb: peak resident set, 10^6 bytes.
    """

    optimize_s: float
    process_s: float
    peak_mb: float


@dataclasses.dataclass(frozen=True)
class Row:
    """What is reported of one tool on one model; `error` alone if it failed.

    Attributes:
        optimize_ratio: of optimize_s to that of tiered, above 1 where tiered is faster.
        process_ratio: the same of process_s.
        nodes: in the result, at any depth, Constant nodes not counted.
    """

    model: str
    tool: str
    optimize_s: float = 0.0
    optimize_ratio: float | None = None
    process_s: float = 0.0
    process_ratio: float | None = None
    peak_mb: float = 0.0
    nodes: int = 0
    error: str = ""


def main(
    *,
    models: Path = Path("examples/models"),
    peers: str = ",".join(PEERS),
    level: int = 3,
    runs: int = 5,
    timeout: float = 300.0,
    json_out: Annotated[Path | None, cyclopts.Parameter(name="--json")] = None,
) -> None:
    """Measure tiered and its peers in one run.

    Args:
        models: folder of *.onnx files.
        peers: the tools to measure beside tiered, separated by commas.
        level: tiered's optimisation level.
        runs: measurements of each tool on each model.
        timeout: seconds until a tool is stopped.
        json_out: file to write the rows to.
    """
    wanted = ["tiered", *filter(None, peers.split(","))]
    unknown = [name for name in wanted if name not in TOOLS]
    if unknown:
        sys.exit(f"no peer named {', '.join(unknown)}; there are: {', '.join(TOOLS)}")
    tools = [name for name in wanted if importlib.util.find_spec(name)]
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        paths = sorted(models.glob("*.onnx"))
        with _console.status("measuring") as status:
            for path in paths:
                status.update(f"measuring {path.stem}: {runs} turns of {', '.join(tools)}")
                rows += _measure_model(path, tools, Path(folder), level, runs, timeout)
        rows = [_with_nodes(row, Path(folder)) for row in rows]
        before = {path.stem: _count_nodes(path) for path in paths}
    _show(rows, before, level, runs)
    _console.print("A ratio is the tool's time to tiered's, above 1 where tiered is faster.")
    for name in wanted:
        if name not in tools:
            _console.print(f"{name} is not installed: pip install {name}")
    if json_out is not None:
        json_out.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))


def _measure_model(
    path: Path, tools: Sequence[str], folder: Path, level: int, runs: int, timeout: float
) -> list[Row]:
    turns: dict[str, list[Measurement]] = {name: [] for name in tools}
    errors: dict[str, str] = {}
    for turn in range(runs):
        first = turn % len(tools)
        for name in [*tools[first:], *tools[:first]]:
            if name in errors:
                continue
            target = _target(folder, path.stem, name)
            try:
                turns[name].append(_measure(name, path, target, level, timeout))
            except _ToolFailed as error:
                errors[name] = str(error)
    return [
        Row(path.stem, name, error=errors[name])
        if name in errors
        else _summary(path.stem, name, turns[name], turns["tiered"])
        for name in tools
    ]


class _ToolFailed(Exception):
    """A tool raised, died or took too long."""


def _measure(name: str, source: Path, target: Path, level: int, timeout: float) -> Measurement:
    worker = [sys.executable, "-m", "benchmarks.worker"]
    arguments = [name, str(source), str(target), str(level)]
    with tempfile.TemporaryFile("w+") as said:
        start = time.perf_counter()
        process = subprocess.Popen(
            worker + arguments, stdout=said, stderr=subprocess.STDOUT, text=True
        )
        usage = _wait(process, start + timeout)
        seconds = time.perf_counter() - start
        said.seek(0)
        lines = said.read().split("\n")
    if process.returncode:
        last = next((line for line in reversed(lines) if line.strip()), "")
        raise _ToolFailed(f"exit code {process.returncode} after {seconds:.0f} s: {last}")
    return Measurement(float(lines[-2]), seconds, usage.ru_maxrss * _PEAK_UNIT / 1e6)


def _wait(process: subprocess.Popen[str], deadline: float) -> resource.struct_rusage:
    """Wait as Popen.wait does, and learn what the process used; kill it after the deadline."""
    while True:
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return usage
        if time.perf_counter() > deadline:
            process.kill()
        time.sleep(0.001)


def _summary(
    model: str, name: str, turns: Sequence[Measurement], reference: Sequence[Measurement]
) -> Row:
    def median(of: Callable[[Measurement], float]) -> float:
        return statistics.median(map(of, turns))

    def ratio(of: Callable[[Measurement], float]) -> float | None:
        if len(reference) < len(turns):
            return None  # tiered itself failed
        return statistics.median(of(a) / of(b) for a, b in zip(turns, reference, strict=True))

    return Row(
        model,
        name,
        optimize_s=median(lambda m: m.optimize_s),
        optimize_ratio=ratio(lambda m: m.optimize_s),
        process_s=median(lambda m: m.process_s),
        process_ratio=ratio(lambda m: m.process_s),
        peak_mb=median(lambda m: m.peak_mb),
    )


def _target(folder: Path, model: str, tool: str) -> Path:
    return folder / f"{model}.{tool}.onnx"


def _with_nodes(row: Row, folder: Path) -> Row:
    if row.error:
        return row
    return dataclasses.replace(row, nodes=_count_nodes(_target(folder, row.model, row.tool)))


def _count_nodes(path: Path) -> int:
    from tiered import Model

    graphs = Model.load(path).graphs()
    return sum(node.op_type != "Constant" for graph in graphs for node in graph.nodes)


def _show(rows: Sequence[Row], before: dict[str, int], level: int, runs: int) -> None:
    for model, nodes in before.items():
        title = f"{model}, {nodes:,} nodes: tiered at -O{level}; medians of {runs}"
        table = Table("tool", "version", title=title, title_justify="left", min_width=len(title))
        for column in ("optimise", "ratio", "process", "ratio", "peak", "nodes"):
            table.add_column(column, justify="right", no_wrap=True)
        for row in rows:
            if row.model == model:
                table.add_row(row.tool, _version(row.tool), *_cells(row))
        _console.print(table)


def _cells(row: Row) -> list[str]:
    if row.error:
        return ["failed", "", "", "", "", row.error]
    return [
        f"{row.optimize_s * 1e3:,.0f} ms",
        _times(row.optimize_ratio),
        f"{row.process_s * 1e3:,.0f} ms",
        _times(row.process_ratio),
        f"{row.peak_mb:,.0f} MB",
        f"{row.nodes:,}",
    ]


def _version(tool: str) -> str:
    try:
        return importlib.metadata.version(tool)
    except importlib.metadata.PackageNotFoundError:
        return ""  # run from a checkout


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


if __name__ == "__main__":
    cyclopts.run(main)
