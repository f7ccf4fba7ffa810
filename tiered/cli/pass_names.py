"""The names of passes on the command line: what --disable, --require and --strip take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tiered.support.errors import UsageError, did_you_mean
from tiered.support.option_text import Scanner

if TYPE_CHECKING:
    from tiered.passes import Pass

LEVELS, DEFAULT_LEVEL = range(5), 2


def check_level(level: int) -> None:
    """Check the value of -O.

    Raises:
        UsageError: there is no such level.
    """
    if level not in LEVELS:
        raise UsageError(f"-O takes 0 to {max(LEVELS)}, not {level}")


def level_set(level: int) -> int | None:
    """Return the level for a context; None for the default, which reasons then name so."""
    return None if level == DEFAULT_LEVEL else level


STRIPPED = ("metadata", "names", "docs", "marks", "all")


def strip_pass(entries: Sequence[str]) -> Pass:
    """Return the pass of --strip, with its options; raises as `stripped_parts`."""
    from tiered.pipeline import get_pass

    return get_pass("strip", what=stripped_parts(entries))


def stripped_parts(entries: Sequence[str]) -> tuple[str, ...]:
    """Return the parts that --strip names.

    Raises:
        UsageError: an entry is none of the parts.
    """
    parts = tuple(dict.fromkeys(part for part in split_names(entries, "--strip")))
    for part in parts:
        if part not in STRIPPED:
            expected = ", ".join(STRIPPED)
            hint = did_you_mean(part, STRIPPED)
            raise UsageError(f"--strip takes {expected}, not {part!r}{hint}")
    return parts


def split_names(entries: Sequence[str], option: str) -> tuple[str, ...]:
    """Return the names of a repeatable option; commas separate, except in brackets and quotes.

    Raises:
        UsageError: an entry is empty.
    """
    names = tuple(name for entry in entries for name in Scanner(entry).entries())
    if not all(names):
        raise UsageError(f"{option}: an empty pass name in {', '.join(entries)!r}")
    return names


class Required(NamedTuple):
    """The passes of --require.

    Attributes:
        names: entries for the context.
        edits: of the pipeline, for those with options.
    """

    names: tuple[str, ...]
    edits: tuple[str, ...]


def split_required(entries: Sequence[str]) -> Required:
    """Return the passes of --require, options apart: `a{x=1}` is `a` and the edit `set a{x=1}`.

    Raises:
        UsageError: an entry is empty.
    """
    names: list[str] = []
    edits: list[str] = []
    for entry in split_names(entries, "--require"):
        name, _, given = entry.partition("{")
        options, closing, scope = given.rpartition("}")
        if closing and "@" not in name:
            edits.append(f"set {name}{{{options}}}")
            names.append(f"{name}{scope}")
        else:
            names.append(entry)
    return Required(tuple(names), tuple(edits))
