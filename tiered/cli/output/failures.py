"""Turn an exception into an exit code and a message with the place, the cause and the remedy."""

from __future__ import annotations

import contextlib
import os
import re
import traceback
from collections.abc import Iterator
from textwrap import dedent
from typing import NamedTuple

from tiered.cli.output.terminal import notes, printable
from tiered.support.errors import OutOfMemory, PassError, TieredError, words_of

MODEL, USAGE, BUG = 1, 2, 5

REPORT = "please report it with the model, the command and the output of -v"
TRACEBACK_FRAMES = 8


class CommandFailure(NamedTuple):
    """The exit code of a failed command and its message on stderr."""

    exit_code: int
    text: str


def usage_failure(text: str, command: str) -> CommandFailure:
    """Describe a command line that does not fit the command that was typed."""
    return CommandFailure(USAGE, f"{printable(text)} (`{command} --help` shows the options)")


def failure(error: Exception, subject: str | None = None) -> CommandFailure:
    """Describe an exception that ended a command.

    Args:
        error: the exception.
        subject: the file that the command works on; named in the text if the error does not.
    """
    exhausted = _exhaustion(error)
    if exhausted is not None:
        if isinstance(error, PassError):
            exhausted += f" ({_lines(error).partition(chr(10))[0]})"
        return CommandFailure(MODEL, _about(subject, exhausted))
    if isinstance(error, PassError) and error.exit_code == BUG:
        bug = f"this is a bug in the pass; {REPORT}"
        return CommandFailure(error.exit_code, f"{_about(subject, _lines(error))}\n  {bug}")
    if isinstance(error, TieredError):
        named = None if error.exit_code == USAGE else subject
        return CommandFailure(error.exit_code, _about(named, _lines(error)))
    if isinstance(error, OSError):
        return CommandFailure(MODEL, _about(subject, _operating_system(error)))
    kind = type(error).__name__
    found = f"this is a bug in tiered, {REPORT}: {kind}: {printable(error)}"
    return CommandFailure(BUG, _about(subject, found))


def print_failure(found: CommandFailure) -> int:
    """Print a failure on stderr and return its exit code."""
    with contextlib.suppress(OSError):  # stderr is closed; the exit code remains
        notes().print(f"tiered: error: {found.text}", soft_wrap=True)
    return found.exit_code


def short_traceback(error: Exception) -> str:
    """Return the innermost frames of the exception and of its causes."""
    return "".join(traceback.format_exception(error, limit=-TRACEBACK_FRAMES))


def ran_out_of_memory(error: Exception) -> bool:
    """Return whether an exception, or one in the chain of its causes, means too little memory.

    A function of C that gets no memory may report no error of its own: that is a SystemError.
    """
    kinds = MemoryError | OutOfMemory | SystemError
    return any(isinstance(cause, kinds) or _is_no_room(cause) for cause in _causes(error))


def _exhaustion(error: Exception) -> str | None:
    """Return which resource ran out, from any exception in the chain of causes; else None."""
    for cause in _causes(error):
        if isinstance(cause, RecursionError):
            return "the model is nested too deeply, or a pass calls itself without end"
        if isinstance(cause, MemoryError) or _is_no_room(cause):
            return "ran out of memory; raise --max-memory, if given, or use a smaller model"
    return None


def _is_no_room(error: BaseException) -> bool:
    """Return whether the system had too little memory to load a library."""
    return isinstance(error, ImportError) and "failed to map segment" in str(error)


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def _operating_system(error: OSError) -> str:
    reason = words_of(error).lower()
    files = [os.fsdecode(name) for name in (error.filename, error.filename2) if name is not None]
    return f"{' -> '.join(map(printable, files))}: {reason}" if files else reason


def _lines(error: TieredError) -> str:
    """Return the message with its notes: one line, or several for the failure of a pass."""
    notes = getattr(error, "__notes__", [])
    first, _, below = str(error).strip("\n").partition("\n")
    rest = below.split("\n") if below else []
    if any(line.strip() == "^" for line in rest):
        rest = dedent(below).split("\n")  # the caret marks a column of the line above
    else:
        rest = [line.strip() for line in rest]
    if error.exit_code in (MODEL, USAGE) and notes:
        first += f" ({'; '.join(note.partition(chr(10))[0] for note in notes)})"
    else:
        rest += [line.strip() for note in notes for line in note.strip("\n").split("\n")]
    return "\n  ".join(printable(line.rstrip()) for line in (first.strip(), *rest))


def _about(subject: str | None, text: str) -> str:
    """Prefix the text with the file, unless the text already names the file."""
    if subject is None:
        return text
    name = printable(os.path.basename(subject) or subject)
    if re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text):
        return text
    return f"{printable(subject)}: {text}"
