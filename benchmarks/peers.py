"""tiered beside its peers: time, memory, nodes, latency; `python -m benchmarks.peers --help`.

Each measurement is two fresh processes, file to file: one for the call, with all that the tool may
need loaded before, and one for the process and its memory, in which the call loads what it needs.
Tools take turns, and a ratio compares the two measurements of one turn, so that a machine which
slows down slows all. Medians are reported, and over models geometric means. What each tool wrote is
run on onnxruntime and held against the original.
"""

import compileall
import dataclasses
import importlib.metadata
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
from typing import Annotated, Any

import cyclopts
from rich.console import Console
from rich.table import Table

from benchmarks.peers_page import page_of, picture_of
from benchmarks.worker import AT_NEED, TOOLS

# Linux counts the memory of the process that forks to the peak of its child, up to the exec. So
# this one stays small: it imports onnx only after the last measurement.

PEERS = tuple(name for name in TOOLS if name != "tiered")

SMALL = 500
"""Models of fewer nodes are summed up on their own: there, each millisecond counts."""

_console = Console()
_PEAK_UNIT = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss: bytes on macOS, else KiB


@dataclasses.dataclass(frozen=True)
class Measurement:
    """A process in which only the call is timed, and one that loads what it needs.

    Attributes:
        optimize_s: the optimise call of the first: read, optimise, write.
        process_s: the life of the second, imports included.
        peak_mb: its peak resident set, 10^6 bytes.
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
        nodes: in the result, at any depth, Constant nodes not counted; `nodes_before` in the model.
        nbytes: of the file of the result; `nbytes_before` of the model's.
        status: exact, close, loose, wrong or invalid (see `benchmarks.judge`); "" if not judged.
        off_ms, on_ms: latency on onnxruntime without and with its own optimisations.
        off_ratio, on_ratio: of the latency to that of the original.
    """

    model: str
    tool: str
    optimize_s: float = 0.0
    optimize_ratio: float | None = None
    process_s: float = 0.0
    process_ratio: float | None = None
    peak_mb: float = 0.0
    nodes: int = 0
    nodes_before: int = 0
    nbytes: int = 0
    nbytes_before: int = 0
    status: str = ""
    off_ms: float | None = None
    on_ms: float | None = None
    off_ratio: float | None = None
    on_ratio: float | None = None
    error: str = ""


def main(
    *,
    models: Path = Path("examples/models"),
    peers: str = ",".join(PEERS),
    level: int = 3,
    runs: int = 5,
    timeout: float = 300.0,
    latency: float = 0.3,
    json_out: Annotated[Path | None, cyclopts.Parameter(name="--json")] = None,
    svg: Path | None = None,
    html: Path | None = None,
) -> None:
    """Measure tiered and its peers in one run.

    Args:
        models: folder of *.onnx files.
        peers: the tools to measure beside tiered, separated by commas.
        level: tiered's optimisation level.
        runs: measurements of each tool on each model.
        timeout: seconds until a tool is stopped.
        latency: seconds of runs on onnxruntime for each result and setting; 0 for none.
        json_out: file to write the rows and the summary to.
        svg: file to write the picture to.
        html: file to write the page to: what each tool leaves of each model.
    """
    wanted = ["tiered", *filter(None, peers.split(","))]
    unknown = [name for name in wanted if name not in TOOLS]
    if unknown:
        sys.exit(f"no peer named {', '.join(unknown)}; there are: {', '.join(TOOLS)}")
    tools = [name for name in wanted if TOOLS[name].is_installed]
    # What pip installs is compiled, so a checkout is too before it is measured.
    compileall.compile_dir(Path(__file__).parents[1] / "tiered", quiet=2)
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        paths = sorted(models.glob("*.onnx"))
        with _console.status("measuring") as status:
            for path in paths:
                status.update(f"measuring {path.stem}: {runs} turns of {', '.join(tools)}")
                rows += _measure_model(path, tools, Path(folder), level, runs, timeout)
            for path in paths:
                status.update(f"judging {path.stem}")
                rows = _judged(rows, path, Path(folder), latency, timeout)
        rows = [_with_nodes(row, models, Path(folder)) for row in rows]
    _show(rows, level, runs)
    summaries = summarise(rows)
    _show_summary(summaries)
    for name in wanted:
        if name not in tools:
            _console.print(f"{name} is not installed: pip install {TOOLS[name].package}")
    if json_out is not None:
        parts = {
            "machine": _machine(tools),
            "rows": [dataclasses.asdict(row) for row in rows],
            "summary": [dataclasses.asdict(summary) for summary in summaries],
        }
        json_out.write_text(json.dumps(parts, indent=1))
    if svg is not None:
        svg.write_text(picture_of(summaries, len({row.model for row in rows}), level))
    if html is not None:
        html.write_text(page_of(_machine(tools), rows, summaries, level=level, runs=runs))


