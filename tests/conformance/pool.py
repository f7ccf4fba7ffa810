"""Worker processes in which a native crash or an endless loop is one lost task and not the end."""

import multiprocessing
import os
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Generic, TypeVar

Task = TypeVar("Task")
Answer = TypeVar("Answer")

Report = Callable[[str], None]
Work = Callable[[Task, Report], Answer]

_SPAWN = multiprocessing.get_context("spawn")
_STARTUP = 60.0  # seconds more until the first sign of life: the work's imports


@dataclass(frozen=True)
class Lost:
    """A task that got no answer.

    Attributes:
        kind: "crash" (the process died), "hang" (it was killed) or "harness" (the work raised).
        detail: what is known: the signal, the last stage it reported, the traceback.
    """

    kind: str
    detail: str


@dataclass(frozen=True)
class _Stage:
    text: str


@dataclass(frozen=True)
class _Done(Generic[Answer]):
    answer: Answer | Lost


def run_tasks(
    work: Work[Task, Answer],
    tasks: Iterable[Task],
    *,
    jobs: int,
    timeout: float,
    hash_seed: int = 0,
) -> Iterator[tuple[Task, Answer | Lost]]:
    """Yield each task with its answer, in the order in which they are done.

    Args:
        work: a module-level function; it gets a task and `report`, which names the stage it is in.
        tasks: picklable, started in this order.
        jobs: how many processes work side by side; each takes many tasks.
        timeout: seconds that a process may go without a sign of life.
        hash_seed: PYTHONHASHSEED of the workers.
    """
    queue = deque(tasks)
    workers: list[_Worker[Task, Answer]] = []
    try:
        while queue or workers:
            while queue and len(workers) < jobs:
                workers.append(_Worker(work, queue.popleft(), timeout, hash_seed))
            patience = max(0.0, min(worker.deadline for worker in workers) - time.monotonic())
            ready = wait([worker.connection for worker in workers], patience)
            for worker in list(workers):
                answer = worker.poll(worker.connection in ready)
                if answer is None:
                    continue
                yield worker.task, answer
                if queue and worker.alive:
                    worker.start(queue.popleft())
                else:
                    worker.stop()
                    workers.remove(worker)
    finally:
        for worker in workers:
            worker.stop()


class _Worker(Generic[Task, Answer]):
    """One process and the task it is at."""

    def __init__(
        self, work: Work[Task, Answer], task: Task, timeout: float, hash_seed: int
    ) -> None:
        self.connection, theirs = _SPAWN.Pipe()
        self.alive = True
        self._timeout = timeout
        self._process = _SPAWN.Process(target=_serve, args=(theirs, work), daemon=True)
        os.environ["PYTHONHASHSEED"] = str(hash_seed)  # read once, when the interpreter starts
        self._process.start()
        theirs.close()  # so that the death of the process ends the connection
        self.start(task)
        self.deadline += _STARTUP

    def start(self, task: Task) -> None:
        self.task = task
        self._stage = "start"
        self._see_alive()
        self.connection.send(task)

    def poll(self, ready: bool) -> Answer | Lost | None:
        """Return the answer to the task, or None while there is none yet."""
        if not ready:
            if time.monotonic() < self.deadline:
                return None
            self.stop()
            return Lost("hang", f"no sign of life for {self._timeout:.0f} s at: {self._stage}")
        try:
            message = self.connection.recv()
        except (EOFError, ConnectionResetError):
            self._process.join()
            self.alive = False
            return Lost("crash", f"{_cause(self._process.exitcode)} at: {self._stage}")
        if isinstance(message, _Done):
            done: _Done[Answer] = message
            return done.answer
        self._stage = message.text
        self._see_alive()
        return None

    def stop(self) -> None:
        self.alive = False
        self._process.kill()
        self._process.join()
        self.connection.close()

    def _see_alive(self) -> None:
        self.deadline = time.monotonic() + self._timeout


def _serve(connection: Connection, work: Work[Task, Answer]) -> None:
    """Answer tasks until the other side hangs up."""

    def report(stage: str) -> None:
        connection.send(_Stage(stage))

    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        try:
            answer: Answer | Lost = work(task, report)
        except Exception:  # noqa: BLE001 - the report shows it, and the other tasks go on
            answer = Lost("harness", traceback.format_exc())
        connection.send(_Done(answer))


def _cause(exit_code: int | None) -> str:
    if exit_code is not None and exit_code < 0:
        return signal.Signals(-exit_code).name
    return f"exit code {exit_code}"
