"""The page of a layout report: where Transposes are, what each costs, and what blocks it."""

from __future__ import annotations

from collections.abc import Sequence

from tiered.analysis.layout.transpose_report import LayoutReport, LeftTranspose
from tiered.support.amounts import size
from tiered.support.pages import charts
from tiered.support.pages.render import page, short
from tiered.support.pages.sections import Section, Table, tables

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
        sections.append(left_section(report.left))
    return page(f"tiered layout {short(name)}", sections)


def left_section(left: Sequence[LeftTranspose]) -> Section:
    """Return the Transposes that stay, each with its bytes and what blocks it.

    Args:
        left: most bytes first.
    """
    shown = left[:MOST]
    total = sum(each.nbytes for each in left) or 1
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
    if len(left) > len(shown):
        notes.append(f"The first {len(shown):,} of {len(left):,} Transposes are shown.")
    table = Table("Transposes that stay, most bytes first", headers, rows)
    if len(shown) < FEW:
        return tables("Transposes that stay", table, notes=notes)
    data = {"chart": _chart(left, total), "table": table, "notes": notes}
    return Section("Transposes that stay", "chart.html.j2", data)


def _chart(left: Sequence[LeftTranspose], total: int) -> charts.Chart:
    """Return the bytes of all Transposes so far as a curve, the largest ones first."""
    shown = left[:LARGEST]
    points, moved = [], 0
    for place, each in enumerate(shown, 1):
        moved += each.nbytes
        at = charts.x_at(place, len(shown)), charts.y_at(min(1.0, moved / total))
        points.append(charts.Point(*at, f"{short(each.name)}: {size(each.nbytes)}"))
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
