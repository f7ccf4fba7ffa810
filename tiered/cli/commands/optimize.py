"""`tiered optimize IN OUT`: read, run the passes, verify, write, print what changed."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING, Any

from tiered.cli.files import (
    check_data_files,
    check_input,
    check_output,
    choose_output,
    load_model,
)
from tiered.cli.flags import (
    LEVELS,
    OptimizeOptions,
    level_set,
    split_names,
    split_required,
    with_strip,
)
from tiered.cli.html import run_page_for
from tiered.cli.load_passes import load_passes, with_loads
from tiered.cli.outcome import Failed, Outcome, note_outcome
from tiered.cli.output.terminal import Progress, notes, print_json, printable, results
from tiered.cli.shapes import parse_dims, parse_shapes, shapes_of_inputs
from tiered.cli.sizes import size_option
from tiered.cli.watch import (
    Watchers,
    WatchOptions,
    check_watch,
    config_of,
    print_watched,
    watching,
)
from tiered.support.errors import (
    PassError,
    PreconditionError,
    TargetError,
    TieredError,
    UsageError,
    VerificationError,
)
from tiered.support.loading import paused_collector
from tiered.support.memory_limit import check_memory, limited

if TYPE_CHECKING:
    from tiered.cli.source_mark import SourceMark
    from tiered.graph import Model
    from tiered.graph.io.save import Placed, Storage
    from tiered.passes.interface.pass_info import PassInfo, PassResult
    from tiered.pipeline.result import OptimizeResult
    from tiered.verify.methods import How


def run_optimize(
    source: str, out: str | None, options: OptimizeOptions, watch: WatchOptions
) -> None:
    """Optimise the model of a file according to the options.

    Raises:
        UsageError: options that do not go together, a wrong name in one of them, or a file to
            write that holds another model.
        ModelError: a file cannot be read or written, or holds no model.
        VerificationError: the outputs of the result differ; nothing is written.
        TargetError: the result lacks an operator that is expected; nothing is written.
    """
    may_lack = options.dry_run or options.json or watch.print_pipeline
    target = choose_output(out, options.output, may_lack=may_lack)
    load_passes(options.load)
    options = with_strip(options)
    check_options(options, watch)
    if watch.print_pipeline:
        print_planned(options, watch)
        return
    check_input(source)
    if target is not None:
        check_target(source, target, options)
    optimize_file(source, target, options, watch, print_json)


def write_result(source: str, out: str | None, options: OptimizeOptions, what: str) -> None:
    """Run the passes of a command of its own on a file, and write the result.

    Args:
        source: the file to read.
        out: the file to write, as OUT; None for that of -o.
        options: with the passes.
        what: the text that describes the run.

    Raises:
        UsageError: options that do not go together, or a file to write that holds another model.
        ModelError: a file cannot be read or written, or holds no model.
        VerificationError: the outputs of the result differ; nothing is written.
    """
    target = choose_output(out, options.output, may_lack=options.dry_run or options.json)
    check_options(options, WatchOptions())
    check_input(source)
    if target is not None:
        check_target(source, target, options)
    optimize_file(source, target, options, WatchOptions(), print_json, what)


def check_target(source: str, target: str, options: OptimizeOptions, *more: str) -> None:
    """Check the file to write, before any work is done.

    Args:
        source: the file to read.
        target: the file to write.
        options: the options that say whether it may be replaced.
        more: other files to read, if the result is one of several models.

    Raises:
        UsageError: it is a model that must not be replaced.
        ModelError: nothing can be written there.
    """
    for read in (source, *more, *([] if options.result_of is None else [options.result_of])):
        check_input(read)
        check_output(read, target)
    if not options.force and not options.dry_run and os.path.exists(target):
        from tiered.cli.source_mark import check_replaced

        hint = ", or --out-dir DIR if both are inputs"
        check_replaced(options.result_of or source, *more, target=target, hint=hint)


def optimize_file(
    source: str,
    target: str | None,
    options: OptimizeOptions,
    watch: WatchOptions,
    show: Callable[[dict[str, Any]], None],
    what: str = "",
) -> None:
    """Optimise one model; options and files must be checked before.

    Args:
        source: the file to read.
        target: the file to write; None for none.
        options: how to optimise it.
        watch: the instruments to use.
        show: receives the record that `--json` prints.
        what: the text that describes the run, if the options do not.
    """
    if options.dry_run:
        target = None
    from tiered.pipeline.expectations import check_expectations, parse_expectations

    result, passes, placed = None, _Passes(), None
    expectations = parse_expectations(options.expect)
    try:
        with (
            _bounded(options, watch),
            watching(watch) as watchers,
            Progress(enabled=not options.quiet) as progress,
            paused_collector(),
            run_page_for(
                watch.html, watchers.trace, source, times=not watch.html_without_times
            ) as page,
        ):
            if options.json:  # An instrument makes each pass slower.
                watchers.instruments.append(passes)
            with _reproducing(source, options, watch):
                result, unjudged, mark = _optimize(source, target, options, watchers, progress)
            check_expectations(
                expectations, result.after, result.pipeline, result.remarks, unjudged
            )
            if target is not None:
                progress.say(f"writing {printable(target)}")
                check_memory()
                assert mark is not None, "there is a mark for each target"
                placed = save_marked(result.model, target, mark, options)
            _write_certificate(source, target, result)
            page.result = result
    except (VerificationError, TargetError) as error:
        if options.json:
            from tiered.cli.output.record import record_of

            failed = Failed(str(error), error.exit_code, passes.results)
            show(record_of(Outcome(source, None, options, result, failed)))
        raise
    outcome = Outcome(source, target, options, result, what=what)
    note_outcome(outcome)
    _print_outcome(outcome, result, watchers, show)
    if placed is not None and options.share_weights and not options.quiet:
        from tiered.cli.output.summary import sharing_notes

        for text in sharing_notes(placed, target or ""):
            notes().print(f"tiered: note: {printable(text)}", soft_wrap=True)


def _write_certificate(source: str, target: str | None, result: OptimizeResult) -> None:
    """Write the certificate of a run, if one was asked for."""
    if result.certify is not None and result.certify.file is not None:
        from tiered.certify.certificate import write_certificate

        write_certificate(result.certify.file, result.certify.findings, source, target)


def save_marked(model: Model, target: str, mark: SourceMark, options: OptimizeOptions) -> Placed:
    """Write a result that has its mark.

    Raises:
        UsageError: the file has a property that the result has not.
        ModelError: the file cannot be written.
    """
    from tiered.graph.io.save import save_model

    if not options.force and os.path.exists(target):
        from tiered.cli.source_mark import check_kept

        check_kept(target, mark, model, decided_by(options))
    return save_model(model, target, annotate=options.annotate, storage=storage_of(options))


def decided_by(options: OptimizeOptions) -> set[str]:
    """Return the properties of models that the listed and required passes decide."""
    from tiered.cli.source_mark import OPSET, PRECISION
    from tiered.passes.interface.registry import is_glob
    from tiered.pipeline import get_pass, parse_pipeline
    from tiered.support.numerics import Numerics

    required = (re.split("[:@]", name)[0] for name in split_required(options.require).names)
    passes = [get_pass(name) for name in required if not is_glob(name) and "/" not in name]
    if options.passes is not None:
        passes += parse_pipeline(options.passes).leaves()
    decided = {OPSET for each in passes if each.name == "convert_opset"}
    return decided | {PRECISION for each in passes if each.info.numerics is Numerics.LOSSY}


@contextlib.contextmanager
def _bounded(options: OptimizeOptions, watch: WatchOptions) -> Iterator[None]:
    """Limit the memory to --max-memory."""
    if options.max_memory is None and not watch.set:
        with limited(None):  # forgets the peak of an earlier run in this process
            yield
        return
    from tiered.context import PassContext
    from tiered.runtime.worker.limits import LEAST

    nbytes = PassContext(config=_settings(options, watch)["config"]).max_memory
    if nbytes is not None and nbytes < LEAST:
        raise UsageError(f"memory.max: {nbytes:,} bytes are too few to run; at least {LEAST:,}")
    with limited(nbytes):
        yield


@contextlib.contextmanager
def _reproducing(source: str, options: OptimizeOptions, watch: WatchOptions) -> Iterator[None]:
    """Write a bundle if a pass fails or the outputs differ, and add a note to the error."""
    try:
        yield
    except (VerificationError, PassError) as error:
        if options.reproducer is not None and error.exit_code != PreconditionError.exit_code:
            error.add_note(_reproduced(source, options, watch, error))
        raise


def _reproduced(
    source: str, options: OptimizeOptions, watch: WatchOptions, error: TieredError
) -> str:
    """Write a bundle of a failure and return the note for the error."""
    from tiered.extensions.debug import write_reproducer

    settings = {**_settings(options, watch), "opt_level": options.opt_level}
    settings.pop("rewrite_limit")
    folder = options.reproducer
    assert folder is not None
    given = options.input_shape, options.dim
    shapes = shapes_of_inputs(load_model(source), *given) if any(given) else {}
    # With other input shapes the numbers of the rewrites differ.
    within = None if shapes else getattr(error, "rewrites", None)
    try:
        blame = write_reproducer(
            source,
            folder,
            passes=options.passes,
            inputs=options.inputs,
            edits=_edits(options),
            input_shapes=shapes,
            within=within,
            **settings,
        )
    except TieredError as late:
        return f"no reproducer: {late}"
    if blame is None:
        return "no reproducer: the same run once more was right"
    return f"{blame}\nreproduce  {with_loads(f'tiered replay {folder}', options.load)}"


class _Passes:
    """An instrument that keeps the result of each pass, for a run that ends with an error."""

    def __init__(self) -> None:
        self.results: list[PassResult] = []

    def on_result(self, model: Model, result: PassResult) -> None:
        self.results.append(result)


def check_options(options: OptimizeOptions, watch: WatchOptions) -> None:
    """Check the options before any file is read.

    Raises:
        UsageError: options that do not go together, or a wrong value of one.
    """
    from tiered.pipeline.expectations import parse_expectations

    parse_expectations(options.expect)
    check_watch(watch)
    if options.certify is not None:
        from tiered.certify.instrument import certify_of

        certify_of(options.certify)
    if options.opt_level not in LEVELS:
        raise UsageError(f"-O takes 0 to {max(LEVELS)}, not {options.opt_level}")
    if options.quiet and options.verbose:
        raise UsageError("-q and -v are opposites; use one")
    if options.external_data is not None or options.share_weights:
        storage_of(options)  # raises if options contradict each other
    if options.passes is not None and not options.passes.strip():
        raise UsageError("--passes lists no pass; leave it out for the default pipeline")


def storage_of(options: OptimizeOptions) -> Storage:
    """Return the storage of the weights.

    Raises:
        UsageError: options that contradict each other, or an invalid size.
    """
    from tiered.graph.io.save import Storage

    if options.external_data is not None and options.single_file:
        raise UsageError("--external-data and --single-file are opposites; use one")
    if options.share_weights and options.single_file:
        raise UsageError("--share-weights and --single-file are opposites; use one")
    least = None
    if options.external_data is not None:
        least = size_option("--external-data", options.external_data)
    return Storage(least, options.single_file, options.share_weights)


def _edits(options: OptimizeOptions) -> tuple[str, ...]:
    """Return the edits of the pipeline: those of --edit, and the options of --require."""
    return (*options.edit, *split_required(options.require).edits)


def _settings(options: OptimizeOptions, watch: WatchOptions) -> dict[str, Any]:
    """Return the settings of the context."""
    config = config_of(watch.set)
    if options.max_memory is not None:
        size_option("--max-memory", options.max_memory)
        config["memory.max"] = options.max_memory
    return {
        "opt_level": level_set(options.opt_level),
        "required": split_required(options.require).names,
        "disabled": split_names(options.disable, "--disable"),
        "backend": options.backend,
        "strict": options.strict or None,
        "config": config,
        "rewrite_limit": watch.limit,
    }


def print_planned(options: OptimizeOptions, watch: WatchOptions) -> None:
    """Print which passes would run."""
    from tiered.cli.output.plan import print_plan
    from tiered.context import PassContext
    from tiered.pipeline import parse_pipeline
    from tiered.pipeline.optimize import settings_with_shapes

    given = parse_shapes(options.input_shape), parse_dims(options.dim)
    if options.passes is not None:
        parse_pipeline(options.passes)  # The context may name its groups.
    context = PassContext(**settings_with_shapes(_settings(options, watch), *given))
    print_plan(options.passes, _edits(options), context, options.json, *given)


def _optimize(
    source: str,
    target: str | None,
    options: OptimizeOptions,
    watchers: Watchers,
    progress: Progress,
) -> tuple[OptimizeResult, Collection[str], SourceMark | None]:
    """Return the result, the operators of --expect that only it can prove to exist, and the mark.

    The mark is written into the result; it is None if nothing is written.
    """
    settings = _settings(options, watchers.options)
    progress.say(f"reading {printable(source)}")
    from tiered.cli.source_mark import marked, source_mark
    from tiered.context import PassContext
    from tiered.graph.io.save import Storage, check_storage
    from tiered.pipeline import edited, parse_pipeline, pipeline_for
    from tiered.pipeline.expectations import check_names, parse_expectations
    from tiered.pipeline.optimize import optimize_model

    # Report a wrong name before a large model is read.
    how = _how(options.verify)
    shapes, dims = parse_shapes(options.input_shape), parse_dims(options.dim)
    passes = None if options.passes is None else parse_pipeline(options.passes)
    context = PassContext(**settings)
    pipeline = (
        pipeline_for(context.target, _edits(options))
        if passes is None
        else edited(passes, _edits(options))
    )
    model = load_model(source)
    check_memory()
    expectations = parse_expectations(options.expect)
    unjudged = check_names(expectations, model, context.backend, pipeline) if expectations else ()
    if target is not None:
        check_data_files(model, target)
        check_storage(model, storage_of(options))
    mark = None if target is None else source_mark(model, source, options.result_of)
    instruments = [*watchers.instruments, *([_PassNames(progress)] if progress.is_enabled else ())]
    result = optimize_model(
        model,
        **settings,
        passes=passes,
        edits=_edits(options),
        input_shapes=shapes,
        dims=dims,
        instruments=instruments,
        verify=how,
        certify=options.certify or False,
        inputs=options.inputs,
        test_shapes=parse_shapes(options.test_input_shape),
    )
    if mark is not None:
        is_stored_alike = not options.annotate and storage_of(options) == Storage()
        result = marked(result, mark, is_stored_alike=is_stored_alike)
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
    show: Callable[[dict[str, Any]], None],
) -> None:
    """Print the outcome on stdout, and warnings on stderr."""
    options = outcome.options
    if options.json:
        from tiered.cli.output.record import record_of

        show(record_of(outcome))
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
