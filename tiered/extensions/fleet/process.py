"""A process that runs command lines of tiered, one after the other; it may be lost at any time."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from typing import Any, Final

from tiered.extensions.fleet.scratch import Scratch
from tiered.runtime.worker.child import Child, Ended
from tiered.support.errors import OutOfMemory
from tiered.support.memory_limit import held_by

_PROGRAM: Final = ("tiered", "serve-jobs")
"""The module and the word that serve jobs: their commands are those of the program."""


class Evicted(Exception):
    """The process was killed so that others have memory; its job has to run again, alone."""


class JobProcess:
    """A process for jobs, started at first use, and again after it was lost.

    Args:
        memory: the most bytes that it may hold, None for no limit.

    Attributes:
        peak: the most bytes that the process and its children were seen to hold in this job.
        idle: the bytes that it held when it had started.
        scratch: its folders for unfinished files.
    """

    def __init__(self, memory: int | None = None) -> None:
        self.memory = memory
        self.peak = 0
        self.idle = 0
        self.scratch = Scratch()
        self._child: Child | None = None
        self._stopped: Exception | None = None
        self._lock = threading.Lock()

    def start(self) -> Child:
        """Start the process if there is none, and wait until it takes requests.

        Raises:
            HelperError: it cannot start.
        """
        with self._lock:
            child = self._child
        if child is not None and child.is_alive:
            return child
        self.close()
        child = Child(*_PROGRAM, group=True)
        try:
            self.idle = int(child.greet())
        except BaseException:
            child.end()
            raise
        with self._lock:
            self._child = child
        return child

    def ask(self, request: dict[str, Any], doing: str, seconds: float | None = None) -> Any:
        """Send a request and return the answer.

        Raises:
            Crashed, TimedOut, OutOfMemory: there is none.
            Evicted: it was killed for the memory of others.
            HelperError: the process cannot start.
        """
        child = self.start()
        with self._lock:
            is_stopped, self._stopped, self.peak = self._child is not child, None, 0
        if is_stopped:  # for the memory of the job before
            child.end()
            child = self.start()
        try:
            answer, _ = child.exchange({**request, "memory": self.memory}, (), seconds)
        except Ended as end:
            stopped = self._why_stopped()
            self._drop(child)
            if stopped is not None:
                raise stopped from None
            raise end.failure(doing, seconds, self.memory, "the process") from None
        except BaseException:
            self._drop(child)
            raise
        if answer["retire"] or self._why_stopped() is not None:
            self._drop(child)
        return answer["done"]

    def _why_stopped(self) -> Exception | None:
        with self._lock:
            return self._stopped

    def _drop(self, child: Child) -> None:
        self.close()
        child.end()

    def held(self) -> int:
        """Return the bytes that the process and its children hold now."""
        child = self._child
        if child is None:
            return 0
        found = held_by_tree(child.process.pid)
        self.peak = max(self.peak, found)
        return found

    def stop(self, *, is_alone: bool) -> None:
        """Kill the process for its memory: to run the job alone, or for good if it was alone."""
        size = "" if self.memory is None else f" of {self.memory / 2**20:,.0f} MiB"
        gone = OutOfMemory(f"took more memory than its limit{size} and was stopped")
        with self._lock:
            child, self._child = self._child, None
            self._stopped = gone if is_alone else Evicted()
        if child is not None:
            child.kill()

    def end(self) -> None:
        """End the process for good, and remove its unfinished files."""
        self.close()
        self.scratch.remove()

    def close(self) -> None:
        """End the process, whatever it does; a further task starts it again."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.end()


def held_by_tree(pid: int) -> int:
    """Return the bytes that a process and all processes below it hold."""
    if sys.platform != "linux":
        import psutil

        with contextlib.suppress(psutil.Error):
            below = psutil.Process(pid).children(recursive=True)
            return held_by(pid) + sum(held_by(each.pid) for each in below)
        return 0
    return held_by(pid) + sum(held_by_tree(child) for child in _children(pid))


def _children(pid: int) -> list[int]:
    """Return the processes that one started; psutil would read those of the whole machine."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                found += map(int, file.read().split())
    return found
