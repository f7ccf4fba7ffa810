"""The commands, one file each: its name is that of the file, and its first line says what it does.

`batch_quantize` is `tiered batch quantize`. The function of the same name is the command: its
parameters are the arguments and options. `tiered.cli.line` reads the words of a command line.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Final

from tiered.cli.line.declaration import DeclaredCommand
from tiered.cli.line.reader import WrongLine

_FOLDER: Final = os.path.dirname(__file__)


def command_names(within: str = "") -> tuple[str, ...]:
    """Return the names of all commands in order, or of those below another one, in full."""
    files = (name.removesuffix(".py") for name in os.listdir(_FOLDER) if name.endswith(".py"))
    names = (name.replace("_", " ") for name in files if not name.startswith("_"))
    return tuple(sorted(name for name in names if name.rpartition(" ")[0] == within))


def summary_of(name: str) -> str:
    """Return the first line of the file of a command, which is not imported."""
    with open(os.path.join(_FOLDER, f"{name.replace(' ', '_')}.py"), encoding="utf-8") as file:
        return file.readline().strip().strip('"')


def load_command(name: str) -> DeclaredCommand:
    """Import a command."""
    stem = name.replace(" ", "_")
    module = importlib.import_module(f"{__name__}.{stem}")
    return _command(name, getattr(module, stem))


@cache
def _command(name: str, function: Callable[..., int | None]) -> DeclaredCommand:
    """Return the command that a function is: its annotations are read once in a process."""
    return DeclaredCommand(name, function)


def command_in(words: Sequence[str]) -> tuple[DeclaredCommand, list[str]] | None:
    """Return the command that words begin with, and those after its name; None for no words.

    Raises:
        WrongLine: there is no such command.
    """
    if not words:
        return None
    first, *rest = words
    if first not in command_names():
        raise _unknown(first)
    if rest and f"{first} {rest[0]}" in command_names(first):
        first, rest = f"{first} {rest[0]}", rest[1:]
    return load_command(first), rest


def _unknown(name: str) -> WrongLine:
    from difflib import get_close_matches

    names = command_names()
    near = get_close_matches(name, names, n=1)
    hint = f' Did you mean "{near[0]}"?' if near else ""
    return WrongLine(f'Unknown command "{name}".{hint} Available commands: {", ".join(names)}')
