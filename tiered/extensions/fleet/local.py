"""The engine of one machine: processes that are started for the batch, within its memory.

As many jobs run at once as their predicted peaks fit. Should they take more together, the one that
is furthest beyond its prediction is stopped and runs again alone: how the memory is shared changes
no result. A job that runs alone and takes more than the limit has failed.
"""

from __future__ import annotations

import os
import queue
import threading
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Final

from tiered.extensions.fleet.job import Job
from tiered.extensions.fleet.predicted_peak import predicted_peak
from tiered.extensions.fleet.process import JobProcess
from tiered.extensions.fleet.tasks import Digest, Task
from tiered.runtime.worker.limits import physical_memory
from tiered.support.errors import UsageError

_SOONEST: Final = 0.02
_LATEST: Final = 0.25
"""The least and the most seconds between two looks at the memory."""
_FASTEST: Final = 4 << 30
"""The bytes that processes can fill in a second: the next look is before there is no room."""
_FULL: Final = 0.9
"""The share of the limit from which a process is stopped: memory is looked at now and then."""
_LEAST: Final = 64 << 20
"""Bytes that a job needs beyond an idle process."""


class LocalEngine:
    """Processes of this machine.

    Args:
        jobs: how many at most; None for one a processor.
        memory: the most bytes that all of them may hold; None for those of the machine.
        runs: whether the command runs models.

    Raises:
        UsageError: the memory is not enough for one process.
        HelperError: a process cannot start.
    """

    is_here = True

    def __init__(self, jobs: int | None, memory: int | None, *, runs: bool) -> None:
        self.window = jobs or processors()
        self.memory = memory
        self._total = physical_memory() if memory is None else memory
        self._runs = runs
        self._processes = [JobProcess(memory) for _ in range(self.window)]
        self._idle: queue.LifoQueue[JobProcess] = queue.LifoQueue()
        for process in reversed(self._processes):
            self._idle.put(process)
        self._running: dict[JobProcess, int] = {}
        self._alone = False
        self._closed = threading.Event()
        self._lock = threading.Lock()
        self._check_memory()
        self._threads = ThreadPoolExecutor(self.window, thread_name_prefix="tiered-batch")
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def peak_of(self, job: Job) -> int:
        """Return the bytes that a job is expected to take beyond an idle process."""
        return predicted_peak(job.source.nbytes, runs=self._runs)

    def room(self) -> int:
        """Return the bytes that jobs may take together beyond idle processes."""
        return int(self._total * _FULL) - self.window * self._processes[0].idle

    def submit(self, task: Task, *, is_alone: bool = False) -> Future[Any]:
        """Start a task in a process that is free."""
        if is_alone:
            self._end_idle()
        self._alone = is_alone
        return self._threads.submit(self._perform, task)

    def close(self) -> None:
        """End all processes, whatever they do."""
        self._closed.set()
        for process in self._processes:
            process.close()
        self._threads.shutdown(wait=True, cancel_futures=True)
        for process in self._processes:
            process.end()

    def _perform(self, task: Task) -> Any:
        process = self._idle.get()
        expected = 0 if isinstance(task, Digest) else self.peak_of(task.job)
        try:
            with self._lock:
                self._running[process] = expected
            return task.perform(process)
        finally:
            with self._lock:
                del self._running[process]
            self._idle.put(process)

    def _check_memory(self) -> None:
        """Start the first process, and check that a job has memory in it.

        Raises:
            UsageError: it has not.
        """
        first = self._processes[0]
        first.start()
        if self.memory is None:
            return
        least = first.idle + _LEAST
        if self.memory < least:
            first.close()
            raise UsageError(
                f"--max-memory: {self.memory:,} bytes are too few; a process for a model needs at "
                f"least {least:,}"
            )
        fitting = max(1, int(self.memory * _FULL) // least)
        self.window = min(self.window, fitting)

    def _end_idle(self) -> None:
        """End the processes that have nothing to do, but the one that takes the next task."""
        with self._lock:
            idle = [each for each in self._processes if each not in self._running]
        following = self._idle.queue[-1:]
        for process in idle:
            if process not in following:
                process.close()

    def _watch(self) -> None:
        """Stop a process when all of them hold too much."""
        pause = _SOONEST
        while not self._closed.wait(pause):
            held = {process: process.held() for process in self._processes}
            if self.memory is None:
                pause = _LATEST  # only their peaks are noted
                continue
            room = self.memory * _FULL - sum(held.values())
            pause = min(_LATEST, max(_SOONEST, room / _FASTEST))
            if room >= 0:
                continue
            with self._lock:
                running = dict(self._running)
            if running:
                worst = max(running, key=lambda each: held[each] - running[each])
                worst.stop(is_alone=self._alone and len(running) == 1)


def processors() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
