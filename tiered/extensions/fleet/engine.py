"""Where the tasks of a batch run: what the scheduler of a batch needs of an engine."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, Protocol

from tiered.extensions.fleet.job import Job
from tiered.extensions.fleet.tasks import Task


class Engine(Protocol):
    """Runs tasks, several at once."""

    @property
    def is_here(self) -> bool:
        """Whether tasks write on this machine, and leave it to the batch to sync their files."""

    @property
    def window(self) -> int:
        """How many tasks may be submitted and not done."""

    def peak_of(self, job: Job) -> int:
        """Return the bytes that a job is expected to take."""

    def room(self) -> int | None:
        """Return the bytes that running jobs may take together, None for no limit."""

    def submit(self, task: Task, *, is_alone: bool = False) -> Future[Any]:
        """Start a task; its result is that of `perform`.

        Args:
            task: the task.
            is_alone: whether no other one runs beside it.
        """

    def close(self) -> None:
        """End all that runs."""
