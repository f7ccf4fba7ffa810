"""Ctrl-C while passes run: it takes effect between two edits, so that undo is complete.

Python raises KeyboardInterrupt between any two bytecodes, also between an entry of the journal and
its edit. While passes run in the main thread, the handler checks where the program is, and retries
a moment later where the program must not stop. A flag that edits ask would be shorter, but between
two edits a verification or a certificate of a small model may take half a minute.
"""

from __future__ import annotations

import _thread
import gc
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_RETRY = 0.0005
"""Seconds; an edit takes microseconds."""

_EDITS = ("tiered.graph",)
"""Work of these modules must not stop half-way."""

_QUESTIONS = ("tiered.graph.intervals",)
"""Modules among them that edit nothing, and may take long."""

_BOOKKEEPING = (
    "contextlib",
    "tiered.context",
    "tiered.passes",
    "tiered.pipeline",
    # Callbacks: Python drops their exceptions.
    "_weakrefset",
    "weakref",
)
"""Nor must their own code; the passes and hooks that they call may stop."""


@contextmanager
def interrupted_between_edits() -> Iterator[Callable[[], None]]:
    """Let SIGINT, and SIGTERM with the same handler, interrupt the block between edits only.

    It yields a function that raises if a signal is pending, to be called before a result is kept.
    A second signal raises at once, wherever the program is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield lambda: None
        return
    handler = _Handler()
    taken = [
        number
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) is signal.default_int_handler
    ]
    for number in taken:
        signal.signal(number, handler)
    try:
        yield handler.obey
    finally:
        try:
            handler.obey()
        finally:
            for number in taken:
                signal.signal(number, signal.default_int_handler)


class _Handler:
    """A signal handler that waits for a moment between two edits."""

    def __init__(self) -> None:
        self._asked = 0
        self._is_retry = False
        self._lock = threading.Lock()

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self._is_retry:
            self._is_retry = False
            if not self._asked:
                return
        else:
            self._asked += 1
        if self._asked > 1 or may_stop(frame):
            self._asked = 0
            raise KeyboardInterrupt
        # No threading.Thread: the program may hold one of the locks that it needs.
        _thread.start_new_thread(self._retry, (number,))

    def _retry(self, number: int) -> None:
        time.sleep(_RETRY)
        with self._lock:
            if self._asked:
                self._is_retry = True
                _thread.interrupt_main(signal.Signals(number))

    def obey(self) -> None:
        """Stop trying, and raise if a signal is still waiting."""
        with self._lock:
            is_waiting, self._asked = self._asked > 0, 0
        if is_waiting:
            raise KeyboardInterrupt


def may_stop(frame: FrameType | None) -> bool:
    """Return whether the program is neither inside an edit nor in the machinery around passes."""
    # Python drops exceptions of destructors and of callbacks of the garbage collector.
    lost = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    modules = []
    while frame is not None:
        if frame.f_code in lost or frame.f_code.co_name == "__del__":
            return False
        modules.append(_module(frame))
        frame = frame.f_back
    if any(_is_in(module, _EDITS) and not _is_in(module, _QUESTIONS) for module in modules):
        return False
    # The standard library works for its caller.
    nearest = next((module for module in modules if not _is_standard(module)), "")
    return not _is_in(nearest, _BOOKKEEPING)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_in(module: str, packages: tuple[str, ...]) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def _is_standard(module: str) -> bool:
    if _is_in(module, _BOOKKEEPING):
        return False
    # The constructor of a named tuple has a module of its own.
    return module.partition(".")[0] in sys.stdlib_module_names or module.startswith("namedtuple_")
