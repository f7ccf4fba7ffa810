"""Measure the latency of a model on onnxruntime, or of several side by side.

The models run alternately, each in a process of its own, in rounds of new processes. Start
time, memory and file size are printed beside.

Examples:
    tiered bench before.onnx after.onnx
    tiered bench before.onnx after.onnx --expect 'B<=0.9*A' --dim batch=1 --json
    tiered bench in.onnx --threads 4 --runtime-level off --inputs feeds.npz

With `--json`, one object; times are in seconds:
    provider, threads, runtime_level, clock, onnxruntime: how the models ran.
    rounds: how many sets of processes were measured; confidence: of the intervals.
    inputs: what the models ran on, in words.
    models: [{letter, file, runs, latency, start, memory, file_bytes}]; latency and start are
        {low, median, high}; memory is what opening and running add to the peak of the process, null
        if unknown.
    ratios: [{of, to, low, median, high, verdict}], each model but A beside A; the verdict is
        faster, slower, no difference, or too few rounds.
    expectations: [{text, ok, reason}]; if one is not ok, the exit code is 4. Empty if interrupted.
    remarks: on the machine and the figures.
    interrupted: whether it was ended before its last round.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

from tiered.cli.files import check_input
from tiered.cli.line.declaration import Flags
from tiered.cli.measuring import Runs
from tiered.cli.output.tables import Number, print_table, seconds, short_time, size
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shared_options import Json, Names
from tiered.graph.shape_text import parse_dims, parse_shapes
from tiered.runtime.opening import Clock
from tiered.support.amounts import counted

if TYPE_CHECKING:
    from rich.console import Console

    from tiered.extensions.measurement.claims import Claim
    from tiered.extensions.measurement.latency_result import Bench
    from tiered.extensions.measurement.medians import MedianInterval

MODELS: Final = ("", "model", "latency", "interval", "runs", "start", "memory", "file")
RATIOS: Final = ("", "model", "ratio to A", "interval", "verdict")


class BenchOptions(Runs):
    """The options of `tiered bench`."""

    clock: Clock = "wall"
    """The time that passes, or only that of the processor (one thread, CPU)."""
    minutes: float = 2.0
    """Limit of the measurement; small models take seconds."""
    runs: int | None = None
    """Limit of the timed runs of each model."""
    rounds: int = 12
    """How many times each model is opened, at most; more give narrower intervals."""
    expect: Names = ()
    """Exit code 4 unless the whole interval of a ratio is within this: 'B<=0.9*A'. Repeatable."""
    json: Json = False


def bench(
    first: Annotated[str, Flags("A")], /, *others: Annotated[str, Flags("B")], options: BenchOptions
) -> None:
    """Measure the models of files, and print what was measured, also if it is interrupted.

    Args:
        first: The ONNX file to measure.
        others: ONNX files with the same inputs, compared with A.

    Raises:
        UsageError: an option is wrong, or models take different inputs.
        ModelError: a file cannot be read.
        RuntimeFailure: onnxruntime does not open or run a model.
        TargetError: an expectation does not hold.
    """
    files = [first, *others]
    shapes, dims = parse_shapes(options.input_shape), parse_dims(options.dim)
    for file in files:
        check_input(file)
    from tiered.extensions.measurement.latency_bench import How, claims_of, prepare
    from tiered.extensions.measurement.trials import Trials

    claims = claims_of(options.expect, len(files))
    how = How(
        options.provider, options.threads, options.runtime_level, options.clock, options.minutes,
        options.runs, options.rounds,
    )  # fmt: skip
    trials = Trials(len(files))
    with Progress(enabled=not options.json) as progress:
        progress.say(f"opening {', '.join(map(printable, files))}")
        job = prepare(
            files, how, inputs=options.inputs, seed=options.seed, dims=dims, input_shapes=shapes
        )
        try:
            job.measure(trials, lambda text: progress.say(f"measuring: {text}"))
        except KeyboardInterrupt:
            if trials.usable:
                _print(job.result(trials, is_complete=False), options, ())
            raise
    found = job.result(trials)
    _print(found, options, claims)
    found.check(claims)


def _print(found: Bench, options: BenchOptions, claims: Sequence[Claim]) -> None:
    if options.json:
        print_json(_record(found, claims))
        return
    console = results()
    print_table(console, _title(found), MODELS, [
        (
            each.letter, each.name, short_time(each.latency.median), _span(each.latency), each.runs,
            seconds(each.start.median), None if each.memory is None else size(each.memory),
            size(each.file_bytes),
        )
        for each in found.models
    ])  # fmt: skip
    if found.ratios:
        names = {each.letter: each.name for each in found.models}
        print_table(console, "Beside A", RATIOS, [
            (
                each.of, names[each.of], Number(f"{each.interval.median:.3f}"),
                f"{each.interval.low:.3f} to {each.interval.high:.3f}", each.verdict,
            )
            for each in found.ratios
        ])  # fmt: skip
    _print_remarks(console, found)


def _print_remarks(console: Console, found: Bench) -> None:
    for remark in found.remarks:
        console.print(printable(remark), soft_wrap=True)


def _title(found: Bench) -> str:
    import onnxruntime

    opening = found.opening
    threads = counted(opening.threads, "thread") if opening.threads else "its choice of threads"
    return (
        f"onnxruntime {onnxruntime.__version__}, {opening.provider}, {threads}, optimisations "
        f"{opening.level}; {found.clock} time, {counted(len(found.rounds), 'round')}, "
        f"{found.models[0].latency.confidence:.1%} intervals"
    )


def _span(found: MedianInterval) -> str:
    return f"{short_time(found.low)} to {short_time(found.high)}"


def _record(found: Bench, claims: Sequence[Claim]) -> dict[str, Any]:
    import onnxruntime

    reasons = [(str(claim), found.shortfall(claim)) for claim in claims]
    return {
        "provider": found.opening.provider,
        "threads": found.opening.threads,
        "runtime_level": found.opening.level,
        "clock": found.clock,
        "onnxruntime": onnxruntime.__version__,
        "rounds": len(found.rounds),
        "confidence": found.models[0].latency.confidence,
        "inputs": list(found.inputs),
        "models": [
            {
                "letter": each.letter,
                "file": each.name,
                "runs": each.runs,
                "latency": _ends(each.latency),
                "start": _ends(each.start),
                "memory": each.memory,
                "file_bytes": each.file_bytes,
            }
            for each in found.models
        ],
        "ratios": [
            {"of": each.of, "to": each.to, **_ends(each.interval), "verdict": each.verdict}
            for each in found.ratios
        ],
        "expectations": [
            {"text": text, "ok": not reason, "reason": reason} for text, reason in reasons
        ],
        "remarks": list(found.remarks),
        "interrupted": not found.is_complete,
    }


def _ends(found: MedianInterval) -> dict[str, float]:
    return {"low": found.low, "median": found.median, "high": found.high}
