"""`tiered layout MODEL`: what Transposes cost, what can be saved, and why the others must stay.

`--json` prints one object: the fields of `tiered.layout.LayoutReport`, nested as they are there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from tiered import (
    LayoutReport,
    PassContext,
    layout_report,
    parse_pipeline,
    pipeline_for,
)
from tiered.cli.files import load_model, run_first
from tiered.cli.output.tables import print_table, size
from tiered.cli.output.terminal import Progress, print_json, printable, results
from tiered.cli.shapes import parse_dims, parse_shapes, set_shapes

FEW = 20
"""Rows of a table without -v."""


def run_layout(
    file: str,
    *,
    after: str,
    backend: str | None,
    input_shape: Sequence[str],
    dim: Sequence[str],
    as_json: bool,
    verbose: bool,
) -> None:
    """Print the report on the model of a file.

    Raises:
        UsageError: a wrong name or option.
        ModelError: the file cannot be read, or does not work with the shapes.
    """
    context = PassContext.isolated(opt_level=3, disabled=["convert_layout"], backend=backend)
    is_default = after == "default"
    first = pipeline_for(context.backend) if is_default else parse_pipeline(after)
    parse_shapes(input_shape), parse_dims(dim)
    with Progress() as progress:
        progress.say(f"reading {printable(file)}")
        model = load_model(file)
        set_shapes(model, input_shape, dim)
        if after:
            progress.say(f"running {after}")
            run_first(first, model, context)
        progress.say("placing Transposes")
        report = layout_report(model)
    if as_json:
        print_json(asdict(report) | {"greedy": report.greedy._asdict()})
    else:
        _print(report, None if verbose else FEW)


def _print(report: LayoutReport, limit: int | None) -> None:
    console = results()
    rows = [
        ("before", report.transposes[0], size(report.nbytes[0])),
        ("each operator on its own", report.greedy.transposes, size(report.greedy.nbytes)),
        ("after", report.transposes[1], size(report.nbytes[1])),
    ]
    print_table(console, "Transposes", ("", "number", "bytes moved"), rows)
    left = [
        (each.name, ",".join(map(str, each.perm)), size(each.nbytes), each.above, each.below)
        for each in report.left
    ]
    if left:
        headers = ("name", "perm", "bytes", "what stops it above", "what stops it below")
        print_table(console, "Transposes that stay", headers, left[:limit])
    if limit is not None and len(left) > limit:
        console.print(f"  and {len(left) - limit:,} more (-v lists them)")
