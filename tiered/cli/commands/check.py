"""Print the nodes that a target supports, and why it does not support the others.

Examples:
    tiered check in.onnx --backend npu.toml -O3 --dim batch=1

With `--json` one object:
    model, backend, opt_level.
    complaint: why onnx.checker, its inference included, rejects the model as it is; "" if not.
    is_met: whether the target takes the result of its pipeline.
    before, after: {nodes, taken, operators: [{operator, nodes, taken}], model: [reason],
        gaps: [{operator, reasons, count, nodes}]}, as the model is, and after the pipeline.
    mended: [{pass, operator, reasons, count, nodes}]: nodes that a pass removed or changed.
"""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING, Annotated, Any

from rich.console import Console

from tiered.cli.bounded import MemoryBound
from tiered.cli.line.candidates import complete_backend
from tiered.cli.line.declaration import Flags
from tiered.cli.output.report_page import write_report
from tiered.cli.output.summary import complaint_note
from tiered.cli.output.tables import print_table
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shapes import load_shaped
from tiered.cli.shared_options import Html, Level, ModelFile, Names, ReadOptions
from tiered.pipeline.leftovers import fixing_options
from tiered.support.amounts import counted
from tiered.support.errors import TargetError
from tiered.support.records import Record

if TYPE_CHECKING:
    from tiered.pipeline.target_check import TargetCheck
    from tiered.targets import Coverage, Gap

FEW = 10
"""Rows of a table, and names of nodes, without -v."""
EXAMPLES = 2


class CheckOptions(Record):
    """The target of `tiered check`, and the passes that may help."""

    backend: Annotated[str, Flags(completes=complete_backend)]
    """The target: a name that `tiered backends` lists, or a TOML file."""
    opt_level: Level = 2
    """The level of the passes that may replace unsupported nodes."""
    edit: Names = ()
    """Change the pipeline of the target: 'drop a', 'after a: b,c'. Repeatable."""
    html: Html = None
    """Write the report as a page, with all rows."""


def check(
    file: ModelFile, /, *, target: CheckOptions, options: ReadOptions, bound: MemoryBound
) -> None:
    """Print which nodes of a model a target takes.

    Raises:
        UsageError: a wrong name or option.
        ModelError: the file cannot be read.
        TargetError: the target does not take the whole result of its pipeline.
    """
    backend, opt_level, edits = target.backend, target.opt_level, target.edit
    from tiered.context import PassContext
    from tiered.pipeline import pipeline_for
    from tiered.pipeline.target_check import check_target

    # Report a wrong name before a large model is read.
    pipeline_for(PassContext(backend=backend).backend, edits)
    with Progress() as progress:
        model = load_shaped(file, options, progress)
        complaint = model.complaint() or ""
        progress.say("running the passes")
        check = check_target(model, edits=edits, opt_level=opt_level, backend=backend)
    given = os.path.basename(file), opt_level, check, complaint, None
    write_report(target.html, "check", [file], lambda console: _print(console, *given))
    if options.json:
        print_json(_described(file, opt_level, check, complaint))
    else:
        limit = None if options.verbose else FEW
        _print(results(), file, opt_level, check, complaint, limit)
        if not check.after.is_met:
            command = shlex.join(["tiered", "doctor", file, "--backend", target.backend])
            results().print(printable(f"what helps: {command}"), soft_wrap=True)
    if not check.after.is_met:
        raise TargetError(_verdict(check))


def _verdict(check: TargetCheck) -> str:
    after = check.after
    refused = after.refused
    parts = [f"{name} ({count})" for name, count in refused.most_common(3)]
    if len(refused) > len(parts):
        parts.append(counted(len(refused) - len(parts), "more operator"))
    parts += [str(refusal) for refusal in after.model]
    return f"{after.backend} does not take the model: {', '.join(parts)}"


# --- as text --------------------------------------------------------------------------------------


