"""Where the time of one optimisation goes, by pass: `python -m benchmarks.profile MODEL`.

The passes' times come from the Timing instrument; what is left is opening, writing, and what stands
between passes. The first run loads code and fills caches and does not count.
"""

import argparse
import tempfile
import time
from pathlib import Path

import tiered
from tiered import Model
from tiered.pipeline.instruments import Timing


def main(model: Path, level: int, runs: int, rows: int) -> None:
    """Print the slowest passes, and what is not a pass's."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out.onnx"
        tiered.optimize(model, out, opt_level=level)
        best = min((_timed(model, out, level) for _ in range(runs)), key=lambda run: run[0])
    total, opened, timing = best
    passes = {name: timed for name, timed in timing.totals().items() if timed.inclusive > 0}
    spent = sum(timed.inclusive for timed in passes.values())
    print(f"{model.stem} at -O{level}: {total * 1e3:.1f} ms, the fastest of {runs} runs\n")
    print(f"{'ms':>9}{'share':>8}{'calls':>7}  pass")
    for name, timed in list(passes.items())[:rows]:
        print(_line(timed.inclusive, total, str(timed.calls), name))
    print(_line(opened, total, "", "(opening the view)"))
    print(_line(total - opened - spent, total, "", "(writing, and around the passes)"))


def _timed(model: Path, out: Path, level: int) -> tuple[float, float, Timing]:
    """Return the seconds of a whole run, of opening alone, and the times of the passes."""
    start = time.perf_counter()
    Model.load(model)
    opened = time.perf_counter() - start
    timing = Timing()
    start = time.perf_counter()
    tiered.optimize(model, out, opt_level=level, instruments=[timing])
    return time.perf_counter() - start, opened, timing


def _line(seconds: float, total: float, calls: str, name: str) -> str:
    return f"{seconds * 1e3:>9.2f}{seconds / total:>8.1%}{calls:>7}  {name}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--rows", type=int, default=25)
    given = parser.parse_args()
    main(given.model, given.level, given.runs, given.rows)
