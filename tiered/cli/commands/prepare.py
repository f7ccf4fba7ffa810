"""`tiered prepare MODEL OUT`: everything for production in one run, written whole or not at all.

With `--json`, and in the file of `--report`, one object:
    input, output, opt_level, backend; output is null if nothing was written.
    before, after: {nodes, operators: {type: count}, parameters, bytes}.
    interface: what differs from the model that was read, as text.
    steps: [{name, what, passes, opt_level, backend, changed, nodes, bytes, taken, refused, verdict,
        promise, largest_difference, found, seconds}], in order; taken and refused are the nodes
        that the target takes and refuses after the step, null without a target.
    pipeline: "name: passes" of each step that changed something; default is the default pipeline.
    commands: command lines that make the same bytes, one after the other.
    verified: whether each step that changed something was compared by runs.
    promise: of all steps together.
    error_of_whole: the error of the result against the original, in words; "" if not measured.
    stays_float: [{pass, reason, count, op_type, nodes}].
    target: null without a target; {nodes, taken, model, gaps: [{operator, reasons, count, nodes}]}:
        what stays on the host.
    seconds, versions; error, exit_code: null and 0, or the refusal of the target (4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from tiered.cli.command_flags import WriteOptions
from tiered.cli.commands.completion import complete_backend
from tiered.cli.commands.optimize import check_options, check_target, storage_of
from tiered.cli.files import check_data_files, check_input, check_output, choose_output, load_model
from tiered.cli.flags import Flag, InputShapes, Names, OptimizeOptions, strip_pass
from tiered.cli.output.preparation import print_prepared
from tiered.cli.output.terminal import Progress, notes, print_json, printable, results
from tiered.cli.shapes import parse_dims, parse_shapes
from tiered.cli.watch import WatchOptions
from tiered.support.errors import TargetError, UsageError
from tiered.support.whole_files import write_json

if TYPE_CHECKING:
    from tiered.cli.source_mark import SourceMark
    from tiered.extensions.preparation.options import PrepareOptions
    from tiered.extensions.preparation.result import Prepared
    from tiered.graph import Model


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class PreparationOptions:
    """The options of `tiered prepare`."""

    to: Names = ()
    """fp16, bf16 or mixed; fp8, int8, int8-dynamic, int8-weights or int4-weights; int32 (of int64).
    Repeatable; the order does not matter."""
    for_: Annotated[
        str | None,
        Parameter(name=["--for", "--backend"], show_default=False, completer=complete_backend),
    ] = None
    """The target: a name that `tiered backends` lists, or a TOML file; without one, any runtime.
    Or the processor of int8: avx2, vnni, any."""
    dim: Names = ()
    """Fix a dim by its name in all inputs that have it: batch=1. Repeatable."""
    input_shape: InputShapes = ()
    """As for `tiered optimize`."""
    opset: Annotated[
        int | None, Parameter(name=["--opset", "--target-opset"], show_default=False)
    ] = None
    """The opset of ONNX's own domain, up or down."""
    ir: Annotated[
        int | None, Parameter(name=["--ir", "--ir-version"], show_default=False)
    ] = None
    """The IR version."""
    expand: Annotated[bool, Flag] = False
    """With --opset: expand operators that it lacks into their function bodies."""
    opt_level: Annotated[int, Parameter(name=["--opt-level", "-O"])] = 3
    """As for `tiered optimize`; 2 keeps what is not converted the same bit for bit."""
    strip: Names = ()
    """As for `tiered optimize`: metadata, docs, names, marks or all."""
    budget: Annotated[str | None, Parameter(show_default=False)] = None
    """With --to: the limit of the outputs, as cosine>=0.999: of each conversion and of all."""
    order: Literal["auto", "error", "sensitivity"] = "auto"
    """With --budget: what returns to float first, as for `tiered convert`."""
    keep_ops: Names = ()
    """With --to: operators that stay as they are. Repeatable, and several with commas."""
    keep_nodes: Names = ()
    """With --to: globs of the names of nodes that stay as they are. Repeatable."""
    bounds: Names = ()
    """With --to int32: the range of an input, as ids=0:30000. Repeatable."""
    host: Annotated[bool, Flag] = False
    """With --for: write the result even if nodes stay on the host."""
    report: Annotated[str | None, Parameter(show_default=False)] = None
    """A file for what was done: .json."""


