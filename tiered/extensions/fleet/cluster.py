"""The engine of a Dask cluster: tasks are sent to its workers, which run jobs in processes.

Dask schedules, retries and watches its workers. A job runs in a process below the worker, so that a
model that crashes stops no worker. If a worker is lost, its tasks run again on another one.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import time
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tiered.extensions.fleet.job import Job
from tiered.extensions.fleet.predicted_peak import predicted_peak
from tiered.extensions.fleet.process import JobProcess
from tiered.extensions.fleet.result_line import Result
from tiered.extensions.fleet.result_versions import check_versions, text_of, versions
from tiered.extensions.fleet.tasks import Digest, RunTask, Task
from tiered.support.errors import FleetError, TieredError

if TYPE_CHECKING:
    from distributed import Client

T = TypeVar("T")

RETRIES: Final = 2
"""How often Dask tries a task again, on another worker if it can."""

WAIT: Final = 30.0
"""The seconds to wait for the first worker."""

_COUNTED_FOR: Final = 2.0
"""The seconds for which a count of the threads holds."""

_AHEAD: Final = 2
"""Tasks that are submitted for each thread of a worker, so that none waits for the next one."""


def connect(cluster: str) -> Client:
    """Return a client of a scheduler, by its address or its scheduler file.

    Raises:
        FleetError: Dask is not installed, or there is no scheduler.
    """
    try:
        from distributed import Client
    except ImportError as error:
        raise FleetError("a cluster needs dask[distributed]; install tiered[fleet]") from error
    if "://" not in cluster and not os.path.isfile(cluster):  # Client waits for the file for ever
        raise FleetError(
            f"no scheduler file {cluster!r}; expected tcp://HOST:PORT, or the file of "
            "`dask scheduler --scheduler-file FILE`"
        )
    try:
        if "://" in cluster:
            return Client(cluster)
        return Client(scheduler_file=cluster)
    except (OSError, TimeoutError, ValueError) as error:
        raise FleetError(f"no Dask scheduler at {cluster!r}: {error}") from error


class DaskEngine:
    """The workers of a Dask cluster.

    Args:
        client: of the cluster.
        memory: the most bytes that the jobs of one worker may hold together; None for no limit.
        jobs: how many tasks at once, at most; None for what keeps all workers busy.

    Raises:
        FleetError: there is no worker, or one has other versions than this process.
    """

    def __init__(self, client: Client, memory: int | None, jobs: int | None = None) -> None:
        self._client = client
        self._memory = memory
        self._jobs = jobs
        self._running: set[Any] = set()
        self._threads, self._counted = 0, -_COUNTED_FOR
        self._expected = versions()
        try:
            client.wait_for_workers(1, timeout=WAIT)
        except TimeoutError as error:
            raise FleetError(
                f"the cluster has no worker after {WAIT:g} s; start one: dask worker ADDRESS"
            ) from error
        found = client.run(_versions_of_worker)
        for address, its in found.items():
            check_versions(str(address), its, self._expected)

    is_here = False

    @property
    def window(self) -> int:
        """How many tasks may be submitted and not done: workers may come and go.

        Raises:
            FleetError: the scheduler does not answer.
        """
        if self._jobs is not None:
            return self._jobs
        now = time.monotonic()
        if now >= self._counted + _COUNTED_FOR:  # it asks the scheduler
            try:
                self._threads, self._counted = sum(self._client.nthreads().values()), now
            except (OSError, RuntimeError) as error:
                raise _lost_scheduler() from error
        return max(1, _AHEAD * self._threads)

    def peak_of(self, job: Job) -> int:
        """Return the bytes that a job is expected to take."""
        return predicted_peak(job.source.nbytes, runs=False)

    def room(self) -> None:
        """Return None: Dask's workers have their own limits."""

    def submit(self, task: Task, *, is_alone: bool = False) -> Future[Any]:
        """Send a task to a worker.

        Raises:
            FleetError: the scheduler does not answer.
        """
        result: Future[Any] = Future()
        result.set_running_or_notify_cancel()
        try:
            sent = self._client.submit(
                perform_on_worker, task, self._expected, self._memory, pure=False, retries=RETRIES
            )
        except (OSError, RuntimeError) as error:
            raise _lost_scheduler() from error
        self._running.add(sent)

        def finish(done: Any) -> None:
            self._running.discard(done)
            _pass_on(done, task, result, self._client)

        sent.add_done_callback(finish)
        return result

    def close(self) -> None:
        """Cancel all tasks."""
        with contextlib.suppress(OSError, RuntimeError):
            self._client.cancel(list(self._running))


def _pass_on(done: Any, task: Task, result: Future[Any], client: Client) -> None:
    """Give the outcome of a task of Dask to a future; a lost worker is the line of its model."""
    try:
        result.set_result(done.result())
    except TieredError as error:
        result.set_exception(error)
    except CancelledError:  # by Dask, as the scheduler does not know the task any more
        result.set_exception(_lost_scheduler())
    except Exception as error:  # noqa: BLE001 - whatever Dask or the worker raised
        if client.status != "running":
            result.set_exception(_lost_scheduler())
            return
        lost = _lost(task, error)
        if lost is None:
            result.set_exception(FleetError(f"a task failed on the cluster: {error}"))
        else:
            result.set_result(lost)


def _lost_scheduler() -> FleetError:
    return FleetError(
        "the connection to the Dask scheduler is lost; start it and its workers again, and the "
        "batch with --resume"
    )


def _lost(task: Task, error: Exception) -> Result | tuple[tuple[str, ...], ...] | None:
    """Return the answer to a task after each of its attempts lost the worker."""
    if isinstance(task, Digest):
        return tuple(("",) * len(group) for group in task.groups)
    if not isinstance(task, RunTask):
        return None
    reason = f"its worker was lost: {type(error).__name__}: {' '.join(str(error).split())[:300]}"
    return Result(
        source=task.job.source.path,
        target=task.job.target,
        status="crashed",
        reason=reason,
        exit_code=1,
        command=task.identity,
        versions=text_of(versions()),
    )


# --- on the worker --------------------------------------------------------------------------------


def perform_on_worker(task: Task, expected: dict[str, str], memory: int | None) -> Any:
    """Perform a task in a process below this worker.

    Raises:
        FleetError: this worker has other versions than the submitter.
    """
    check_versions(_address(), versions(), expected)
    threads = _threads()
    share = None if memory is None else memory // threads
    processes = _processes(os.getpid(), share)
    try:
        process = processes.get_nowait()
    except queue.Empty:
        process = JobProcess(share)
        atexit.register(process.end)
    try:
        if isinstance(task, RunTask):
            task = replace(task, limits=replace(task.limits, memory=share))
        return task.perform(process)
    finally:
        processes.put(process)


@cache
def _processes(pid: int, memory: int | None) -> queue.LifoQueue[JobProcess]:
    """Return the processes of this worker that are free."""
    return queue.LifoQueue()


def _versions_of_worker() -> dict[str, str]:
    return versions()


def _address() -> str:
    return _of_worker(lambda worker: str(worker.address), "of this process")


def _threads() -> int:
    return _of_worker(lambda worker: int(worker.state.nthreads), 1)


def _of_worker(read: Callable[[Any], T], default: T) -> T:
    from distributed import get_worker

    try:
        return read(get_worker())
    except ValueError:  # no worker
        return default