def _print(
    console: Console,
    file: str,
    opt_level: int,
    check: TargetCheck,
    complaint: str,
    limit: int | None,
) -> None:
    before, after, backend = check.before, check.after, check.before.backend
    console.print(printable(f"{file} on {backend}: {backend.doc or 'no description'}"))
    if complaint:
        console.print(complaint_note(complaint))
    for said, coverage in (("as it is", before), (f"after the passes of -O{opt_level}", after)):
        taken = coverage.nodes - coverage.refused.total()
        share = f" ({taken / coverage.nodes:.0%})" if coverage.nodes else ""
        nodes = counted(coverage.nodes, "node")
        console.print(f"  {said + ':':<27} {taken:,} of {nodes} taken{share}")
    _print_operators(console, before, limit)
    _print_mended(console, check, limit)
    _print_gaps(console, after, limit)
    if after.is_met:
        console.print(f"\n{backend} takes the model, once `tiered optimize` has run.")


def _print_operators(console: Console, coverage: Coverage, limit: int | None) -> None:
    refused = coverage.refused
    rows = [
        (name, count, count - refused[name], _mark(count, refused[name]))
        for name, count in sorted(
            coverage.operators.items(), key=lambda item: (-refused[item[0]], -item[1], item[0])
        )
    ]
    print_table(
        console,
        "The model as it is",
        ("operator", "nodes", "taken", ""),
        rows,
        limit=limit,
        more="more rows",
    )
    for refusal in coverage.model:
        console.print(printable(f"  the model itself: {refusal}"))


def _mark(nodes: int, refused: int) -> str:
    return "" if not refused else "no" if refused == nodes else "in part"


def _print_mended(console: Console, check: TargetCheck, limit: int | None) -> None:
    rows = [
        (mended.by, mended.operator, len(mended.labels), "; ".join(mended.reasons))
        for mended in check.mended
    ]
    if rows:
        headers = ("pass", "operator", "nodes", "reason")
        print_table(console, "Fixed by passes", headers, rows, limit=limit, more="more rows")


def _print_gaps(console: Console, coverage: Coverage, limit: int | None) -> None:
    if coverage.is_met:
        return
    rows = [
        (gap.operator, len(gap.nodes), "; ".join(gap.reasons), _examples(gap, limit))
        for gap in coverage.gaps
    ]
    headers = ("operator", "nodes", "why not", "for example")
    print_table(console, "Remaining", headers, rows, limit=limit, more="more rows")
    for refusal in coverage.model:
        console.print(printable(f"  the model itself: {refusal}"))
    if hint := _hint(coverage):
        console.print(printable(f"  dims can be fixed: {hint}"), soft_wrap=True)


def _hint(coverage: Coverage) -> str:
    """Return the options that fix the dynamic dims, if the target requires static shapes."""
    if coverage.backend.shapes == "dynamic" or not coverage.gaps:
        return ""
    return fixing_options(coverage.gaps[0].nodes[0].owner.model)


def _examples(gap: Gap, limit: int | None) -> str:
    shown = gap.nodes if limit is None else gap.nodes[:EXAMPLES]
    more = f", ... ({len(gap.nodes) - len(shown):,} more)" if len(gap.nodes) > len(shown) else ""
    return ", ".join(node.label for node in shown) + more


# --- as JSON --------------------------------------------------------------------------------------


def _described(file: str, opt_level: int, check: TargetCheck, complaint: str) -> dict[str, Any]:
    return {
        "model": file,
        "backend": check.before.backend.name,
        "opt_level": opt_level,
        "complaint": complaint,
        "is_met": check.after.is_met,
        "before": _coverage(check.before),
        "after": _coverage(check.after),
        "mended": [
            {
                "pass": mended.by,
                "operator": mended.operator,
                "reasons": list(mended.reasons),
                "count": len(mended.labels),
                "nodes": list(mended.labels),
            }
            for mended in check.mended
        ],
    }


def _coverage(coverage: Coverage) -> dict[str, Any]:
    refused = coverage.refused
    operators = [
        {"operator": name, "nodes": count, "taken": count - refused[name]}
        for name, count in sorted(coverage.operators.items())
    ]
    return {**coverage.record(), "operators": operators}
