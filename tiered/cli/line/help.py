"""What `--help` prints, as plain text."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Iterator
from typing import Final

from tiered.cli.commands import command_names, load_command, summary_of
from tiered.cli.line.declaration import REQUIRED, DeclaredParameter

FIRST: Final = ("tiered in.onnx out.onnx", "tiered optimize in.onnx out.onnx -O3 --verify")
"""The examples of `tiered --help`."""
EXIT_CODES: Final = (
    "Exit codes: 0 done, 1 model or file error, 2 usage, 3 verification failed (nothing is "
    "written), 4 what was asked for cannot be done, or a target or an expectation is not met, 5 a "
    "bug in tiered or in a pass, 130 interrupted."
)
_OF_BATCHES: Final = "Exit codes: 0 all models done, 1 a model failed, 2 usage, 130 interrupted."
_WIDEST, _NAMES = 100, 28
"""Columns of the text, and of the names beside it, at most."""

Row = tuple[str, str]


def general_help() -> str:
    """Return the help of `tiered` itself."""
    rows = [(name, summary_of(name)) for name in command_names()]
    rows += [
        ("--help, -h", "Display this message and exit."),
        ("--version", "Display the version."),
    ]
    text = ["Usage: tiered COMMAND", "Optimise ONNX models with passes that can be trusted."]
    return _page([*text, _table("Commands", rows), _examples(FIRST), _wrapped(EXIT_CODES)])


def help_of(name: str) -> str:
    """Return the help of a command."""
    command = load_command(name)
    arguments, options = command.described()
    below = [(each.rpartition(" ")[2], summary_of(each)) for each in command_names(name)]
    usage = ["Usage: tiered", name, *(["[COMMAND]"] if below else []), "[OPTIONS]"]
    last = len(arguments) - 1 if command.takes_rest else None
    for at, each in enumerate(arguments):
        shown = f"{each.names[0]}{'...' if at == last else ''}"
        usage.append(shown if each.is_required else f"[{shown}]")
    parts = [" ".join(usage), *(_wrapped(part) for part in command.doc.split("\n\n"))]
    parts += [_table("Commands", below)] if below else []
    rows = [(each.names[0], _said(each)) for each in arguments]
    parts += [_table("Arguments", rows)] if rows else []
    titles = dict.fromkeys(_title(each) for each in options)
    parts += [
        _table(title, [(_typed(each), _said(each)) for each in options if _title(each) == title])
        for title in titles
    ]
    codes = _OF_BATCHES if name.partition(" ")[0] == "batch" else EXIT_CODES
    return _page([*parts, _examples(command.examples), _wrapped(codes)])


def _title(each: DeclaredParameter) -> str:
    return getattr(each.within, "TITLE", "Options")


def _typed(each: DeclaredParameter) -> str:
    """Return how an option is typed: its names, and what it takes."""
    names = ", ".join((*each.names, *([each.off] if each.off else [])))
    if each.is_switch:
        return names
    takes = "|".join(each.choices) or getattr(each.kind, "__name__", "str").upper()
    return f"{names} {'STR...' if each.is_list else takes}"


def _said(each: DeclaredParameter) -> str:
    """Return the help of an option, with its default where that says something."""
    default = each.option.default
    if default is REQUIRED:
        note = " [required]"
    else:
        note = f" [default: {default}]" if default not in (None, False, "", ()) else ""
    return f"{each.option.doc}{note}"


def _width() -> int:
    return min(shutil.get_terminal_size().columns, _WIDEST)


def _wrapped(text: str) -> str:
    return textwrap.fill(" ".join(text.split()), _width(), break_on_hyphens=False)


def _table(title: str, rows: Iterable[Row]) -> str:
    return "\n".join((f"{title}:", *_lines(list(rows))))


def _lines(rows: list[Row]) -> Iterator[str]:
    """Yield the lines of a table: names that are too long have a line of their own."""
    column = min(max(len(names) for names, _ in rows), _NAMES) + 4
    for names, text in rows:
        room = max(_width() - column, 20)
        said = textwrap.wrap(text, room, break_on_hyphens=False, break_long_words=False) or [""]
        if len(names) > column - 4:
            yield from textwrap.wrap(
                names, _width(), initial_indent="  ", subsequent_indent="      ",
                break_on_hyphens=False,
            )  # fmt: skip
        else:
            yield f"  {names:<{column - 2}}{said.pop(0)}".rstrip()
        yield from (f"{'':<{column}}{line}" for line in said)


def _examples(lines: Iterable[str]) -> str:
    return "\n".join(("Examples:", *(f"  {line}" for line in lines)))


def _page(parts: Iterable[str]) -> str:
    return "\n\n".join(parts) + "\n"
