"""How fast tuned models are beside -O3 and peers; `python -m benchmarks.tune --help`.

Each model is tuned for some minutes, once with onnxruntime's own optimisations off and once with
them on. Then `tiered.bench` measures the tuned model, the original, -O3 with and without the
operators of onnxruntime, and the peers' results alternately, in processor time of one thread. A
ratio is the tuned model's time by the other's, with its 99 % interval: above 1 tuning lost.
"""

import dataclasses
import json
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final

import cyclopts
from rich.console import Console
from rich.table import Table

import tiered
from benchmarks.latency import optimized, refusal
from benchmarks.worker import TOOLS
from tiered.runtime import make_inputs
from tiered.runtime.opening import Opening

PEERS: Final = ("ort-basic", "ort-extended", "onnxsim", "onnxslim", "onnxscript", "onnxoptimizer")
BACKEND: Final = "onnxruntime_cpu"
_TIMEOUT: Final = 300.0

_console = Console()


@dataclasses.dataclass(frozen=True)
class Row:
    """A tuned model beside another form of it.

    Attributes:
        optimisations: whether onnxruntime's own are on.
        beside: the other form.
        form: the settings of the tuned one.
        ratio: the tuned one's time by the other's; `low` and `high` are its 99 % interval.
        verdict: "faster", "slower", "no difference" or "too few rounds".
    """

    model: str
    optimisations: bool
    beside: str
    form: str
    ratio: float
    low: float
    high: float
    verdict: str


def main(
    *,
    models: Path = Path("examples/models"),
    minutes: float = 3.0,
    candidates: bool = False,
    json_out: Annotated[Path | None, cyclopts.Parameter(name="--json")] = None,
) -> None:
    """Tune models, and measure the results beside others.

    Args:
        models: folder of *.onnx files, or one file.
        minutes: for each search.
        candidates: give the peers' results to the search.
        json_out: file to write the rows to.
    """
    paths = [models] if models.is_file() else sorted(models.glob("*.onnx"))
    if not paths:
        sys.exit(f"no models in {models}")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            others = _others(path, Path(folder))
            for on in (False, True):
                rows += _tuned(path, others, Path(folder), minutes, on, candidates)
    for on in (False, True):
        _show([row for row in rows if row.optimisations is on], on)
    if json_out is not None:
        json_out.write_text(json.dumps([dataclasses.asdict(row) for row in rows], indent=1))


def _others(path: Path, folder: Path) -> dict[str, Path]:
    """Return what the model is measured beside: the original, -O3, and the peers' results."""
    found = {"original": path}
    for name, backend in (("-O3", None), (f"-O3 {BACKEND}", BACKEND)):
        found[name] = folder / f"{path.stem}.{'portable' if backend is None else backend}.onnx"
        tiered.optimize(path, found[name], opt_level=3, backend=backend)
    for name in PEERS:
        target = folder / f"{path.stem}.{name}.onnx"
        if TOOLS[name].is_installed and not optimized(name, path, target, 3, BACKEND, _TIMEOUT):
            found[name] = target
    return found


def _tuned(
    path: Path, others: Mapping[str, Path], folder: Path, minutes: float, on: bool, given: bool
) -> list[Row]:
    opening = Opening("all" if on else "off")
    feeds = make_inputs(str(path)).feeds
    able = {name: file for name, file in others.items() if not refusal(file, opening, feeds)}
    peers = [file for name, file in able.items() if name in PEERS] if given else []
    out = folder / f"{path.stem}.tuned.onnx"
    tuned = tiered.tune(
        path, out, inputs=[feeds], runtime_level=opening.level, clock="processor",
        minutes=minutes, candidates=peers,
    )  # fmt: skip
    found = tiered.bench(
        out, *able.values(), inputs=[feeds], runtime_level=opening.level, clock="processor",
        minutes=10,
    )  # fmt: skip
    rows = []
    for place, name in enumerate(able, 1):
        ratio = found.ratio(0, place)
        low, median, high, _ = ratio.interval
        rows.append(Row(path.stem, on, name, str(tuned.form), median, low, high, ratio.verdict))
    return rows


def _show(rows: Sequence[Row], on: bool) -> None:
    columns = [*dict.fromkeys(row.beside for row in rows)]
    title = f"tuned / other, onnxruntime's optimisations {'on' if on else 'off'}, 99 % interval"
    table = Table("model", "tuned", *columns, title=title, title_justify="left")
    for model in dict.fromkeys(row.model for row in rows):
        own = {row.beside: row for row in rows if row.model == model}
        cells = (own.get(name) for name in columns)
        form = next(iter(own.values())).form
        table.add_row(model, form, *("" if row is None else _cell(row) for row in cells))
    means = (statistics.geometric_mean([row.ratio for row in rows if row.beside == name])
             for name in columns)  # fmt: skip
    table.add_row("geometric mean", "", *(f"{mean:.2f}" for mean in means))
    _console.print(table)


def _cell(row: Row) -> str:
    return f"{row.ratio:.2f} ({row.low:.2f}-{row.high:.2f})"


if __name__ == "__main__":
    cyclopts.run(main)
