"""Print the shortest list of commands that makes a model legal on a target, smaller, faster.

Each is tried in memory: dims, versions, quantisation, integers, precision, cutting. The table
says what each gains. Exit code 4 if nothing makes any part of the model legal.

Examples:
    tiered doctor in.onnx --backend npu.toml --inputs samples
    tiered doctor in.onnx

With `--json` one object:
    model, backend: null for any runtime.
    legal: whether the model is legal as it is; legal_after: with the commands; has_a_way: whether
        at least a part of it can be cut out for the target (if not, the exit code is 4).
    complaint, complaint_after: why onnxruntime does not open it, without a target; "" if it does.
    before, after: {nodes, operators, parameters, bytes}.
    target_before, target_after: {nodes, taken, model, gaps}, as of `tiered prepare --json`.
    remedies: [{what, why}] that were found to be needed.
    steps: as of `tiered prepare --json`: what each command gains.
    commands: command lines, to paste; command: the same in one run.
    failed: remedies that could not be applied, with the reason.
    suggestions: [{what, why, command, nodes, bytes, error}]; nodes and bytes are [before, after].
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tiered.cli.files import check_input, load_model
from tiered.cli.output.tables import Number, change, print_table, size
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shared_options import BackendName, Json, Level, ModelFile, Names, Verbose
from tiered.support.amounts import counted
from tiered.support.errors import TargetError
from tiered.support.records import Record

if TYPE_CHECKING:
    from rich.console import Console

    from tiered.extensions.preparation.diagnosis import Diagnosis
    from tiered.targets import Coverage

FEW = 5
"""Rows of reasons without -v."""


class DoctorOptions(Record):
    """The options of `tiered doctor`."""

    backend: BackendName = None
    """The target: a name that `tiered backends` lists, or a TOML file; any runtime by default."""
    opt_level: Level = 3
    """The level of the passes that are tried."""
    inputs: Names = ()
    """Samples, for what quantises: x.npy, feeds.npz or a folder; generated without any."""
    json: Json = False
    verbose: Verbose = False
    """List all reasons."""


def doctor(file: ModelFile, /, *, options: DoctorOptions) -> None:
    """Print what makes the model of a file legal on a target, smaller and faster.

    Args:
        file: The ONNX file to read; nothing is written.

    Raises:
        UsageError: a wrong option.
        ModelError: the file cannot be read.
        TargetError: nothing makes any part of it legal.
    """
    check_input(file)
    with Progress(enabled=not options.json) as progress:
        from tiered.extensions.preparation.advice import diagnose
        from tiered.extensions.preparation.preparation_options import target_of

        if options.backend is not None:
            target_of(options.backend)  # reports a wrong name before a large model is read
        progress.say(f"reading {printable(file)}")
        found = diagnose(
            load_model(file),
            backend=options.backend,
            opt_level=options.opt_level,
            inputs=options.inputs,
            source=file,
            on_step=progress.say,
        )
    if options.json:
        print_json(found.record())
    else:
        _print(results(), found, None if options.verbose else FEW)
    if not found.has_a_way:
        reasons = _reasons(found)
        raise TargetError(f"nothing makes {printable(file)!r} legal{_on(found)}: {reasons}")


def _on(found: Diagnosis) -> str:
    return f" on {found.backend}" if found.backend else " for onnxruntime"


def _reasons(found: Diagnosis) -> str:
    coverage = found.made.coverage
    if coverage is None:
        return printable(found.complaint_after)
    rows = [str(refusal) for refusal in coverage.model]
    return printable("; ".join([*rows, *map(str, coverage.gaps[:2])]))


# --- as text --------------------------------------------------------------------------------------


def _print(console: Console, found: Diagnosis, limit: int | None) -> None:
    console.print(printable(_verdict(found)), soft_wrap=True)
    if not found.is_legal and found.coverage is not None:
        _print_gaps(console, "Why not, as it is", found.coverage, limit)
    if found.commands():
        _print_commands(console, found)
    left = found.made.coverage
    if left is not None and not left.is_met:
        _print_gaps(console, "What stays on the host", left, limit)
    if found.suggestions:
        _print_suggestions(console, found)
    for text in dict.fromkeys(found.failed):
        console.print(printable(f"cannot be applied: {text}"), soft_wrap=True)


def _verdict(found: Diagnosis) -> str:
    nodes = counted(found.statistics.nodes, "node")
    head = f"{found.source}{_on(found)}: {nodes}, {size(found.statistics.nbytes)}"
    if found.is_legal:
        return f"{head}; legal as it is"
    if found.coverage is not None:
        return f"{head}; {_share(found.coverage)} as it is"
    return f"{head}; not opened: {found.complaint}"


def _share(coverage: Coverage) -> str:
    taken = coverage.nodes - coverage.refused.total()
    model = "".join(f", and not the model: {refusal}" for refusal in coverage.model)
    return f"{taken:,} of {counted(coverage.nodes, 'node')} taken{model}"


def _print_gaps(console: Console, title: str, coverage: Coverage, limit: int | None) -> None:
    rows = [(gap.operator, len(gap.nodes), "; ".join(gap.reasons)) for gap in coverage.gaps]
    if rows:
        print_table(console, title, ("operator", "nodes", "reason"), rows, limit=limit)


def _print_commands(console: Console, found: Diagnosis) -> None:
    done = found.made.changing
    rows = []
    for each in done:
        all_nodes = (each.taken or 0) + (each.refused or 0)
        rows.append(
            (
                f"{each.step.name} {each.step.what}".strip(),
                Number(change(each.before.nodes, each.after.nodes) or "same"),
                Number(change(each.before.nbytes, each.after.nbytes) or "same"),
                Number("" if each.taken is None else f"{each.taken:,} of {all_nodes:,}"),
            )
        )
    headers = ("step", "nodes", "bytes", "taken then")
    print_table(console, "What each step gains", headers, rows)
    for remedy in found.remedies:
        console.print(printable(f"{remedy.what}: {remedy.why}"), soft_wrap=True)
    console.print()
    console.print("Commands:")
    for line in found.commands():
        console.print(printable(f"  {line}"), soft_wrap=True)
    console.print("in one run, verified:")
    console.print(printable(f"  {found.line()}"), soft_wrap=True)
    if "int8" in found.made.options.to and not found.made.options.precision.inputs:
        console.print("  (add --inputs SAMPLES: without, ranges are those of generated inputs)")


def _print_suggestions(console: Console, found: Diagnosis) -> None:
    rows = [
        (
            each.what,
            Number(change(each.before.nodes, each.after.nodes) or "same"),
            Number(change(each.before.nbytes, each.after.nbytes) or "same"),
            each.error.partition(": ")[2],
        )
        for each in found.suggestions
    ]
    print_table(console, "Smaller, faster", ("beside that", "nodes", "bytes", "costs"), rows)
    for each in found.suggestions:
        console.print(printable(f"  {each.line}"), soft_wrap=True)
