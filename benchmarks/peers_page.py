"""What a run of `benchmarks.peers` found, as a picture and as a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from benchmarks.picture import Bar, picture

if TYPE_CHECKING:
    from benchmarks.peers import Row, Summary

_HEADERS = (
    "tool", "nodes", "bytes", "latency, optimisations off", "on", "optimise call", "whole process",
    "peak", "right",
)  # fmt: skip


def picture_of(summaries: Sequence[Summary], models: int, level: int) -> str:
    """Return the times of all tools as an SVG picture."""
    ordered = sorted(summaries, key=lambda summary: summary.optimize_ms)
    bars = [
        Bar(
            summary.tool,
            summary.optimize_ms,
            f"{summary.optimize_ms:,.0f} ms, {summary.right} of {summary.done} right",
            summary.tool.startswith("tiered"),
        )
        for summary in ordered
    ]
    note = f"geometric mean over the {models} models, tiered at -O{level}; shorter is faster"
    return picture("Optimising a model, file to file", note, bars)


def page_of(
    machine: Mapping[str, Any],
    rows: Sequence[Row],
    summaries: Sequence[Summary],
    *,
    level: int,
    runs: int,
) -> str:
    """Return the page: over all models, then what each tool leaves of each model."""
    from tiered.support.pages.render import page
    from tiered.support.pages.sections import Table, tables

    models = list(dict.fromkeys(row.model for row in rows))
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items())
    facts = [
        ("tiered at", f"-O{level}"),
        ("models", f"{len(models):,}"),
        ("measurements of each tool on each model", f"{runs:,}"),
        ("versions", versions),
        ("Python", str(machine["python"])),
        ("processors", str(machine["cpus"])),
    ]
    notes = [
        "Nodes, bytes and latency are relative to the original: lower is better. Each number over "
        "all models is a geometric mean, the peak a median.",
        "Right: on onnxruntime the result computes what the original does.",
    ]
    sections = [
        tables(
            "All models",
            Table("The run", ("", ""), facts),
            Table("Beside each other", _HEADERS, [_overall(each) for each in summaries]),
            notes=notes,
        ),
        _section("Nodes", models, rows, lambda row: f"{row.nodes:,}", "nodes_before"),
        _section("Bytes", models, rows, lambda row: f"{row.nbytes:,}", "nbytes_before"),
        _section("Latency, optimisations off", models, rows, lambda row: _times(row.off_ratio)),
        _section("Latency, optimisations on", models, rows, lambda row: _times(row.on_ratio)),
        _section("Result", models, rows, lambda row: row.status or "not run"),
    ]
    return page("tiered beside its peers", sections)


def _overall(summary: Summary) -> list[str]:
    return [
        summary.tool,
        _times(summary.nodes_ratio),
        _times(summary.nbytes_ratio),
        _times(summary.off_ratio),
        _times(summary.on_ratio),
        f"{summary.optimize_ms:,.0f} ms",
        f"{summary.process_ms:,.0f} ms",
        f"{summary.peak_mb:,.0f} MB",
        f"{summary.right} of {summary.done}",
    ]


def _section(
    title: str,
    models: Sequence[str],
    rows: Sequence[Row],
    cell: Callable[[Row], str],
    before: str = "",
) -> Any:
    """Return a table with a row for each model and a column for each tool."""
    from tiered.support.pages.render import short
    from tiered.support.pages.sections import Table, tables

    tools = list(dict.fromkeys(row.tool for row in rows))
    known = {(row.model, row.tool): row for row in rows}
    lines = []
    for model in models:
        own = [known[model, tool] for tool in tools if (model, tool) in known]
        start = [f"{getattr(own[0], before):,}"] if before else []
        cells = ["failed" if row.error else cell(row) for row in own]
        lines.append([short(model), *start, *cells])
    headers = ["model", *(["original"] if before else []), *tools]
    failed = [f"{row.tool} on {row.model}: {short(row.error)}" for row in rows if row.error]
    return tables(title, Table(title, headers, lines), notes=failed if title == "Result" else ())


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.2f}"