def _machine(tools: Sequence[str]) -> dict[str, object]:
    versions = {TOOLS[name].package: _version(name) for name in tools}
    return {"cpus": os.cpu_count(), "python": sys.version.split()[0], "versions": versions}


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
    arguments = [name, str(source), str(target), str(level)]
    said, _, _ = _worked(arguments, timeout)
    _, seconds, usage = _worked([AT_NEED, *arguments], timeout)
    return Measurement(float(said[-2]), seconds, usage.ru_maxrss * _PEAK_UNIT / 1e6)


def _worked(
    arguments: Sequence[str], timeout: float
) -> tuple[list[str], float, resource.struct_rusage]:
    """Run the worker; return its lines, the seconds that it took, and what it used.

    Raises:
        _ToolFailed: it raised, died or took too long.
    """
    with tempfile.TemporaryFile("w+") as said:
        start = time.perf_counter()
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", *arguments],
            stdout=said, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        usage = _wait(process, start + timeout)
        seconds = time.perf_counter() - start
        said.seek(0)
        lines = said.read().split("\n")
    if process.returncode:
        last = next((line for line in reversed(lines) if line.strip()), "")
        raise _ToolFailed(f"exit code {process.returncode} after {seconds:.0f} s: {last}")
    return lines, seconds, usage


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


def _with_nodes(row: Row, models: Path, folder: Path) -> Row:
    source, made = models / f"{row.model}.onnx", _target(folder, row.model, row.tool)
    return dataclasses.replace(
        row,
        nodes=0 if row.error else _count_nodes(made),
        nodes_before=_count_nodes(source),
        nbytes=0 if row.error else made.stat().st_size,
        nbytes_before=source.stat().st_size,
    )


def _judged(
    rows: Sequence[Row], path: Path, folder: Path, latency: float, timeout: float
) -> list[Row]:
    """Return the rows, those of one model with what became of it."""
    targets = {
        row.tool: str(_target(folder, path.stem, row.tool))
        for row in rows
        if row.model == path.stem and not row.error
    }
    command = [sys.executable, "-m", "benchmarks.judge", str(latency), str(path), *targets.values()]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=timeout * len(targets)
        )
        verdicts = json.loads(done.stdout.strip().splitlines()[-1])
    except (subprocess.SubprocessError, IndexError, ValueError):
        verdicts = {}  # not even the original runs
    original = verdicts.get(str(path), {})
    return [
        _with_verdict(row, verdicts.get(targets.get(row.tool, "")), original)
        if row.model == path.stem
        else row
        for row in rows
    ]


def _with_verdict(row: Row, verdict: dict[str, Any] | None, original: dict[str, Any]) -> Row:
    if verdict is None:
        return row
    ratios = {
        f"{of}_ratio": verdict[f"{of}_ms"] / original[f"{of}_ms"]
        for of in ("off", "on")
        if verdict[f"{of}_ms"] and original[f"{of}_ms"]
    }
    return dataclasses.replace(row, **verdict, **ratios)


# --- over all models ------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Summary:
    """One tool over the models that it managed: geometric means, but for what is said below.

    Attributes:
        optimize_ms, process_ms: mean times.
        optimize_ratio, process_ratio: to those of tiered; above 1 where tiered is faster.
        worst_ratio: the smallest ratio: where tiered is at its worst beside the tool.
        small_ratio: `optimize_ratio` over the models of fewer than `SMALL` nodes.
        peak_mb: the median.
        nodes_ratio, nbytes_ratio, off_ratio, on_ratio: all to those of the originals.
        done, right: how many models it managed; of how many the result is right (not counting
            loose, wrong and invalid ones).
    """

    tool: str
    optimize_ms: float
    optimize_ratio: float | None
    worst_ratio: float | None
    small_ratio: float | None
    process_ms: float
    process_ratio: float | None
    peak_mb: float
    nodes_ratio: float | None
    nbytes_ratio: float | None
    off_ratio: float | None
    on_ratio: float | None
    done: int
    right: int


