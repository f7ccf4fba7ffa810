"""The page of a command that prints a report: the same text and tables, and its charts."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table as Printed
from rich.text import Text

from tiered.support.pages.render import page, short, write_page
from tiered.support.pages.sections import Section, Table, tables

MOST: Final = 2000
"""Rows of a table on a page."""


class _Recorder(Console):
    """A console that keeps what is printed as sections."""

    def __init__(self) -> None:
        super().__init__(file=io.StringIO())
        self.sections: list[tuple[str, list[str], Printed | None]] = [("Summary", [], None)]

    def print(self, *objects: Any, **_: Any) -> None:
        """Keep a title, which is bold, a table, or a line of text."""
        for each in objects:
            if isinstance(each, Printed):
                self.sections[-1] = (*self.sections[-1][:2], each)
            elif isinstance(each, Text) and each.style == "bold":
                self.sections.append((each.plain, [], None))
            elif str(each).strip():
                self.sections[-1][1].append(str(each).strip())


def write_report(
    path: str | None,
    command: str,
    files: Sequence[str],
    show: Callable[[Console], None],
    charts: Mapping[str, str] | None = None,
) -> None:
    """Write the page of a report.

    Args:
        path: the file; None for none.
        command: the command, for the heading.
        files: what the report is about.
        show: prints the whole report.
        charts: SVG files by their titles.

    Raises:
        ModelError: the page cannot be written.
    """
    if path is None:
        return
    recorder = _Recorder()
    show(recorder)
    shown = [_section(*found) for found in recorder.sections if found[1] or found[2]]
    shown[1:1] = [
        Section(name, "image.html.j2", {"image": _encoded(svg), "notes": ()})
        for name, svg in (charts or {}).items()
    ]
    names = " ".join(short(os.path.basename(file)) for file in files)
    write_page(path, page(f"tiered {command} {names}", shown))


def _section(title: str, notes: list[str], printed: Printed | None) -> Section:
    if printed is None:
        return tables(title, notes=notes)
    headers = [str(column.header) for column in printed.columns]
    columns = [[_plain(cell) for cell in column.cells] for column in printed.columns]
    rows = [*zip(*columns, strict=True)]
    if len(rows) > MOST:
        notes = [*notes, f"The first {MOST:,} of {len(rows):,} rows are shown."]
    return tables(title, Table(short(title), headers, rows[:MOST]), notes=notes)


def _plain(cell: Any) -> str:
    return cell.plain if isinstance(cell, Text) else str(cell)


def _encoded(svg: str) -> str:
    return base64.b64encode(svg.encode()).decode()
