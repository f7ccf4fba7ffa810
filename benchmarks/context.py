"""What watching costs: the same passes by `apply`, in a context, and with instruments.

    python -m benchmarks.context --models examples/models --runs 9

Each run has a fresh view; the kinds take turns, so that what else the machine does hits all alike.
Times are CPU seconds of this thread, of which the fastest run counts: what is slower was disturbed.
A context may cost 5 % and a Trace 20 %: `--check` makes more than that an error.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable
from pathlib import Path

import cyclopts
import onnx

from tiered import Model, Pass, PassContext, Sequential, default_pipeline
from tiered.pipeline.instruments import Statistics, Timing, Trace
from tiered.support.loading import paused_collector

LIMITS = {"context": 1.05, "Trace": 1.20}
"""What each kind may cost, relative to `apply`."""

Run = Callable[[Sequential, Model], object]


def _in_context(*kinds: Callable[[], object]) -> Run:
    def run(pipeline: Sequential, model: Model) -> None:
        with PassContext(opt_level=4, instruments=[kind() for kind in kinds]):
            pipeline(model)

    return run


KINDS: dict[str, Run] = {
    "apply": lambda pipeline, model: pipeline.apply(model),
    "context": _in_context(),
    "Trace": _in_context(Trace),
    "Timing": _in_context(Timing),
    "Statistics": _in_context(Statistics),
}


def main(models: Path, runs: int) -> dict[tuple[str, str], float]:
    """Print a line for each model and kind, and return the ratios."""
    ratios: dict[tuple[str, str], float] = {}
    for file in sorted(models.glob("*.onnx")):
        proto = onnx.load(file, load_external_data=False)
        pipeline = executed(proto, str(file.parent))
        seconds = {kind: list[float]() for kind in KINDS}
        for turn in range(runs + 1):
            for kind, run in KINDS.items():
                taken = measured(run, pipeline, Model.from_proto(proto, folder=str(file.parent)))
                if turn:  # the first one loads modules and fills caches
                    seconds[kind].append(taken)
        print(f"{file.stem}, {len(proto.graph.node)} nodes, {len(pipeline)} passes")
        for kind, ratio in _ratios(seconds).items():
            ratios[file.stem, kind] = ratio
            print(f"  {kind:<12}{min(seconds[kind]) * 1e3:>9.1f} ms{ratio:>8.3f}", flush=True)
    return ratios


def executed(proto: onnx.ModelProto, folder: str) -> Sequential:
    """Return the passes of the default pipeline that run at level 3, in their order."""
    with PassContext(opt_level=3) as context:
        default_pipeline()(Model.from_proto(proto, folder=folder))
    passes: list[Pass | str] = [
        result.text for result in context.report.ran() if not result.needed_by
    ]
    return Sequential(passes)


def measured(run: Run, pipeline: Sequential, model: Model) -> float:
    """Return the CPU seconds of one run, without the garbage collector's."""
    gc.collect()
    with paused_collector():
        started = time.thread_time()
        run(pipeline, model)
        return time.thread_time() - started


def _ratios(seconds: dict[str, list[float]]) -> dict[str, float]:
    fastest = {kind: min(taken) for kind, taken in seconds.items()}
    return {kind: taken / fastest["apply"] for kind, taken in fastest.items()}


def command(*, models: Path = Path("examples/models"), runs: int = 9, check: bool = False) -> None:
    """Measure what watching passes costs.

    Args:
        models: the folder of the models.
        runs: how often each is run.
        check: fail where a limit is exceeded.
    """
    found = main(models, runs)
    worst = {kind: max(r for (_, k), r in found.items() if k == kind) for kind in LIMITS}
    over = [kind for kind, limit in LIMITS.items() if worst[kind] > limit]
    if check and over:
        sys.exit(f"over the limit: {', '.join(over)}")


if __name__ == "__main__":
    cyclopts.run(command)
