"""The parts of a page: tables, lists of facts, charts; each has a template of its own."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Cell = str | int | None
"""A cell of a table; integers are aligned to the right."""


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        title: its heading; `id` is made from it.
        template: the name of the file in `templates/` that shows it.
        data: what the template uses.
    """

    title: str
    template: str
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return re.sub(r"[^a-z0-9]+", "-", self.title.lower()).strip("-")


class Table(NamedTuple):
    """A table of text; `caption` names it for a screen reader."""

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    note: str = ""


def tables(title: str, *shown: Table, notes: Sequence[str] = ()) -> Section:
    """Return a section of notes and tables."""
    return Section(title, "tables.html.j2", {"tables": shown, "notes": notes})
