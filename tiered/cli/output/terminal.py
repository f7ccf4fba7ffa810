"""Output to stdout and stderr: results, notes, progress, JSON.

Text that comes from a model or a file name is shown through `printable`: it may hold line breaks,
escape sequences or halves of surrogate pairs.
"""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from types import TracebackType
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.status import Status

PIPE_WIDTH = 4096
"""Columns of output that is no terminal: a table row stays one line, for grep and cut."""

LONG_WORK = 0.5
"""Seconds of work after which the progress line appears."""


def printable(text: object) -> str:
    """Return the text with all invisible characters escaped."""
    shown = str(text)
    if shown.isprintable():
        return shown
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
        for char in shown
    )


def results() -> Console:
    """Return the console for results: stdout, as wide as needed when it is no terminal."""
    console = screen()
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = PIPE_WIDTH
    return console


def screen() -> Console:
    """Return the console for help texts: stdout, of an ordinary width."""
    return _console(sys.stdout)


def notes() -> Console:
    """Return the console for everything else: stderr."""
    return _console(sys.stderr)


def say(text: str) -> None:
    """Print a line on stderr: what a long command does now."""
    notes().print(f"tiered: {printable(text)}", soft_wrap=True)


def _console(stream: IO[str] | None) -> Console:
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    file = io.StringIO() if stream is None else stream  # None: started with it closed
    from rich.console import Console

    class PlainConsole(Console):
        def on_broken_pipe(self) -> None:
            """Leave the broken pipe to `tiered.cli.main`; rich would exit with 1."""
            raise  # noqa: PLE0704 - rich calls this while it handles the BrokenPipeError

    return PlainConsole(file=file, markup=False, emoji=False, highlight=False)


class Progress:
    """A progress line on a terminal's stderr, for work that takes long."""

    def __init__(self, *, enabled: bool = True) -> None:
        self.is_enabled = enabled and sys.stderr is not None and sys.stderr.isatty()
        self._text = ""
        self._status: Status | None = None
        self._lock = threading.Lock()
        self._timer = threading.Timer(LONG_WORK, self._show)
        self._timer.daemon = True

    def __enter__(self) -> Progress:
        if self.is_enabled:
            self._timer.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._timer.cancel()
        with self._lock:
            self.is_enabled = False
            if self._status is not None:
                self._status.stop()

    def say(self, text: str) -> None:
        """Set the text of the line."""
        self._text = text
        status = self._status
        if status is not None:
            status.update(text)

    def _show(self) -> None:
        with self._lock:
            if self.is_enabled:
                self._status = notes().status(self._text)
                self._status.start()


def print_json(data: object) -> None:
    """Print one JSON value on stdout."""
    if sys.stdout is not None:
        sys.stdout.write(f"{json.dumps(data, indent=2)}\n")
