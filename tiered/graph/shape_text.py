"""`--input-shape x:1,3,224,224 --dim batch=1`: parse the shapes of inputs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tiered.support.errors import UsageError

EXAMPLE = "x:1,3,224,224"

Shapes = dict[str, list[int | str]]
Dims = dict[str, int | str]

# A name, which may contain colons, and the part after its last `:` or `=`.
_ENTRY = re.compile(r"(?P<name>.+)[:=]\[?(?P<dims>[^:=\[\]]*)\]?")


def parse_shapes(entries: Sequence[str], option: str = "--input-shape") -> Shapes:
    """Return the dims by name of the input: sizes, names, and -1 for an unchanged dim.

    `x:1,3,224,224`, `x=1,3,224,224`, `x:[1,3,224,224]`, `x:batch,3,?,?`; several are separated by
    spaces, or each has its own option.

    Args:
        entries: the texts.
        option: the option that has them, for errors.

    Raises:
        UsageError: an entry has no name, a dim is none, or an input is named twice.
    """
    shapes: Shapes = {}
    for entry in (part for text in entries for part in _split(text)):
        found = _ENTRY.fullmatch(entry)
        if found is None:
            raise UsageError(f"{option} {entry!r}: expected a name and dims, as in {EXAMPLE}")
        name, text = found["name"], found["dims"].strip()
        if name in shapes:
            raise UsageError(f"{option}: {name!r} is given twice")
        shapes[name] = _dims(f"{option} {entry!r}", text)
    return shapes


def parse_dims(entries: Sequence[str]) -> Dims:
    """Return the size or the new name by name of the dim, of `batch=1` or `batch=1,seq=128`.

    Raises:
        UsageError: an entry is not NAME=SIZE, or a dim is named twice.
    """
    dims: Dims = {}
    for entry in (part.strip() for text in entries for part in text.split(",")):
        name, _, text = (part.strip() for part in entry.rpartition("="))
        if not name:
            raise UsageError(f"--dim takes NAME=SIZE, not {entry!r}")
        if name in dims:
            raise UsageError(f"--dim: {name!r} is given twice")
        dims[name] = _dim(f"--dim {entry!r}", text)
    return dims


def _split(text: str) -> list[str]:
    """Return the entries of one argument: spaces separate them, except after a comma."""
    return [part for part in re.split(r"(?<![,\s])\s+(?!\s|,)", text.strip()) if part]


def _dims(option: str, text: str) -> list[int | str]:
    return [_dim(option, part.strip(), keep=True) for part in text.split(",")] if text else []


def _dim(option: str, text: str, *, keep: bool = False) -> int | str:
    from tiered.graph.core.dim_names import is_dim_name

    if keep and text in ("?", "*", "-1"):
        return -1
    if text.isdecimal() and int(text) > 0:
        return int(text)
    if not is_dim_name(text):
        raise UsageError(
            f"{option}: {text!r} is not a dim; expected a size from 1 on"
            f"{', a name, or ? to keep the dim' if keep else ' or a name'}"
        )
    return text
