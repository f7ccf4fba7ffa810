"""How fast tuned models are beside -O3 and peers; `python -m benchmarks.tune --help`.

Each model is tuned for some minutes, once with onnxruntime's own optimisations off and once with
them on. Then `tiered.bench` measures the tuned model, the original, -O3 with and without the
operators of onnxruntime, and the peers' results alternately, in processor time of one thread. A
ratio in JSON is the tuned model's time by the other's. The tables have speed-ups, the other's time
by that of the tuned model, with their 99 % intervals: below 1 tuning lost.
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

import tiered
from benchmarks.latency import optimized, refusal
from benchmarks.worker import TOOLS
from tiered.runtime import make_inputs
from tiered.runtime.opening import Opening

PEERS: Final = ("ort-basic", "ort-extended", "onnxsim", "onnxslim", "onnxscript", "onnxoptimizer")
BACKEND: Final = "onnxruntime_cpu"
_TIMEOUT: Final = 300.0
_SLOWER: Final = "slower"


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

    @property
    def speed_up(self) -> float:
        """The other form's time by that of the tuned one."""
        return 1 / self.ratio

    def __str__(self) -> str:
        return f"{self.speed_up:.2f} ({1 / self.high:.2f}-{1 / self.low:.2f})"


def main(
    *,
    models: Path = Path("examples/models"),
    minutes: float = 3.0,
    candidates: bool = False,
    json_out: Annotated[Path | None, cyclopts.Parameter(name="--json")] = None,
    earlier: Annotated[
        list[Path] | None, cyclopts.Parameter(name="--from", consume_multiple=True)
    ] = None,
) -> None:
    """Tune models, and measure the results beside others.

    Args:
        models: folder of *.onnx files, or one file.
        minutes: for each search.
        candidates: give the peers' results to the search.
        json_out: file to write the rows to.
        earlier: files of rows that earlier runs wrote: print their tables, and measure nothing.
    """
    if earlier is not None:
        print(report(_read(earlier)))
        return
    paths = [models] if models.is_file() else sorted(models.glob("*.onnx"))
    if not paths:
        sys.exit(f"no models in {models}")
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        for path in paths:
            others = _others(path, Path(folder))
            for on in (False, True):
                rows += _tuned(path, others, Path(folder), minutes, on, candidates)
    print(report(rows))
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
        form = str(tuned.form).replace(f"{folder}/", "")
        rows.append(Row(path.stem, on, name, form, median, low, high, ratio.verdict))
    return rows


def _read(files: Sequence[Path]) -> list[Row]:
    """Return the rows of files; of a model that is in several, those of the last one."""
    found: dict[tuple[str, bool, str], Row] = {}
    for file in files:
        try:
            rows = [Row(**record) for record in json.loads(file.read_text())]
        except (OSError, TypeError, ValueError) as error:
            sys.exit(f"cannot read rows from {file}: {error}")
        found.update({(row.model, row.optimisations, row.beside): row for row in rows})
    return sorted(found.values(), key=lambda row: row.model)


def report(rows: Sequence[Row]) -> str:
    """Return the tables of rows, in Markdown, as docs/latency.md has them."""
    lines: list[str] = []
    for on in (False, True):
        own = [row for row in rows if row.optimisations is on]
        if own:
            lines += [f"onnxruntime's optimisations {'on' if on else 'off'}:", ""]
            lines += [*_table(own), "", *_summary(own), ""]
    return "\n".join(lines)


def _by_model(rows: Sequence[Row]) -> dict[str, dict[str, Row]]:
    """Return the rows of each model, by the other form."""
    found: dict[str, dict[str, Row]] = {}
    for row in rows:
        found.setdefault(row.model, {})[row.beside] = row
    return found


def _speed_up(own: Mapping[str, Row], name: str) -> float:
    """Return a speed-up; a tool that failed left the model as it was."""
    return own.get(name, own["original"]).speed_up


def _table(rows: Sequence[Row]) -> list[str]:
    columns, models = [*dict.fromkeys(row.beside for row in rows)], _by_model(rows)
    means = (statistics.geometric_mean([_speed_up(own, name) for own in models.values()])
             for name in columns)  # fmt: skip
    return [
        _line("model", "tuned", *columns),
        f"|{'---|' * (len(columns) + 2)}",
        *(
            _line(
                model,
                f"`{own['original'].form}`",
                *(str(own[name]) if name in own else "failed" for name in columns),
            )
            for model, own in models.items()
        ),
        _line("geometric mean", "", *(f"{mean:.2f}" for mean in means)),
    ]


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _summary(rows: Sequence[Row]) -> list[str]:
    """Return the means beside peers, and the cases in which another form is proved faster."""
    models = _by_model(rows)
    peers = [name for name in PEERS if any(name in own for own in models.values())]
    lines = []
    if peers:
        means = {
            name: statistics.geometric_mean([_speed_up(own, name) for own in models.values()])
            for name in peers
        }
        best = min(means, key=lambda name: means[name])
        each = [min(_speed_up(own, name) for name in peers) for own in models.values()]
        lines += [
            f"- beside the best single peer, {best}: {means[best]:.3f}",
            f"- beside the best peer of each model: {statistics.geometric_mean(each):.3f}",
        ]
    lost = {
        model: min((row for row in own.values() if row.verdict == _SLOWER), key=_place)
        for model, own in models.items()
        if any(row.verdict == _SLOWER for row in own.values())
    }
    text = "; ".join(f"{model} beside {row.beside} {row}" for model, row in lost.items())
    lines.append(
        f"- significantly slower than the best of the others: {len(lost)} of {len(models)}"
        f"{f': {text}' if text else ''}"
    )
    return lines


def _place(row: Row) -> float:
    return row.speed_up


if __name__ == "__main__":
    cyclopts.run(main)
