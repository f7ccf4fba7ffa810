"""The page of a layout report: where Transposes are, what each costs, and what blocks it."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.layout.transpose_report import LayoutReport
from tiered.pages import charts
from tiered.pages.render import page, short
from tiered.pages.sections import Section, Table, size, tables

MOST = 2000
"""Transposes on a page."""
FEW = 3
"""Fewer Transposes need no chart."""
LARGEST = 100
"""Transposes of the chart."""


def layout_page(report: LayoutReport, name: str) -> str:
    """Return the page of a report on the model of this name."""
    rows = [
        ("before", report.transposes[0], size(report.nbytes[0])),
        ("each operator on its own", report.greedy.transposes, size(report.greedy.nbytes)),
        ("after", report.transposes[1], size(report.nbytes[1])),
    ]
    totals = Table("Transposes", ("", "number", "bytes moved"), rows)
    sections = [tables("Summary", totals)]
    if report.left:
        sections.append(_left(report))
    return page(f"tiered layout {short(name)}", sections)


def _left(report: LayoutReport) -> Section:
    shown = report.left[:MOST]
    total = report.nbytes[1] or 1
    rows = [
        (
            short(each.name),
            ",".join(map(str, each.perm)),
            size(each.nbytes),
            f"{each.nbytes / total:.1%}",
            short(each.above, 400),
            short(each.below, 400),
        )
        for each in shown
    ]
    headers = ("name", "perm", "bytes", "share", "blocked above by", "blocked below by")
    notes = []
    if len(report.left) > len(shown):
        notes.append(f"The first {len(shown):,} of {len(report.left):,} Transposes are shown.")
    table = Table("Transposes that stay, most bytes first", headers, rows)
    if len(shown) < FEW:
        return tables("Transposes that stay", table, notes=notes)
    data = {"chart": _chart(report), "table": table, "notes": notes}
    return Section("Transposes that stay", "chart.html.j2", data)


def _chart(report: LayoutReport) -> charts.Chart:
    """Return the bytes of all Transposes so far as a curve, the largest ones first."""
    shown: Sequence[tuple[str, int]] = [(e.name, e.nbytes) for e in report.left[:LARGEST]]
    total = report.nbytes[1] or 1
    points, moved = [], 0
    for place, (name, nbytes) in enumerate(shown, 1):
        moved += nbytes
        at = charts.x_at(place, len(shown)), charts.y_at(min(1.0, moved / total))
        points.append(charts.Point(*at, f"{short(name)}: {size(nbytes)}"))
    start = charts.x_at(0, len(shown)), charts.y_at(0)
    ticks = tuple(charts.Tick(charts.y_at(part / 4), f"{part / 4:.0%}") for part in range(5))
    return charts.Chart(
        f"Share of the bytes that the {len(shown):,} largest Transposes move",
        "Transposes, most bytes first",
        "bytes",
        ticks,
        tuple(points),
        charts.line([start, *((point.x, point.y) for point in points)]),
    )
