"""`--input-shape x:1,3,224,224`: the shapes to give inputs, as typed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tiered.errors import UsageError

EXAMPLE = "x:1,3,224,224"

Shapes = dict[str, list[int | str]]

# A name, which may have colons of its own, and what stands behind its last `:` or `=`.
_ENTRY = re.compile(r"(?P<name>.+)[:=]\[?(?P<dims>[^:=\[\]]*)\]?")
_SYMBOL = re.compile(r"[^\s,:=\[\]]+")


def parse_shapes(entries: Sequence[str]) -> Shapes:
    """Return the dims by name of the input: sizes, names, and -1 for what stays as it is.

    `x:1,3,224,224`, `x=1,3,224,224`, `x:[1,3,224,224]`, `x:batch,3,?,?`; several are separated by
    spaces, or each has its own option.

    Raises:
        UsageError: an entry has no name, a dim is none, or an input is named twice.
    """
    shapes: Shapes = {}
    for entry in (part for text in entries for part in _split(text)):
        found = _ENTRY.fullmatch(entry)
        if found is None:
            raise UsageError(f"--input-shape {entry!r}: expected a name and dims, as in {EXAMPLE}")
        name, text = found["name"], found["dims"].strip()
        if name in shapes:
            raise UsageError(f"--input-shape: {name!r} is given twice")
        shapes[name] = [_dim(entry, part.strip()) for part in text.split(",")] if text else []
    return shapes


def _split(text: str) -> list[str]:
    """Return the entries of one argument: spaces separate them, save behind a comma."""
    return [part for part in re.split(r"(?<![,\s])\s+(?!\s|,)", text.strip()) if part]


def _dim(entry: str, text: str) -> int | str:
    if text in ("?", "*"):
        return -1
    if re.fullmatch(r"[+-]?\d+", text):
        return int(text)
    if _SYMBOL.fullmatch(text) is None:
        raise UsageError(f"--input-shape {entry!r}: {text!r} is no dim; expected a size or a name")
    return text
