"""Render templates: all text is escaped, and JSON cannot end the element that holds it.

Names in a model are hostile until escaped: jinja2's autoescape is on for every template, and
invisible and bidirectional control characters are shown as escape sequences.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from tiered.support.amounts import counted
from tiered.support.errors import ModelError
from tiered.support.whole_files import write_text

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

    from tiered.support.pages.sections import Section, Table

LONGEST = 200
"""Characters of a name that are shown; a longer one is cut, and its length is shown."""

SHORT = 24
"""Characters of a cell that stay in one line."""

_AMOUNT = re.compile(
    r"[-+]?(\d{1,3}(,\d{3})+|\d+)(\.\d+)?(e[-+]\d+)?( ?(%|B|[KMGT]iB|ms))?( \([-+][\d.]+%\))?"
)
"""A number, with its unit or its share."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ud800-\udfff\ufeff]"
)


def visible(text: str) -> str:
    """Return the text with invisible characters as escape sequences."""
    if text.isprintable():  # holds none of them, and is much faster
        return text
    return _INVISIBLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def short(text: str, longest: int = LONGEST) -> str:
    """Return a name as it is shown: visible, and cut if it is too long."""
    if len(text) <= longest:
        return visible(text)
    return f"{visible(text[:longest])}… ({len(text):,} characters)"


def script_json(data: Any) -> Markup:
    """Return data as JSON for a script element; ASCII, without `<`, `>` and `&`."""
    from markupsafe import Markup

    text = json.dumps(data, separators=(",", ":"), sort_keys=True)
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(text)


def render(template: str, **data: Any) -> str:
    """Return a template of `templates/` with this data."""
    return _environment().get_template(template).render(data)


def page(title: str, sections: Sequence[Section], payload: Mapping[str, Any] | None = None) -> str:
    """Return a whole page.

    Args:
        title: the heading.
        sections: its parts, in order.
        payload: data for the script of the page, if there is any.
    """
    return render("page.html.j2", title=title, sections=sections, payload=payload)


def fragment(title: str, *tables: Table) -> str:
    """Return tables for a notebook: HTML without script and style."""
    return render("fragment.html.j2", title=title, tables=tables)


def write_page(path: str, text: str) -> None:
    """Write a page to a file.

    Raises:
        ModelError: it cannot be written.
    """
    write_text(path, text)


def check_page(path: str) -> None:
    """Check, before any work is done, that a page can be written.

    Raises:
        ModelError: there is no such folder.
    """
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise ModelError(f"cannot write {path!r}: no directory {folder!r}")
    if os.path.isdir(path):
        raise ModelError(f"cannot write {path!r}: is a directory; expected a file name")


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("tiered.support.pages", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalized,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {"short": short, "script_json": script_json}
    environment.filters |= {"number": _number, "counted": counted, "marked": _marked}
    return environment


def _finalized(value: object) -> object:
    """Return what is shown of a value: text made visible, nothing for None."""
    if value is None:
        return ""
    return visible(value) if type(value) is str else value


def _marked(cell: object) -> Markup:
    """Return the class of a cell: numbers stand to the right, and only long text is broken."""
    from markupsafe import Markup

    text = _number(cell)
    if _AMOUNT.fullmatch(text):
        return Markup(' class="number"')
    return Markup(' class="long"' if len(text) > SHORT else "")


def _number(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else str(value)
