"""How fast models run after tiered and its peers; `python -m benchmarks.latency --help`.

Original and result run in turn, in one process, on one thread, so that a machine which slows down
slows both; what counts is the processor's time of that thread, in which nobody else has a part. A
speed-up is the original's time by the result's of the same turn; the median of the turns is
reported, with its 95 % interval, with onnxruntime's own optimisations off and on.
"""

import dataclasses
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import cyclopts
from rich.console import Console
from rich.table import Table

from benchmarks.worker import TOOLS

if TYPE_CHECKING:
    import onnxruntime

PORTABLE = ("tiered", "onnxsim", "ort-basic", "onnxoptimizer", "onnxslim", "onnxscript")
"""The tools that keep to standard operators."""

_console = Console()


@dataclasses.dataclass(frozen=True)
class Row:
    """A tool's result of one model beside the original; `error` alone if there is none.

    Attributes:
        optimisations: whether onnxruntime's own are on.
        before_ms, after_ms: medians.
        speed_up: median of the turns; `low` and `high` are its 95 % interval.
    """

    model: str
    tool: str
    optimisations: bool
    before_ms: float = 0.0
    after_ms: float = 0.0
    speed_up: float = 0.0
    low: float = 0.0
    high: float = 0.0
    error: str = ""


def main(
    *,
    models: Path = Path("examples/models"),
    tools: str = ",".join(PORTABLE),
    backend: str | None = None,
    level: int = 3,
    quantized: bool = False,
    runs: int = 60,
    timeout: float = 300.0,
    json_out: Annotated[Path | None, cyclopts.Parameter(name="--json")] = None,
) -> None:
    """Measure what tools make of the latency of models under onnxruntime.

    Args:
        models: folder of *.onnx files, or one file.
        tools: what to measure, separated by commas; by default those that keep to standard
            operators.
        backend: tiered's, whose operators the others may use too.
        level: tiered's optimisation level.
        quantized: measure the models after onnxruntime's quantize_static, with int8 data and
            weights, as it does by default.
        runs: turns of original and result.
        timeout: seconds until a tool is stopped.
        json_out: file to write the rows to.
    """
    wanted = [name for name in tools.split(",") if name]
    unknown = [name for name in wanted if name not in TOOLS]
    if unknown:
        sys.exit(f"no tool named {', '.join(unknown)}; there are: {', '.join(TOOLS)}")
    present = [name for name in wanted if TOOLS[name].is_installed]
    paths = [models] if models.is_file() else sorted(models.glob("*.onnx"))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder, _console.status("measuring") as status:
        if quantized:
            paths = [_quantized(path, Path(folder)) for path in paths]
        for path in paths:
            for name in present:
                status.update(f"measuring {path.stem}: {name}")
                target = Path(folder) / f"{path.stem}.{name}.onnx"
                error = _optimized(name, path, target, level, backend, timeout)
                rows += [
                    Row(path.stem, name, on, error=error)
                    if error
                    else _compared(path, target, name, on, runs)
                    for on in (False, True)
                ]
    for on in (False, True):
        _show([row for row in rows if row.optimisations is on], present, on)
    for name in wanted:
        if name not in present:
            _console.print(f"{name} is not installed: pip install {name}")
    if json_out is not None:
        json_out.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))


def _quantized(source: Path, folder: Path) -> Path:
    """Write a model as onnxruntime quantises it by default: S8S8, in QDQ units."""
    from onnxruntime.quantization import CalibrationDataReader, quantize_static

    from tiered.runtime import make_inputs

    class Reader(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
        def __init__(self) -> None:
            self._feeds = [dict(make_inputs(str(source), seed=seed).feeds) for seed in range(2)]

        def get_next(self) -> Any:
            return self._feeds.pop() if self._feeds else None

    target = folder / f"{source.stem}.s8s8.onnx"
    quantize_static(str(source), str(target), Reader())
    return target


def _optimized(
    name: str, source: Path, target: Path, level: int, backend: str | None, timeout: float
) -> str:
    """Let a tool write its result; return what went wrong, or ""."""
    command = [sys.executable, "-m", "benchmarks.worker", name, str(source), str(target)]
    command += [str(level), *([backend] if backend is not None else [])]
    try:
        ended = subprocess.run(
            command, capture_output=True, text=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no result after {timeout:.0f} s"
    said = [line for line in ended.stderr.split("\n") if line.strip()]
    return (said[-1] if said else "failed") if ended.returncode else ""


def _compared(before: Path, after: Path, tool: str, on: bool, runs: int) -> Row:
    from tiered.runtime import make_inputs

    feeds = make_inputs(str(before)).feeds
    try:
        sessions = [session(path, on) for path in (before, after)]
        for each in sessions:
            each.run(None, feeds)
    except Exception as error:  # noqa: BLE001 - onnxruntime raises what it likes
        return Row(before.stem, tool, on, error=str(error).split("\n")[0])
    first, second = turns(sessions[0], sessions[1], feeds, runs)
    low, middle, high = interval([a / b for a, b in zip(first, second, strict=True)])
    was, has = (statistics.median(times) * 1e3 for times in (first, second))
    return Row(before.stem, tool, on, was, has, middle, low, high)


def session(model: Path | bytes, on: bool) -> "onnxruntime.InferenceSession":
    """Return a session of one thread, with onnxruntime's own optimisations on or off."""
    import onnxruntime

    levels = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if on else levels.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])


def turns(first: Any, second: Any, feeds: Any, runs: int) -> tuple[list[float], list[float]]:
    """Return the seconds of each run of two sessions that take turns, and turns in being first."""
    times: tuple[list[float], list[float]] = ([], [])
    pair = list(zip((first, second), times, strict=True))
    for turn in range(runs):
        for session, noted in pair if turn % 2 else reversed(pair):
            start = time.thread_time()
            session.run(None, feeds)
            noted.append(time.thread_time() - start)
    return times


def interval(numbers: Sequence[float]) -> tuple[float, float, float]:
    """Return the median of a sample between the ends of its 95 % interval.

    The ends are members of the sample: of n in order, those 0.98 sqrt(n) before and behind the
    middle. Nothing is assumed of how they are spread.
    """
    ordered, half = sorted(numbers), 0.98 * math.sqrt(len(numbers))
    middle = (len(ordered) - 1) / 2
    low, high = max(math.floor(middle - half), 0), min(math.ceil(middle + half), len(ordered) - 1)
    return ordered[low], statistics.median(ordered), ordered[high]


def _show(rows: Sequence[Row], tools: Sequence[str], on: bool) -> None:
    title = f"speed-up with onnxruntime's optimisations {'on' if on else 'off'}, 95 % interval"
    table = Table("model", *tools, title=title, title_justify="left")
    for model in dict.fromkeys(row.model for row in rows):
        cells = {row.tool: _cell(row) for row in rows if row.model == model}
        table.add_row(model, *(cells.get(tool, "") for tool in tools))
    means = (_mean([row for row in rows if row.tool == tool]) for tool in tools)
    table.add_row("geometric mean", *(f"{mean:.2f}" for mean in means))
    _console.print(table)


def _cell(row: Row) -> str:
    return "failed" if row.error else f"{row.speed_up:.2f} ({row.low:.2f}-{row.high:.2f})"


def _mean(rows: Sequence[Row]) -> float:
    """Return the geometric mean; a tool that failed left the model as it was."""
    ratios = [1.0 if row.error else row.speed_up for row in rows]
    return statistics.geometric_mean(ratios) if ratios else 1.0


if __name__ == "__main__":
    cyclopts.run(main)
