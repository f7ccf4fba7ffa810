"""The words of a command line that set options to given values."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterator
from typing import Any, get_type_hints

from tiered.cli.declare import declared


def words_of(options: Any, without: Collection[str] = ()) -> tuple[str, ...]:
    """Return the words that set the options which do not have their defaults.

    Args:
        options: an instance of a class of options.
        without: the names of fields to leave out.
    """
    hints = get_type_hints(type(options), include_extras=True)
    words: list[str] = []
    for field in dataclasses.fields(options):
        value = getattr(options, field.name)
        if field.name in without or value == field.default:
            continue
        words += _words(_typed(field.name, hints[field.name]), value)
    return tuple(words)


def _words(option: str, value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield option if value else f"--no-{option.removeprefix('--')}"
    elif isinstance(value, tuple):
        yield from (f"{option}={each}" for each in value)
    else:
        yield f"{option}={value}"


def _typed(name: str, hint: object) -> str:
    """Return an option as it is typed."""
    _, settings = declared(hint)
    names = settings.get("name", f"--{name.replace('_', '-')}")
    return str(names if isinstance(names, str) else names[0])
