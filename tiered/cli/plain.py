"""Plain command lines of `tiered optimize`, read without cyclopts.

Loading cyclopts and making all commands takes longer than to optimise a small model. Here only
what most people type is read: MODEL and OUT, flags, and options with one value. All else is left
to cyclopts: lists, `--config`, `--help`, and whatever is wrong. Both read the same declarations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple, get_type_hints

from tiered.cli.declare import declared
from tiered.cli.flags import OptimizeOptions
from tiered.cli.watch import WatchOptions

_LEFT: Final = frozenset({"out_dir", "config"})
"""Options that change how the others are read."""

_OTHERS: Final = ("passes", "backend", "verify", "certify", "reproducer")
"""Options that may run code of plug-ins, or a process of its own."""

_NUMBER: Final = re.compile(r"[0-9]{1,9}")
_NULL: Final = frozenset({"none", "null"})


class _Field(NamedTuple):
    options: type
    name: str
    kind: object


def plain_command(tokens: Sequence[str]) -> tuple[str, Callable[[], None], bool] | None:
    """Return what `tiered.cli.run` needs of a command line; None if it is not plain.

    Returns:
        the model, a function that runs the command, and whether it runs code of tiered alone.
    """
    if tokens[:1] != ["optimize"]:
        return None
    read = plain_arguments(tokens[1:])
    if read is None:
        return None
    files, options, watch = read
    model, out = files[0], files[1] if files[1:] else None

    def run() -> None:
        from tiered.cli.commands.optimize import run_optimize

        run_optimize(model, out, options, watch)

    return model, run, not any(getattr(options, name) for name in _OTHERS)


def plain_arguments(
    tokens: Sequence[str],
) -> tuple[list[str], OptimizeOptions, WatchOptions] | None:
    """Return the files and options of a command line; None if it is not plain."""
    fields, files = _fields(), list[str]()
    given: dict[type, dict[str, Any]] = {OptimizeOptions: {}, WatchOptions: {}}
    rest = iter(tokens)
    for token in rest:
        if not token.startswith("-"):
            files.append(token)
            continue
        name, text = _split(token)
        field = fields.get(name)
        if field is None or field.name in given[field.options]:
            return None
        value = _value(field.kind, text, rest)
        if value is None:
            return None
        given[field.options][field.name] = value
    if not all(files) or not 1 <= len(files) <= 2:
        return None
    return files, OptimizeOptions(**given[OptimizeOptions]), WatchOptions(**given[WatchOptions])


def _split(token: str) -> tuple[str, str | None]:
    """Return the name of an option, and the value that is in the same word."""
    if token.startswith("--"):
        name, equals, text = token.partition("=")
        return name, text if equals else None
    return token[:2], token[2:] or None


def _value(kind: object, text: str | None, rest: Iterator[str]) -> object:
    """Return the value of an option; None if it is not plain."""
    if kind is bool:
        return True if text is None else None
    if text is None:
        text = next(rest, "")
    if kind in (int, int | None):
        return int(text) if _NUMBER.fullmatch(text) else None
    is_text = text and not text.startswith(("-", "=")) and text.lower() not in _NULL
    return text if is_text else None


def _fields() -> dict[str, _Field]:
    """Return the plain options by the names that they are typed with."""
    found: dict[str, _Field] = {}
    for options in (OptimizeOptions, WatchOptions):
        for name, hint in get_type_hints(options, include_extras=True).items():
            kind, settings = declared(hint)
            if kind not in (bool, int, str, int | None, str | None) or name in _LEFT:
                continue
            for typed in settings.get("name", [f"--{name.replace('_', '-')}"]):
                found[typed] = _Field(options, name, kind)
    return found