def run_prepare(
    source: str, out: str | None, options: PreparationOptions, write: WriteOptions
) -> None:
    """Prepare the model of a file.

    Raises:
        UsageError: options that do not go together, or a wrong name in one of them.
        ModelError: a file cannot be read or written.
        VerificationError: a step moved the outputs too far, or the budget does not hold; nothing
            is written.
        TargetError: the target does not take the result, or a conversion found nothing to convert;
            nothing is written.
    """
    writing = write.with_passes("default")
    target = choose_output(out, write.output, may_lack=write.dry_run or write.json)
    check_options(writing, WatchOptions())
    wanted, how = wanted_of(options, write), write.verify or "final"
    _check_files(source, target, writing, options.report)
    mark, placed = None, None
    with Progress(enabled=not (write.json or write.quiet)) as progress:
        from tiered.cli.source_mark import source_mark
        from tiered.extensions.preparation.prepare import prepare_model
        from tiered.extensions.preparation.steps import steps_of
        from tiered.graph.io.save import check_storage
        from tiered.verify.methods import how_of

        steps_of(wanted)  # reports a wrong name before a large model is read
        progress.say(f"reading {printable(source)}")
        model = load_model(source)
        if target is not None:
            check_data_files(model, target)
            check_storage(model, storage_of(writing))
            mark = source_mark(model, source, write.result_of)
        made = prepare_model(model, wanted, verify=how_of(how), on_step=progress.say)
        made = replace(made, source=source)
        refused = _refusal(made, host=options.host)
        if target is not None and not write.dry_run and mark is not None and refused is None:
            progress.say(f"writing {printable(target)}")
            _save(made, target, mark, writing)
            placed = target
    made = replace(made, out=placed or "")
    _print(made, target, options.report, write, refused)
    if refused is not None:
        raise refused


def wanted_of(options: PreparationOptions, write: WriteOptions) -> PrepareOptions:
    """Return what a model is to be prepared for.

    Raises:
        UsageError: a wrong value of an option, or options that do not go together.
    """
    from tiered.extensions.preparation.options import PrepareOptions, processor_in
    from tiered.extensions.preparation.precisions import PrecisionOptions

    if options.report is not None and not options.report.endswith(".json"):
        raise UsageError(f"--report {options.report!r}: expected a file .json")
    if options.strip:
        strip_pass(options.strip)  # raises if it names no part
    processor = processor_in(options.for_)
    backend = None if processor is not None else options.for_
    if options.host and backend is None:
        raise UsageError("--host has no effect: it needs --for with a target")
    return PrepareOptions(
        to=options.to,
        backend=backend,
        dims=parse_dims(options.dim),
        input_shapes=parse_shapes(options.input_shape),
        opset=options.opset,
        ir=options.ir,
        expand=options.expand,
        opt_level=options.opt_level,
        strip=options.strip,
        precision=PrecisionOptions(
            budget=options.budget or "",
            order=options.order,
            inputs=write.inputs,
            keep_ops=options.keep_ops,
            keep_nodes=options.keep_nodes,
            bounds=options.bounds,
            processor=processor,
        ),
    )


def _check_files(
    source: str, target: str | None, writing: OptimizeOptions, report: str | None
) -> None:
    check_input(source)
    if target is not None:
        check_target(source, target, writing)
    if report is None:
        return
    check_output(source, report)
    if target is not None:
        check_output(target, report)


def _refusal(made: Prepared, *, host: bool) -> TargetError | None:
    """Return why the result is not written; None if it is."""
    try:
        if not host:
            made.check_target()
    except TargetError as error:
        return error
    return None


def _save(made: Prepared, target: str, mark: SourceMark, writing: OptimizeOptions) -> None:
    from tiered.cli.source_mark import OPSET, PRECISION, check_kept, write_mark
    from tiered.graph.io.save import save_model

    model: Model = made.model
    if not any("marks" in each.split(",") for each in made.options.strip):
        write_mark(model, mark, made.carried)
    if not writing.force:
        asked = {OPSET} if made.options.opset is not None else set()
        check_kept(target, mark, model, asked | ({PRECISION} if made.options.to else set()))
    save_model(model, target, storage=storage_of(writing))


def _print(
    made: Prepared,
    target: str | None,
    report: str | None,
    write: WriteOptions,
    refused: TargetError | None,
) -> None:
    record: dict[str, Any] = {}
    if write.json or report is not None:
        from tiered.cli.output.record import versions

        record = {
            **made.record(),
            "commands": made.commands(out=target or ""),
            "versions": versions(),
            "error": None if refused is None else str(refused),
            "exit_code": 0 if refused is None else refused.exit_code,
        }
    if report is not None:
        write_json(report, record)
    if write.json:
        print_json(record)
    elif not write.quiet:
        print_prepared(results(), made, target or "", verbose=write.verbose)
    if not write.quiet:
        for text in dict.fromkeys(made.warnings):
            notes().print(f"tiered: note: {printable(text)}", soft_wrap=True)
