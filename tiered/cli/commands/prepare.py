"""Prepare a model for production: dims, opset, precision, target and check, in one run.

The order of the steps follows from what is asked for. Each is compared with the model before
it, by default once (--verify=final), on --inputs if there are any. The summary lists them with
commands that make the same bytes, one after the other, what stays float, and what stays on the
host. Nothing is written unless all of them succeed.

Examples:
    tiered prepare in.onnx out.onnx --dim batch=1 --to fp16 --strip all
    tiered prepare in.onnx out.onnx --to int8 --for npu.toml --inputs samples
    tiered prepare in.onnx out.onnx --opset 17 --to mixed --budget 'cosine>=0.999'

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
    stays_float: [{kind, pass, reason, count, op_type, nodes}].
    target: null without a target; {nodes, taken, model, gaps: [{operator, reasons, count, nodes}]}:
        what stays on the host.
    seconds, versions; error, exit_code: null and 0, or the refusal of the target (4).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from tiered.cli.bounded import MemoryBound
from tiered.cli.conversions import Bounds, ConversionOptions, Narrowing, Versions
from tiered.cli.files import check_output, load_model
from tiered.cli.line.candidates import complete_backend
from tiered.cli.line.declaration import Flags
from tiered.cli.line.pass_options import PassOptions
from tiered.cli.output.preparation import print_prepared
from tiered.cli.output.terminal import Progress, notes, print_json, printable, results
from tiered.cli.pass_names import stripped_parts
from tiered.cli.shared_options import Level, ModelFile, Names, OutFile, WriteOptions
from tiered.cli.writing import Goal
from tiered.graph.shape_text import parse_dims, parse_shapes
from tiered.support.errors import TargetError, UsageError
from tiered.support.whole_files import write_json

if TYPE_CHECKING:
    from tiered.cli.source_mark import SourceMark
    from tiered.extensions.preparation.preparation_options import PrepareOptions
    from tiered.extensions.preparation.preparation_result import Prepared


class PreparationOptions(ConversionOptions):
    """The options of `tiered prepare` that no pass has."""

    to: Names = ()
    """fp16, bf16 or mixed; fp8, int8, int8-dynamic, int8-weights or int4-weights; int32 (of int64).
    Repeatable; the order does not matter."""
    for_: Annotated[str | None, Flags("--for", "--backend", completes=complete_backend)] = None
    """The target: a name that `tiered backends` lists, or a TOML file; without one, any runtime.
    Or the processor of int8: avx2, vnni, any."""
    opt_level: Level = 3
    """As for `tiered optimize`; 2 keeps what is not converted the same bit for bit."""
    host: bool = False
    """With --for: write the result even if nodes stay on the host."""
    report: str | None = None
    """A file for what was done: .json."""


def prepare(
    source: ModelFile,
    out: OutFile = None,
    /,
    *,
    options: PreparationOptions,
    versions: Versions,
    narrowing: Narrowing,
    bounds: Bounds,
    bound: MemoryBound,
    write: WriteOptions,
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
    wanted = _wanted(options, versions, narrowing, bounds, write.inputs)
    goal = Goal.of(source, out, write.for_optimize())
    for known in (source, goal.path):
        if options.report is not None and known is not None:
            check_output(known, options.report)
    placed = None
    with Progress(enabled=not (write.json or write.quiet)) as progress:
        from tiered.extensions.preparation.preparation_steps import steps_of
        from tiered.extensions.preparation.preparing import prepare_model
        from tiered.verify.methods import how_of

        steps_of(wanted)  # reports a wrong name before a large model is read
        progress.say(f"reading {printable(source)}")
        model = load_model(source)
        mark = goal.mark(model)
        made = prepare_model(
            model, wanted, verify=how_of(write.verify or "final"), on_step=progress.say
        )
        made = replace(made, source=source)
        refused = _refusal(made, host=options.host)
        if mark is not None and goal.written is not None and refused is None:
            progress.say(f"writing {printable(goal.written)}")
            _save(made, goal, mark)
            placed = goal.written
    made = replace(made, out=placed or "")
    _print(made, goal.path, options.report, write, refused)
    if refused is not None:
        raise refused


def _wanted(
    options: PreparationOptions,
    versions: PassOptions,
    narrowing: PassOptions,
    bounds: PassOptions,
    inputs: tuple[str, ...],
) -> PrepareOptions:
    """Return what a model is to be prepared for.

    Raises:
        UsageError: a wrong value of an option, or options that do not go together.
    """
    from tiered.extensions.preparation.precisions import PrecisionOptions
    from tiered.extensions.preparation.preparation_options import PrepareOptions, processor_in

    if options.report is not None and not options.report.endswith(".json"):
        raise UsageError(f"--report {options.report!r}: expected a file .json")
    stripped_parts(options.strip)  # raises if it names none
    processor = processor_in(options.for_)
    backend = None if processor is not None else options.for_
    if options.host and backend is None:
        raise UsageError("--host has no effect: it needs --for with a target")
    return PrepareOptions(
        to=options.to,
        backend=backend,
        dims=parse_dims(options.dim),
        input_shapes=parse_shapes(options.input_shape),
        opset=versions["to"] or None,
        ir=versions["ir"] or None,
        expand=options.expand,
        opt_level=options.opt_level,
        strip=options.strip,
        precision=PrecisionOptions(
            budget=narrowing["budget"],
            order=narrowing["order"],
            inputs=inputs,
            keep_ops=narrowing["skip_op_types"],
            keep_nodes=narrowing["skip_nodes"],
            bounds=bounds["bounds"],
            processor=processor,
        ),
    )


def _refusal(made: Prepared, *, host: bool) -> TargetError | None:
    """Return why the result is not written; None if it is."""
    try:
        if not host:
            made.check_target()
    except TargetError as error:
        return error
    return None


def _save(made: Prepared, goal: Goal, mark: SourceMark) -> None:
    from tiered.cli.source_mark import OPSET, PRECISION, write_mark

    if not any("marks" in each.split(",") for each in made.options.strip):
        write_mark(made.model, mark, made.carried)
    asked = {OPSET} if made.options.opset is not None else set()
    goal.save(made.model, mark, asked | ({PRECISION} if made.options.to else set()))


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
