"""`tiered layout MODEL`: the cost of Transposes, the possible saving, and why others must stay.

`--json` prints one object: the fields of `tiered.LayoutReport`, nested as they are there.
"""

from __future__ import annotations

import os
from dataclasses import asdict

from tiered import (
    LayoutReport,
    PassContext,
    layout_report,
    parse_pipeline,
    pipeline_for,
)
from tiered.cli.command_flags import ReadOptions
from tiered.cli.files import run_first
from tiered.cli.html import check_html
from tiered.cli.output.tables import print_table, size
from tiered.cli.output.terminal import Progress, print_json, results
from tiered.cli.shapes import load_shaped
from tiered.support.pages.render import write_page

FEW = 20
"""Rows of a table without -v."""


def run_layout(
    file: str,
    *,
    after: str,
    backend: str | None,
    html: str | None,
    options: ReadOptions,
) -> None:
    """Print the report on the model of a file.

    Raises:
        UsageError: a wrong name or option.
        ModelError: a file cannot be read or written, or the model does not work with the shapes.
    """
    check_html(html)
    context = PassContext.isolated(opt_level=3, disabled=["convert_layout"], backend=backend)
    is_default = after == "default"
    first = pipeline_for(context.backend) if is_default else parse_pipeline(after)
    with Progress() as progress:
        model = load_shaped(file, options, progress)
        if after:
            progress.say(f"running {after}")
            run_first(first, model, context)
        progress.say("placing Transposes")
        report = layout_report(model)
    if html is not None:
        from tiered.analysis.layout.page import layout_page

        write_page(html, layout_page(report, os.path.basename(file)))
    if options.json:
        print_json(asdict(report) | {"greedy": report.greedy._asdict()})
    else:
        _print(report, None if options.verbose else FEW)


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
        headers = ("name", "perm", "bytes", "blocked above by", "blocked below by")
        print_table(console, "Transposes that stay", headers, left[:limit])
    if limit is not None and len(left) > limit:
        console.print(f"  and {len(left) - limit:,} more (-v lists them)")
