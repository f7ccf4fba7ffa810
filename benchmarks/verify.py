"""What `--verify=each` costs: in plain runs, of which it may need one, and one for each change.

    python -m benchmarks.verify --models examples/models --runs 3

A plain run opens the model in the worker and runs it on the inputs of the verification, no more.
Optimising with and without verification take turns; of each, and of plain runs, the fastest
counts. On Linux it is the processor time of both processes that counts, which others on the machine
disturb least, and elsewhere the time that passes. `--check` makes it an error if (1 + changing
passes) plain runs and 30 % are exceeded.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import cyclopts
import onnx

from tiered import OptimizeResult, optimize_model
from tiered.runtime import shared_worker
from tiered.runtime.inputs.samples import Sample
from tiered.support.loading import paused_collector

LIMIT = 1.3
LEVEL = 3


@dataclass(frozen=True)
class Cost:
    """What verification took.

    Attributes:
        runs: how many passes it ran the model after.
        plain: seconds of one plain run.
        extra: seconds that it added.
    """

    runs: int
    plain: float
    extra: float

    @property
    def ratio(self) -> float:
        """The added time, relative to the plain runs that are its due."""
        return self.extra / ((1 + self.runs) * self.plain)


def main(models: Path, runs: int) -> dict[str, Cost]:
    """Print a line for each model, and return what it cost."""
    costs: dict[str, Cost] = {}
    print(f"{'':24}{'nodes':>7}{'changes':>9}{'plain run':>12}{'added':>12}{'ratio':>8}")
    for file in sorted(models.glob("*.onnx")):
        proto = onnx.load(file)
        cost = costs[file.stem] = measured(proto, runs)
        times = f"{cost.plain * 1e3:>9.1f} ms{cost.extra * 1e3:>9.1f} ms{cost.ratio:>8.2f}"
        print(f"{file.stem:24}{len(proto.graph.node):>7}{cost.runs:>9}{times}", flush=True)
    return costs


def measured(proto: onnx.ModelProto, runs: int) -> Cost:
    """Return what verifying one model costs."""
    verified = optimize_model(proto, opt_level=LEVEL, verify=True)  # and all modules are loaded
    assert verified.verify is not None
    samples = verified.verify.samples
    seconds: dict[str, list[float]] = {"with": [], "without": [], "plain": []}
    for _ in range(runs):
        seconds["without"].append(_timed(lambda: optimize_model(proto, opt_level=LEVEL)))
        seconds["with"].append(_timed(lambda: optimize_model(proto, opt_level=LEVEL, verify=True)))
        seconds["plain"] += [_timed(lambda: _plain_run(proto, samples)) for _ in range(3)]
    least = {kind: min(taken) for kind, taken in seconds.items()}
    return Cost(verified.verify.runs, least["plain"], least["with"] - least["without"])


def _plain_run(proto: onnx.ModelProto, samples: Sequence[Sample]) -> None:
    with shared_worker(60.0, None).open(proto) as session:
        for sample in samples:
            session.run(sample.inputs.feeds)


def _timed(work: Callable[[], OptimizeResult | None]) -> float:
    gc.collect()
    with paused_collector():
        started = _clock()
        work()
        return _clock() - started


def _clock() -> float:
    """Return the seconds that this process and the worker have had of a processor, if known."""
    worker = shared_worker(60.0, None)
    worker.start()
    try:
        threads = list(Path(f"/proc/{worker.pid}/task").iterdir())
        spent = [int((thread / "schedstat").read_text().split()[0]) for thread in threads]
    except OSError:
        return time.perf_counter()
    return time.process_time() + sum(spent) / 1e9


def command(*, models: Path = Path("examples/models"), runs: int = 3, check: bool = False) -> None:
    """Measure what verifying each pass costs.

    Args:
        models: the folder of the models.
        runs: how often each is optimised with verification and without.
        check: fail where the limit is exceeded.
    """
    over = [name for name, cost in main(models, runs).items() if cost.ratio > LIMIT]
    if check and over:
        sys.exit(f"over the limit of {LIMIT}: {', '.join(over)}")


if __name__ == "__main__":
    cyclopts.run(command)
