"""Optimise one file as `tiered optimize` does: read, run the passes, verify, write, print."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from tiered.cli.bounded import within
from tiered.cli.files import load_model
from tiered.cli.html import run_page_for
from tiered.cli.load_passes import with_loads
from tiered.cli.outcome import Failed, Outcome, note_outcome
from tiered.cli.output.terminal import Progress, notes, print_json, printable, results
from tiered.cli.prepared import PreparedRun, decided_by
from tiered.cli.shapes import shapes_of_inputs
from tiered.cli.shared_options import OptimizeOptions
from tiered.cli.watch import Watchers, WatchOptions, print_watched, watching
from tiered.cli.writing import Goal
from tiered.support.errors import (
    PassError,
    PreconditionError,
    TargetError,
    TieredError,
    VerificationError,
)
from tiered.support.loading import paused_collector
from tiered.support.memory_limit import check_memory

if TYPE_CHECKING:
    from tiered.cli.source_mark import SourceMark
    from tiered.graph import Model
    from tiered.passes import Pass
    from tiered.passes.interface.pass_info import PassInfo, PassResult
    from tiered.pipeline.result import OptimizeResult
    from tiered.verify.methods import How


def run_prepared(prepared: PreparedRun, source: str, out: str | None) -> None:
    """Optimise the model of a file, or print which passes would run.

    Args:
        prepared: how.
        source: the file to read.
        out: the file to write, as OUT; None for that of -o.

    Raises:
        UsageError: a wrong name in an option, or a file to write that holds another model.
        ModelError: a file cannot be read or written, or holds no model.
        VerificationError: the outputs of the result differ; nothing is written.
        TargetError: the result does not meet an expectation; nothing is written.
    """
    if prepared.watch.print_pipeline:
        from tiered.cli.output.printed_pipeline import print_plan

        print_plan(prepared)
    else:
        optimize_file(prepared, Goal.of(source, out, prepared.options))


def write_result(
    source: str,
    out: str | None,
    options: OptimizeOptions,
    passes: Sequence[Pass],
    what: str,
    *,
    html: str | None = None,
    command: str = "optimize",
) -> None:
    """Run the passes of a command of its own on a file, and write the result.

    Args:
        source: the file to read.
        out: the file to write, as OUT; None for that of -o.
        options: of the run.
        passes: what the command does.
        what: the text that describes the run.
        html: the file for a page of the run; None for none.
        command: the command, for the heading of the page.

    Raises:
        UsageError: options that do not go together, or a file to write that holds another model.
        ModelError: a file cannot be read or written, or holds no model.
        VerificationError: the outputs of the result differ; nothing is written.
    """
    prepared = PreparedRun.of(options, WatchOptions(html=html), passes)
    goal = Goal.of(source, out, prepared.options)
    optimize_file(prepared, goal, what=what, command=command)


def optimize_file(
    prepared: PreparedRun, goal: Goal, what: str = "", command: str = "optimize"
) -> None:
    """Optimise one model.

    Args:
        prepared: how.
        goal: the files.
        what: the text that describes the run, if the options do not.
        command: the command, for the heading of its page.

    Raises:
        UsageError: a wrong name in an option, or a file to write that has what the result has not.
        ModelError: a file cannot be read or written, or holds no model.
        VerificationError: the outputs of the result differ; nothing is written.
        TargetError: the result does not meet an expectation; nothing is written.
    """
    (source,), target = goal.sources, goal.written
    options, watch = prepared.options, prepared.watch
    result, passes, placed = None, _PassResults(), None
    try:
        with (
            _bounded(prepared),
            watching(watch) as watchers,
            Progress(enabled=not options.quiet) as progress,
            paused_collector(),
            run_page_for(
                watch.html,
                watchers.trace,
                source,
                times=not watch.html_without_times,
                command=command,
                target=target,
                edits=options.edit,
            ) as page,
        ):
            if options.json:  # An instrument makes each pass slower.
                watchers.instruments.append(passes)
            with _reproducing(source, prepared):
                result, unjudged, mark = _optimize(prepared, goal, watchers, progress)
            _check_expectations(prepared, result, unjudged)
            if target is not None:
                progress.say(f"writing {printable(target)}")
                check_memory()
                placed = goal.save(result.model, mark, decided_by(prepared))
            _write_certificate(source, target, result)
            page.result = result
    except (VerificationError, TargetError) as error:
        if options.json:
            from tiered.cli.output.record import record_of

            failed = Failed(str(error), error.exit_code, passes.results)
            print_json(record_of(Outcome(source, None, prepared, result, failed)))
        raise
    outcome = Outcome(source, target, prepared, result, what=what)
    note_outcome(outcome)
    _print_outcome(outcome, result, watchers)
    if placed is not None and options.share_weights and not options.quiet:
        from tiered.cli.output.summary import sharing_notes

        for text in sharing_notes(placed, target or "", goal.storage.suffix):
            notes().print(f"tiered: note: {printable(text)}", soft_wrap=True)


def _check_expectations(
    prepared: PreparedRun, result: OptimizeResult, unjudged: Collection[str]
) -> None:
    if prepared.expectations:
        from tiered.pipeline.expectations import check_expectations

        given = result.after, result.pipeline, result.remarks, unjudged
        check_expectations(prepared.expectations, *given)


def _write_certificate(source: str, target: str | None, result: OptimizeResult) -> None:
    """Write the certificate of a run, if one was asked for."""
    if result.certify is not None and result.certify.file is not None:
        from tiered.certify.certificate import write_certificate

        write_certificate(result.certify.file, result.certify.findings, source, target)


def _bounded(prepared: PreparedRun) -> contextlib.AbstractContextManager[None]:
    """Limit the memory to --max-memory."""
    config = prepared.settings["config"]
    if not config:
        return within(None, "memory.max")
    from tiered.context import PassContext

    return within(PassContext(config=config).max_memory, "memory.max")


@contextlib.contextmanager
def _reproducing(source: str, prepared: PreparedRun) -> Iterator[None]:
    """Write a bundle if a pass fails or the outputs differ, and add a note to the error."""
    try:
        yield
    except (VerificationError, PassError) as error:
        folder = prepared.options.reproducer
        if folder is not None and error.exit_code != PreconditionError.exit_code:
            error.add_note(_reproduced(source, folder, prepared, error))
        raise


def _reproduced(source: str, folder: str, prepared: PreparedRun, error: TieredError) -> str:
    """Write a bundle of a failure and return the note for the error."""
    from tiered.extensions.debug import write_reproducer

    options = prepared.options
    settings = {**prepared.settings, "opt_level": options.opt_level}
    settings.pop("rewrite_limit")
    given = options.input_shape, options.dim
    shapes = shapes_of_inputs(load_model(source), *given) if any(given) else {}
    # With other input shapes the numbers of the rewrites differ.
    within = None if shapes else getattr(error, "rewrites", None)
    try:
        blame = write_reproducer(
            source,
            folder,
            passes=prepared.passes,
            inputs=options.inputs,
            edits=prepared.edits,
            input_shapes=shapes,
            within=within,
            **settings,
        )
    except TieredError as late:
        return f"no reproducer: {late}"
    if blame is None:
        return "no reproducer: the same run once more was right"
    return f"{blame}\nreproduce  {with_loads(f'tiered replay {folder}', options.load)}"


class _PassResults:
    """An instrument that keeps the result of each pass, for a run that ends with an error."""

    def __init__(self) -> None:
        self.results: list[PassResult] = []

    def on_result(self, model: Model, result: PassResult) -> None:
        self.results.append(result)


def _optimize(
    prepared: PreparedRun, goal: Goal, watchers: Watchers, progress: Progress
) -> tuple[OptimizeResult, Collection[str], SourceMark | None]:
    """Return the result, the operators of --expect that only it can prove to exist, and the mark.

    The mark is written into the result; it is None if nothing is written.
    """
    (source,), options = goal.sources, prepared.options
    progress.say(f"reading {printable(source)}")
    from tiered.context import PassContext
    from tiered.pipeline.optimize import optimize_model, pipeline_of

    # Report a wrong name before a large model is read.
    how = _how(options.verify)
    # Made before the context: entries of the context may name groups of the pipeline.
    passes = None if prepared.passes is None else pipeline_of(prepared.passes)
    context = PassContext(**prepared.settings)
    pipeline = pipeline_of(passes, context.target, prepared.edits)
    model = load_model(source)
    check_memory()
    unjudged: Collection[str] = ()
    if prepared.expectations:
        from tiered.pipeline.expectations import check_names

        unjudged = check_names(prepared.expectations, model, context.backend, pipeline)
    mark = None if options.dry_run else goal.mark(model)
    instruments = [*watchers.instruments, *([_PassNames(progress)] if progress.is_enabled else ())]
    result = optimize_model(
        model,
        **prepared.settings,
        passes=prepared.passes,  # as given: what a glob stands for is not asked for by name
        edits=prepared.edits,
        input_shapes=prepared.shapes,
        dims=prepared.dims,
        instruments=instruments,
        verify=how,
        certify=options.certify or False,
        inputs=options.inputs,
        test_shapes=prepared.tested,
    )
    if mark is not None:
        from tiered.cli.source_mark import marked

        result = marked(result, mark, is_stored_alike=goal.is_stored_alike)
    return result, unjudged, mark


def _how(given: str | None) -> How:
    """Return the verification method; load its module only if it is used."""
    if given is None:
        return "off"
    from tiered.verify.methods import how_of

    return how_of(given)


class _PassNames:
    """An instrument that shows the running pass on the progress line."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def run_before_pass(self, model: Model, info: PassInfo) -> None:
        self._progress.say(info.name)


def _print_outcome(
    outcome: Outcome,
    result: OptimizeResult,
    watchers: Watchers,
) -> None:
    """Print the outcome on stdout, and warnings on stderr."""
    options = outcome.prepared.options
    if options.json:
        from tiered.cli.output.record import record_of

        print_json(record_of(outcome))
    if not options.quiet:
        from tiered.cli.output.summary import print_summary, warnings_of

        if not options.json:
            print_summary(results(), outcome, result)
        console = notes() if options.json else results()
        print_watched(console, watchers, result.remarks)
        if sys.stdout is not None:
            sys.stdout.flush()
        for text in warnings_of(result):
            notes().print(f"tiered: note: {printable(text)}", soft_wrap=True)
