"""A process that answers frames on its standard streams, and how it ends.

The process runs a module of this package, its server. It is a plain subprocess: nothing is forked
and nothing pickled, and it is the same on every system.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import IO, Any, BinaryIO, Final, cast

from tiered.runtime.worker.frames import Blob, receive, send
from tiered.runtime.worker.limits import OUT_OF_MEMORY
from tiered.support.errors import (
    Crashed,
    HelperError,
    OutOfMemory,
    RuntimeFailure,
    TimedOut,
    words_of,
)

_START_SECONDS = 60.0  # to load Python and onnxruntime, from the slowest of disks
_END_SECONDS = 5.0
_LAST_WORDS = 600  # characters of the end of standard error that an error repeats

PYTHON: Final = (sys.executable, "-P", "-m")
"""The command before the name of the server; -P keeps the current folder out of its imports."""

_GROUPS: Final = hasattr(os, "killpg")


class Ended(Exception):
    """The process ended before it answered."""

    def __init__(self, child: Child, *, is_overdue: bool) -> None:
        super().__init__()
        self._is_overdue = is_overdue
        self._code = child.wait()
        self._stderr_end = child.last_words()

    def failure(
        self, doing: str, seconds: float | None, memory: int | None, what: str = "the runtime"
    ) -> RuntimeFailure:
        """Return the error for a process that ended or took too long.

        Args:
            doing: what it was asked to do.
            seconds, memory: its limits.
            what: what ran in it.
        """
        if self._is_overdue:
            return TimedOut(f"{doing} took more than {seconds:g} s and was stopped")
        if self._code == OUT_OF_MEMORY:
            size = "its limit" if memory is None else f"{memory / 2**30:.1f} GiB"
            return OutOfMemory(f"{doing} took more memory than {size} and was stopped")
        words = f"; its last words: {self._stderr_end}" if self._stderr_end else ""
        return Crashed(f"{what} crashed while {doing} ({_reason(self._code)}){words}")


def _reason(code: int | None) -> str:
    """Say how a process ended."""
    if code is None:
        return "it does not end"
    if code < 0:
        with contextlib.suppress(ValueError):
            name = signal.Signals(-code).name
            also = ", perhaps out of memory" if name == "SIGKILL" else ""
            return f"{name}{also}"
    return f"exit code {code:#x}" if code > 255 else f"exit code {code}"


def _cannot_start(found: str, server: str) -> HelperError:
    return HelperError(
        f"the process that runs models cannot start: {found} ({' '.join((*PYTHON, server))}); "
        "sys.executable must be a Python that can import tiered and onnxruntime"
    )


class Child:
    """One process, and the pipes to it.

    Args:
        server: the module that it runs.
        words: the arguments of the module.
        group: whether it starts a group of processes, which ends as a whole.

    Raises:
        HelperError: the process cannot start.
    """

    def __init__(self, server: str, *words: str, group: bool = False) -> None:
        self._server = server
        # A file and not a pipe, which would fill up unread; it is closed by `end`.
        self._errors = cast(IO[bytes], tempfile.TemporaryFile(prefix="tiered-"))  # noqa: SIM115 - see above
        self.is_ready = False
        self._owner = os.getpid()
        # What this process can import, that one can; -P keeps the current folder out of it. What is
        # Python's own comes first: a `types.py` beside a script would end the process at its start.
        own = os.path.dirname(os.__file__)
        first = {own, os.path.join(own, "lib-dynload")}
        path = os.pathsep.join(sorted(filter(None, sys.path), key=lambda each: each not in first))
        try:
            self.process = subprocess.Popen(
                (*PYTHON, server, *words),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                env={**os.environ, "PYTHONPATH": path},
                start_new_session=group and _GROUPS,
                creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
            )
        except OSError as error:
            self._errors.close()
            raise _cannot_start(words_of(error), server) from error
        self._requests = cast(BinaryIO, self.process.stdin)
        self._answers = cast(BinaryIO, self.process.stdout)
        self._has_group = group and _GROUPS
        self._finalizer = weakref.finalize(self, _kill, self.process, self._has_group)

    @property
    def is_alive(self) -> bool:
        """Whether it runs and is ours: a fork of this process must start its own."""
        return self._owner == os.getpid() and self.process.poll() is None

    def greet(self) -> Any:
        """Wait until it is ready, and return what it sends first.

        Raises:
            HelperError: it cannot start.
        """
        try:
            with self._bounded(_START_SECONDS):
                first, _ = receive(self._answers)
        except Ended as end:
            failed = end.failure("starting", _START_SECONDS, None)
            raise _cannot_start(str(failed), self._server) from None
        self.is_ready = True
        return first["done"]

    def kill(self) -> None:
        """Kill it, and its group; who waits for its answer gets `Ended`."""
        _signal_kill(self.process, self._has_group)

    def exchange(
        self, request: dict[str, Any], blobs: Sequence[Blob], seconds: float | None
    ) -> tuple[Any, list[bytearray]]:
        """Send a request and return the answer.

        Raises:
            Ended: there was none.
        """
        with self._bounded(seconds):
            with contextlib.suppress(BrokenPipeError):  # the read then reports the end
                send(self._requests, request, blobs)
            return receive(self._answers)

    @contextlib.contextmanager
    def _bounded(self, seconds: float | None) -> Iterator[None]:
        """Kill the process if the block takes too long.

        Raises:
            Ended: the process has ended.
        """
        overdue = threading.Event()

        def stop() -> None:
            overdue.set()
            self.kill()

        timer = None if seconds is None else threading.Timer(seconds, stop)
        if timer is not None:
            timer.daemon = True
            timer.start()
        try:
            yield
        except (EOFError, OSError):
            raise Ended(self, is_overdue=overdue.is_set()) from None
        finally:
            if timer is not None:
                timer.cancel()

    def wait(self) -> int | None:
        """Return how it ended; its pipes are closed, so that it will."""
        self._close()
        try:
            return self.process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return self.process.wait(_END_SECONDS)

    def last_words(self) -> str:
        """Return the end of its standard error, in one line."""
        self._errors.seek(0, os.SEEK_END)
        self._errors.seek(max(0, self._errors.tell() - 4 * _LAST_WORDS))
        text = " ".join(self._errors.read().decode(errors="replace").split())
        return text if len(text) <= _LAST_WORDS else f"... {text[-_LAST_WORDS:]}"

    def end(self) -> None:
        """End it, whatever it is doing."""
        if self._owner == os.getpid():
            self._finalizer()
            self._close()
        self._errors.close()

    def _close(self) -> None:
        for stream in (self._requests, self._answers):
            with contextlib.suppress(OSError):
                stream.close()


def _kill(process: subprocess.Popen[bytes], has_group: bool) -> None:
    if process.poll() is None:
        _signal_kill(process, has_group)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_END_SECONDS)


def _signal_kill(process: subprocess.Popen[bytes], has_group: bool) -> None:
    if has_group and process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
