"""Write the form of a model that is fastest on this machine, found by measurement.

Levels, backends, single passes and candidates are measured; the result is proved to be faster
than -O3, or is -O3, and never proved slower than the model as it is.

Examples:
    tiered tune in.onnx out.onnx --minutes 3 --html tune.html
    tiered tune in.onnx out.onnx --candidates a.onnx --save-backend tuned.toml
    tiered tune in.onnx out.onnx --backend npu.toml --measure 'npu-bench {model}'

With `--json`, one object:
    form, options: the settings of the result, and as options of `tiered optimize`.
    file: the candidate that it is made of, or "" for MODEL; is_original: whether it is MODEL as it
        is. output: the file that was written.
    reference: what it had to beat; beside_reference, beside_original: {low, median, high,
        confidence, rounds, verdict}, or null; the ratio is below 1 if the result is better.
    decisions: what it decides beside its level and backend.
    tried: [{stage, text, gain, taken, reason}], all that was looked at, in order.
    pipeline: its passes as text for `--passes`; backend: TOML that keeps its decisions.
    nodes, bytes: of the result; rounds: that were measured; reused: decisions known from --cache.
    interrupted, remarks.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Final

from tiered.cli.effects import Effect
from tiered.cli.files import check_input, check_output, load_model
from tiered.cli.measuring import Runs
from tiered.cli.output.tables import Number, print_table, size
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.pass_names import split_names
from tiered.cli.prepared import PreparedRun, decided_by
from tiered.cli.shared_options import (
    BackendName,
    Html,
    Json,
    ModelFile,
    Names,
    OptimizeOptions,
    Verbose,
)
from tiered.cli.writing import Goal, check_target
from tiered.graph.shape_text import parse_dims, parse_shapes
from tiered.runtime.opening import Clock
from tiered.support.amounts import counted
from tiered.support.errors import TargetError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from tiered.extensions.tuning.found import Tried
    from tiered.extensions.tuning.judges import Objective
    from tiered.extensions.tuning.race import Gain
    from tiered.extensions.tuning.tuning import TuningTask
    from tiered.extensions.tuning.tuning_result import Tuned

LOG: Final = ".tune.json"
"""What is added to the name of OUT for the log of the search."""
_TITLES: Final = ("stage", "form or decision", "ratio", "interval", "rounds", "taken", "reason")


class TuneOptions(Runs):
    """The options of `tiered tune`."""

    backend: BackendName = None
    """The target; by default standard operators, and on the CPU those of onnxruntime too."""
    minutes: float = 5.0
    """Limit of the search; the confirmation of its result may take longer."""
    objective: str = "latency"
    """What is made small: latency, memory (the peak of a process), or size (of the file)."""
    budget: str = "reassociating"
    """How far outputs may move: exact, reassociating, or 'cosine>=0.999'."""
    candidates: Names = ()
    """Files with other forms of the model, such as results of other tools. Repeatable."""
    measure: str | None = None
    """A command that prints a cost in its last line, as the judge: 'npu-bench {model}'."""
    clock: Clock = "wall"
    """The time that passes, or only that of the processor (one thread, CPU)."""
    resume: bool = False
    """Go on with a search that was ended: its log is OUT.tune.json."""
    cache: str | None = None
    """A folder for what decisions gain, for later models with equal blocks."""
    save_backend: str | None = None
    """A file for a backend (.toml) that keeps the decisions."""
    html: Html = None
    """Write a page of the search."""
    force: bool = False
    """Replace OUT even if it is an ONNX model that is not an earlier result of MODEL."""
    verbose: Verbose = False
    """Print all that was looked at, and the pipeline."""
    json: Json = False

    EFFECTS = (
        *Runs.EFFECTS,
        Effect(
            ("clock", "provider", "threads", "runtime_level", "input_shape", "dim"),
            "a measurement on onnxruntime, without --measure and --objective size",
            lambda of: of("measure") is None and of("objective") != "size",
        ),
    )


def tune(file: ModelFile, out: str, /, *, options: TuneOptions) -> None:
    """Tune the model of a file, and write the best form, also if the search is interrupted.

    Args:
        out: The file to write.

    Raises:
        UsageError: an option is wrong.
        ModelError: a file cannot be read or written.
        RuntimeFailure: the model cannot be measured.
        TargetError: the result is a file as it is, which no backend makes.
    """
    _check_files(file, out, options)
    task = _task(file, out, options)
    task.check()
    from tiered.extensions.tuning.tuning import tuning

    with (
        Progress(enabled=not options.json) as progress,
        tuning(task, lambda text: progress.say(f"tuning: {text}")) as run,
    ):
        try:
            run.search()
        except KeyboardInterrupt:
            if run.may_settle:
                run.settle()
                _finish(run.result(is_complete=False), file, out, options)
            raise
        progress.say(f"writing {printable(out)}")
        tuned = run.result(is_complete=True)
        _finish(tuned, file, out, options)
        run.end()
    if options.save_backend is not None and not tuned.backend:
        raise TargetError(
            f"--save-backend {options.save_backend!r} is not written: the result is "
            f"{tuned.form}, which no backend makes"
        )


def _check_files(file: str, out: str, options: TuneOptions) -> None:
    check_input(file)
    check_target(file, out, OptimizeOptions(force=options.force))
    if options.save_backend is not None:
        if not options.save_backend.endswith(".toml"):
            raise UsageError(f"--save-backend ends in .toml, not {options.save_backend!r}")
        check_output(file, options.save_backend)
    for written in (options.save_backend, options.html):
        if written is not None and os.path.realpath(written) in map(os.path.realpath, (file, out)):
            raise UsageError(f"{written!r} is MODEL or OUT; choose another file")


def _task(file: str, out: str, options: TuneOptions) -> TuningTask:
    from tiered.extensions.measurement.latency_bench import How
    from tiered.extensions.tuning.judges import objective_of
    from tiered.extensions.tuning.output_tolerance import parse_budget
    from tiered.extensions.tuning.tuning import TuningTask

    objective: Objective = objective_of(options.objective)
    return TuningTask(
        file,
        How(options.provider, options.threads, options.runtime_level, options.clock,
            options.minutes),
        objective,
        parse_budget(options.budget),
        options.backend,
        split_names(options.candidates, "--candidates"),
        tuple(options.inputs),
        options.seed,
        parse_dims(options.dim),
        parse_shapes(options.input_shape),
        options.measure,
        f"{out}{LOG}",
        options.resume,
        options.cache,
    )  # fmt: skip


def _finish(tuned: Tuned, file: str, out: str, options: TuneOptions) -> None:
    """Write the result, and print what the search came to."""
    from tiered.support.whole_files import write_text

    _write(tuned, file, out, options)
    if options.save_backend is not None and tuned.backend:
        write_text(options.save_backend, tuned.backend)
    if options.html is not None:
        _write_page(options.html, tuned, file, out, options)
    if options.json:
        print_json({**tuned.to_dict(), "output": out})
        return
    _print(results(), tuned, file, out, options)


def _write(tuned: Tuned, file: str, out: str, options: TuneOptions) -> None:
    """Write the model as `tiered optimize` does, with the mark of its source."""
    from tiered.cli.source_mark import marked, source_mark, write_mark
    from tiered.pipeline.optimize import optimize_model

    form = tuned.form
    model = load_model(form.file or file)
    mark = source_mark(model, form.file or file, file if form.file else None)
    if form.level is None:
        write_mark(model, mark)
    else:
        model = marked(optimize_model(model, **form.settings), mark).model
    asked = OptimizeOptions(force=options.force, require=form.required)
    Goal(out, (file,), asked).save(model, mark, decided_by(PreparedRun.of(asked)))


def _write_page(path: str, tuned: Tuned, file: str, out: str, options: TuneOptions) -> None:
    from tiered.cli.output.report_page import write_report
    from tiered.extensions.tuning.search_chart import search_svg

    name, whole = os.path.basename(file), options.changed(verbose=True)
    write_report(
        path,
        "tune",
        [file],
        lambda console: _print(console, tuned, name, os.path.basename(out), whole),
        {"Ratios of costs": search_svg(tuned)},
    )


def _print(console: Console, tuned: Tuned, file: str, out: str, options: TuneOptions) -> None:
    console.print(printable(f"{file} -> {out}: {tuned.form}"), soft_wrap=True)
    for name, gain in (
        (str(tuned.reference), tuned.beside_reference), ("the original", tuned.beside_original),
    ):  # fmt: skip
        if gain is not None:
            low, median, high = (f"{end:.3f}" for end in gain.ratio[:3])
            text = f"  {options.objective} {median} of {name} ({low} to {high}): {gain.verdict}"
            console.print(printable(text), soft_wrap=True)
    console.print(f"  {counted(tuned.nodes, 'node')}, {size(tuned.nbytes)}", soft_wrap=True)
    for choice in tuned.choices:
        console.print(printable(f"  decision: {choice.text}"), soft_wrap=True)
    for remark in tuned.remarks:
        console.print(printable(f"  {remark}"), soft_wrap=True)
    source = tuned.form.file or file
    if tuned.form.level is not None:
        chain = ("--result-of", file) if tuned.form.file else ()
        again = shlex.join(("tiered", "optimize", source, out, *tuned.form.options, *chain))
        console.print(printable(f"  again: {again}"), soft_wrap=True)
    shown = tuned.tried if options.verbose else [each for each in tuned.tried if _matters(each)]
    print_table(console, "What was looked at", _TITLES, [_row(each) for each in shown])
    if len(shown) < len(tuned.tried):
        console.print(f"  and {len(tuned.tried) - len(shown):,} more (-v lists them)")
    if options.verbose and tuned.pipeline:
        console.print()
        console.print(printable(f"--passes {shlex.quote(tuned.pipeline)}"), soft_wrap=True)


def _matters(each: Tried) -> bool:
    return each.is_taken or each.stage != "decision"


def _row(each: Tried) -> tuple[object, ...]:
    return (each.stage, each.text, *_cells(each.gain), "yes" if each.is_taken else "", each.reason)


def _cells(gain: Gain | None) -> tuple[object, ...]:
    if gain is None:
        return Number(""), Number(""), Number("")
    ratio = gain.ratio
    return (
        Number(f"{ratio.median:.3f}"),
        Number(f"{ratio.low:.3f} to {ratio.high:.3f}"),
        Number(str(gain.rounds)),
    )