def summarise(rows: Sequence[Row]) -> list[Summary]:
    """Return what holds over all models, for each tool that managed one."""
    found = []
    for tool in dict.fromkeys(row.tool for row in rows):
        own = [row for row in rows if row.tool == tool and not row.error]
        if not own:
            continue
        ratios = [row.optimize_ratio for row in own if row.optimize_ratio]
        found.append(
            Summary(
                tool,
                optimize_ms=(_mean([row.optimize_s for row in own]) or 0) * 1e3,
                optimize_ratio=_mean(ratios),
                worst_ratio=min(ratios, default=None),
                small_ratio=_mean([row.optimize_ratio for row in own if row.nodes_before < SMALL]),
                process_ms=(_mean([row.process_s for row in own]) or 0) * 1e3,
                process_ratio=_mean([row.process_ratio for row in own]),
                peak_mb=statistics.median(row.peak_mb for row in own),
                nodes_ratio=_mean([row.nodes / max(row.nodes_before, 1) for row in own]),
                nbytes_ratio=_mean([row.nbytes / max(row.nbytes_before, 1) for row in own]),
                off_ratio=_mean([row.off_ratio for row in own]),
                on_ratio=_mean([row.on_ratio for row in own]),
                done=len(own),
                right=sum(row.status in ("exact", "close") for row in own),
            )
        )
    return found


def _mean(numbers: Sequence[float | None]) -> float | None:
    known = [number for number in numbers if number]
    return statistics.geometric_mean(known) if known else None


def _count_nodes(path: Path) -> int:
    """Return how many nodes a file holds at any depth, even one that is no valid model."""
    import onnx

    from tiered.graph.io.protos import nodes_of

    model = onnx.load(path, load_external_data=False)
    return sum(node.op_type != "Constant" for node in nodes_of(model))


def _show(rows: Sequence[Row], level: int, runs: int) -> None:
    before = {row.model: row.nodes_before for row in rows}
    for model, nodes in before.items():
        title = f"{model}, {nodes:,} nodes: tiered at -O{level}; medians of {runs}"
        table = Table("tool", "version", title=title, title_justify="left", min_width=len(title))
        for column in ("optimise", "ratio", "process", "ratio", "peak", "nodes", "off", "on"):
            table.add_column(column, justify="right", no_wrap=True)
        table.add_column("result")
        for row in rows:
            if row.model == model:
                table.add_row(row.tool, _version(row.tool), *_cells(row))
        _console.print(table)
    _console.print("A ratio is the tool's time to tiered's, above 1 where tiered is faster.")


def _cells(row: Row) -> list[str]:
    if row.error:
        return ["failed", "", "", "", "", "", "", "", row.error]
    return [
        f"{row.optimize_s * 1e3:,.0f} ms",
        _times(row.optimize_ratio),
        f"{row.process_s * 1e3:,.0f} ms",
        _times(row.process_ratio),
        f"{row.peak_mb:,.0f} MB",
        f"{row.nodes:,}",
        _times(row.off_ratio),
        _times(row.on_ratio),
        row.status,
    ]


def _show_summary(summaries: Sequence[Summary]) -> None:
    title = f"All models; small: fewer than {SMALL} nodes; off, on: latency to the original's"
    table = Table("tool", title=title, title_justify="left")
    for column in (
        "optimise", "ratio", "worst", "small", "process", "ratio", "peak", "nodes", "off", "on",
        "right",
    ):  # fmt: skip
        table.add_column(column, justify="right", no_wrap=True)
    for summary in summaries:
        table.add_row(
            summary.tool,
            f"{summary.optimize_ms:,.0f} ms",
            _times(summary.optimize_ratio),
            _times(summary.worst_ratio),
            _times(summary.small_ratio),
            f"{summary.process_ms:,.0f} ms",
            _times(summary.process_ratio),
            f"{summary.peak_mb:,.0f} MB",
            _times(summary.nodes_ratio),
            _times(summary.off_ratio),
            _times(summary.on_ratio),
            f"{summary.right} of {summary.done}",
        )
    _console.print(table)


def _version(tool: str) -> str:
    try:
        return importlib.metadata.version(TOOLS[tool].package)
    except importlib.metadata.PackageNotFoundError:
        return ""  # run from a checkout


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"


if __name__ == "__main__":
    cyclopts.run(main)
