"""What the page of a run takes, beside the run: `python -m benchmarks.pages --models DIR`.

Processor time of `optimize_model` alone, and with a trace and its page; the fastest run counts. The
page without times is made twice, from two runs: it must be the same bytes, without a path.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import NamedTuple

import onnx

from tiered import optimize_model
from tiered.pipeline.instruments import Trace
from tiered.pipeline.instruments.run_page.page import run_page


class Row(NamedTuple):
    """What one model takes; seconds, and the bytes of its page."""

    name: str
    nodes: int
    rewrites: int
    alone: float
    with_page: float
    size: int

    @property
    def ratio(self) -> float:
        """What the trace and the page add, by the time of the run."""
        return (self.with_page - self.alone) / self.alone


def paged(model: onnx.ModelProto, level: int, *, times: bool) -> tuple[str, int]:
    """Optimise a model; return its page, and how many rewrites there were."""
    trace = Trace()
    result = optimize_model(model, opt_level=level, trace=trace)
    return run_page(trace.spans, result, times=times), len(trace.rewrites)


def measure(path: Path, level: int, runs: int) -> Row:
    """Measure one model.

    Raises:
        AssertionError: two pages of the same run differ, or a page holds the folder of the model.
    """
    model = onnx.load(path)
    alone, whole, rewrites = [], [], 0
    pages = set()
    for _ in range(runs + 1):  # the first loads code and fills caches
        start = time.process_time()
        optimize_model(model, opt_level=level)
        alone.append(time.process_time() - start)
        start = time.process_time()
        html, rewrites = paged(model, level, times=False)
        whole.append(time.process_time() - start)
        pages.add(html)
    assert len(pages) == 1, f"the pages of {path.name} differ"
    assert str(path.resolve().parent) not in html, f"the page of {path.name} holds its folder"
    size = len(html.encode())
    return Row(path.stem, len(model.graph.node), rewrites, min(alone), min(whole), size)


def main(folder: Path, level: int, runs: int) -> list[Row]:
    """Print a table of all models in a folder; return its rows."""
    print("| model | nodes | rewrites | run | run and page | added / run | page |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    rows = []
    for path in sorted(folder.glob("*.onnx")):
        row = measure(path, level, runs)
        rows.append(row)
        print(
            f"| {row.name} | {row.nodes:,} | {row.rewrites:,} | {row.alone * 1e3:.0f} ms"
            f" | {row.with_page * 1e3:.0f} ms | {row.ratio:.2f} | {row.size / 1024:.0f} KiB |",
            flush=True,
        )
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, required=True)
    parser.add_argument("--level", type=int, default=3)
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    main(given.models, given.level, given.runs)
