"""Tables, and numbers with units."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from tiered.cli.output.terminal import printable
from tiered.support import amounts

Cell = object
"""Any object: None is an empty cell, strings are escaped."""


def print_table(
    console: Console,
    title: str,
    headers: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    totals: Sequence[Sequence[Cell]] = (),
    *,
    limit: int | None = None,
    more: str = "more",
) -> None:
    """Print a table under its title, the totals under a line.

    A column is aligned to the right if its first row holds a number there.

    Args:
        console: where to.
        title: above the table.
        headers: of its columns.
        rows: its rows.
        totals: rows under a line.
        limit: how many rows are printed; a line says how many `more` there are.
        more: what that line calls them.
    """
    hidden = 0 if limit is None else max(len(rows) - limit, 0)
    rows = rows[:limit]
    table = Table(box=SIMPLE_HEAD, show_edge=False)
    first = next(iter((*rows, *totals)), [""] * len(headers))
    for cell, header in zip(first, headers, strict=True):
        numeric = isinstance(cell, int | float | Number)
        table.add_column(header, justify="right" if numeric else "left", no_wrap=numeric)
    for row in rows:
        table.add_row(*(Text(show(cell)) for cell in row))
    if rows and totals:
        table.add_section()
    for row in totals:
        table.add_row(*(Text(show(cell)) for cell in row))
    console.print()
    console.print(Text(printable(title), style="bold"))
    console.print(table)
    if hidden:
        console.print(Number(f"  and {hidden:,} {more} (-v lists them)"))


class Number(str):
    """A number that is formatted already."""


def show(cell: Cell) -> str:
    """Return the string of a cell."""
    if cell is None:
        return ""
    if isinstance(cell, int) and not isinstance(cell, bool):
        return f"{cell:,}"
    return printable(cell)


def size(count: int) -> Number:
    """Return a number of bytes with its unit, in powers of 1024: 1.4 MiB."""
    return Number(amounts.size(count))


def seconds(amount: float) -> Number:
    """Return a time: 1.23 s, 4.56 ms."""
    return Number(f"{amount:.2f} s" if amount >= 1 else f"{amount * 1e3:.2f} ms")


def short_time(amount: float) -> Number:
    """Return a time with its unit: also a short one has three digits."""
    return seconds(amount) if amount >= 1e-3 else Number(f"{amount * 1e6:.3g} us")


def change(before: int, after: int) -> Number:
    """Return the difference with its sign and share; an empty string if there is none."""
    return Number(amounts.change(before, after))
