"""Print the cost of Transposes, which ones can be removed, and what blocks the others.

A dynamic dim counts as 16.

Examples:
    tiered layout in.onnx --after default --dim batch=8

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
from tiered.cli.bounded import MemoryBound
from tiered.cli.files import run_first
from tiered.cli.output.tables import print_table, size
from tiered.cli.output.terminal import Progress, print_json, results
from tiered.cli.shapes import load_shaped
from tiered.cli.shared_options import BackendName, Html, ModelFile, ReadOptions
from tiered.support.pages.render import write_page

FEW = 20
"""Rows of a table without -v."""


def layout(
    file: ModelFile,
    /,
    *,
    after: str = "",
    backend: BackendName = None,
    html: Html = None,
    options: ReadOptions,
    bound: MemoryBound,
) -> None:
    """Print the report on the model of a file.

    Args:
        after: Passes to run first: 'default', 'a,b,fix(c,d)'.
        backend: The target; `--after default` runs its pipeline.
        html: Write a page that lists the Transposes, their costs, and the nodes that block them.

    Raises:
        UsageError: a wrong name or option.
        ModelError: a file cannot be read or written, or the model does not work with the shapes.
    """
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
        from tiered.analysis.layout.layout_page import layout_page

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
        print_table(console, "Transposes that stay", headers, left, limit=limit)
