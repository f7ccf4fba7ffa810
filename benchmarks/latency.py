"""How fast models run after tiered and its peers; `python -m benchmarks.latency --help`.

`tiered.bench` measures the original and all results of it alternately, on one thread, with
onnxruntime's own optimisations off and on; what counts is the processor's time of that thread, in
which no other process has a part. A speed-up is the original's time by the result's, with its 99 %
interval.
"""

import dataclasses
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

import cyclopts
from rich.console import Console
from rich.table import Table

import tiered
from benchmarks.worker import TOOLS
from tiered import TieredError
from tiered.runtime import Session, make_inputs
from tiered.runtime.opening import Opening
from tiered.support.errors import RuntimeFailure

MINUTES: Final = 10.0
"""The limit for a model with all its results."""

PORTABLE = ("tiered", "onnxsim", "ort-basic", "onnxoptimizer", "onnxslim", "onnxscript")
"""The tools that keep to standard operators."""

_console = Console()


@dataclasses.dataclass(frozen=True)
class Row:
    """A tool's result of one model beside the original; `error` alone if there is none.

    Attributes:
        optimisations: whether onnxruntime's own are on.
        before_ms, after_ms: medians.
        speed_up: of the result; `low` and `high` are its 99 % interval.
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
    runs: int | None = None,
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
        runs: timed runs of each model, at most; by default as many as fit.
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
            status.update(f"measuring {path.stem}")
            targets = {name: Path(folder) / f"{path.stem}.{name}.onnx" for name in present}
            ended = {
                name: optimized(name, path, target, level, backend, timeout)
                for name, target in targets.items()
            }
            errors = {name: error for name, error in ended.items() if error}
            made = {name: target for name, target in targets.items() if name not in errors}
            for on in (False, True):
                rows += _compared(path, made, errors, on, runs)
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

    class Reader(CalibrationDataReader):  # type: ignore[misc]  # onnxruntime has no types
        def __init__(self) -> None:
            self._feeds = [dict(make_inputs(str(source), seed=seed).feeds) for seed in range(2)]

        def get_next(self) -> Any:
            return self._feeds.pop() if self._feeds else None

    target = folder / f"{source.stem}.s8s8.onnx"
    quantize_static(str(source), str(target), Reader())
    return target


def optimized(
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


def _compared(
    before: Path, results: Mapping[str, Path], errors: Mapping[str, str], on: bool, runs: int | None
) -> list[Row]:
    """Measure a model and what the tools made of it, all of them alternately."""
    opening = Opening("all" if on else "off")
    feeds = make_inputs(str(before)).feeds
    refused = {name: refusal(path, opening, feeds) for name, path in results.items()}
    failed = {**errors, **{name: error for name, error in refused.items() if error}}
    left = [name for name in results if name not in failed]
    try:
        found = tiered.bench(
            before, *(results[name] for name in left), inputs=[feeds], clock="processor",
            runtime_level=opening.level, minutes=MINUTES, runs=runs,
        )  # fmt: skip
    except TieredError as error:  # the original, or a crash
        failed = {name: str(error).split("\n")[0] for name in left} | failed
        left = []
    rows = [Row(before.stem, name, on, error=error) for name, error in failed.items()]
    for place, name in enumerate(left, 1):
        was, has = (found.models[at].latency.median * 1e3 for at in (0, place))
        gain = found.ratio(0, place).interval
        rows.append(Row(before.stem, name, on, was, has, gain.median, gain.low, gain.high))
    return rows


def refusal(path: Path, opening: Opening, feeds: Mapping[str, Any]) -> str:
    """Return why onnxruntime does not run a model, or ""."""
    try:
        Session(str(path), setting=opening).run(feeds)
    except RuntimeFailure as error:
        return str(error).split("\n")[0]
    return ""


def _show(rows: Sequence[Row], tools: Sequence[str], on: bool) -> None:
    title = f"speed-up with onnxruntime's optimisations {'on' if on else 'off'}, 99 % interval"
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
