"""The docstrings of the project as reStructuredText: examples indented, `*` and `|` as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

SECTIONS = {"Args:", "Attributes:", "Raises:", "Returns:", "Yields:", "Source:"}
_CODE = re.compile(r"(`[^`]*`)")
_MARKUP = re.compile(r"[*|]")


def as_rst(lines: Iterable[str]) -> list[str]:
    """Return the lines of a docstring as reStructuredText, which napoleon reads next.

    A block that is indented deeper than the text before it is an example, up to the first section.
    """
    return list(_converted(lines))


def _converted(lines: Iterable[str]) -> Iterator[str]:
    is_prose, was_blank, in_example = True, True, False
    for line in lines:
        is_prose &= line.rstrip() not in SECTIONS
        is_deep = line.startswith("    ")
        if is_prose and is_deep and was_blank and not in_example:
            in_example = True
            yield from ("::", "")
        elif line.strip() and not is_deep:
            in_example = False
        was_blank = not line.strip()
        yield line if in_example else _escaped(line)


def _escaped(line: str) -> str:
    parts = _CODE.split(line)
    return "".join(
        part if at % 2 else _MARKUP.sub(r"\\\g<0>", part) for at, part in enumerate(parts)
    )
