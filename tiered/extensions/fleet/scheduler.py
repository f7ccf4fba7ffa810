"""The scheduler of a batch: it chooses the next job, skips finished ones, and copies equal ones.

A job is skipped if the manifest says that it was done with the same input, command and versions,
and its result is still the one that was written. Models of equal content are done once: files of
equal size are digested first, small ones together, and a job waits for an equal one that runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Final, NamedTuple, Protocol

from tiered.extensions.fleet import storage
from tiered.extensions.fleet.committing import Committer
from tiered.extensions.fleet.engine import Engine
from tiered.extensions.fleet.job import Command, Job
from tiered.extensions.fleet.manifest import Manifest
from tiered.extensions.fleet.process import Evicted
from tiered.extensions.fleet.result_line import Result
from tiered.extensions.fleet.result_versions import text_of, versions
from tiered.extensions.fleet.tasks import Copy, Digest, RunTask, Task, TaskLimits, joined
from tiered.graph.io.save import data_files
from tiered.support.errors import UsageError

_OVERTAKEN: Final = 20
"""So many smaller jobs may start before one that does not fit yet."""

_SOON: Final = 0.05
"""Seconds after which results are looked for that are in the manifest meanwhile."""

_DIGESTED_JOBS: Final = 64
_DIGESTED_BYTES: Final = 16 << 20
"""The most jobs, and bytes of their models, that are digested together."""


class BatchObserver(Protocol):
    """Receives what happens in a batch."""

    def on_plan(self, count: int) -> None:
        """So many models are to be done."""

    def on_start(self, job: Job) -> None:
        """A job starts."""

    def on_result(self, result: Result) -> None:
        """The line of a job is final."""


@dataclass(frozen=True)
class BatchSettings:
    """How a batch runs.

    Attributes:
        command: of each job.
        limits: of each job.
        scratch: the folder for unfinished files, on the file system of the results; None for that
            of the system.
        fail_fast: whether no job starts after the first failure.
    """

    command: Command
    limits: TaskLimits
    scratch: str | None
    fail_fast: bool


class _Turn(NamedTuple):
    """A job that waits, and its task; None if it may have to be digested first."""

    job: Job
    task: Task | None = None


def run_batch(
    jobs: Sequence[Job],
    settings: BatchSettings,
    engine: Engine,
    manifest: Manifest,
    report: BatchObserver,
) -> list[Result]:
    """Run jobs and return their results, in the order of the jobs.

    Args:
        jobs: largest first.
        settings: how they run.
        engine: where they run.
        manifest: gets a line for each; its lines before say what is done.
        report: receives the start and the result of each job.

    Raises:
        TieredError: of the engine; what is in the manifest is done.
    """
    report.on_plan(len(jobs))
    batch = _Batch(jobs, settings, engine, manifest, report)
    batch.run()
    return [batch.results[job.target] for job in jobs]


class _Batch:
    """The state of a running batch."""

    def __init__(
        self,
        jobs: Sequence[Job],
        settings: BatchSettings,
        engine: Engine,
        manifest: Manifest,
        report: BatchObserver,
    ) -> None:
        self.results: dict[str, Result] = {}
        self._settings, self._engine = settings, engine
        self._manifest, self._report = manifest, report
        self._committer = Committer(manifest, syncs=engine.is_here)
        self._identity = settings.command.identity()
        self._versions = text_of(versions())
        self._waiting: deque[_Turn] = deque(_Turn(job) for job in jobs)
        self._alone: deque[Job] = deque()
        self._running: dict[Future[Any], tuple[Job, ...]] = {}
        self._sizes = Counter(job.source.nbytes for job in jobs)
        self._digests: dict[str, str] = {}
        self._first: dict[str, Job] = {}
        """The job that does the work of all with this digest of their inputs."""
        self._equal: defaultdict[str, list[Job]] = defaultdict(list)
        """The jobs that wait for it."""
        self._known = {
            result.key: result for result in manifest.before.values() if result.status == "done"
        }
        self._own: set[str] = set()
        """Targets that hold what the manifest says: results of this batch, which it may replace."""
        self._overtaken = 0
        self._failed = False

    def run(self) -> None:
        """Run until nothing is left."""
        try:
            while True:
                self._submit()
                if not self._running:
                    break
                timeout = _SOON if self._committer.is_busy else None
                done, _ = wait(self._running, timeout, FIRST_COMPLETED)
                self._finish([(self._running.pop(future), future) for future in done])
                self._note_committed()
        finally:
            self._committer.close()
        self._note_committed()
        waiting = (turn.job for turn in self._waiting)
        for job in (*waiting, *self._alone, *chain.from_iterable(self._equal.values())):
            self._note(self._not_run(job))

    # --- submitting -----------------------------------------------------------------------

    def _submit(self) -> None:
        """Start what fits: the largest job first, or a smaller one for a while."""
        if self._has_failed():
            return
        while self._waiting and len(self._running) < self._engine.window:
            at = self._fitting()
            if at is None:
                return
            turn = self._waiting[at]
            del self._waiting[at]
            self._start(turn)
        if not self._running and self._alone:
            job = self._alone.popleft()
            self._send((job,), self._run_of(job), is_alone=True)

    def _has_failed(self) -> bool:
        return self._settings.fail_fast and self._failed

    def _fitting(self) -> int | None:
        """Return the index of the first job with a predicted peak within the free memory."""
        room = self._engine.room()
        if room is None or not self._running:
            return 0
        for jobs in self._running.values():
            room -= max(map(self._engine.peak_of, jobs))
        for at, turn in enumerate(self._waiting):
            if self._engine.peak_of(turn.job) <= room:
                self._overtaken = self._overtaken + 1 if at else 0
                return at if self._overtaken <= _OVERTAKEN else None
        return None

    def _start(self, turn: _Turn) -> None:
        """Send the task of a job; where there is none yet, a digest may show that it is done."""
        job = turn.job
        if turn.task is not None:
            self._send((job,), turn.task)
        elif (files := self._digested(job)) is None:
            self._send((job,), self._run_of(job))
        else:
            jobs, groups = self._grouped(job, files)
            self._send(jobs, Digest(groups))

    def _digested(self, job: Job) -> tuple[str, ...] | None:
        """Return the files of a job to digest first, None if it is to run at once."""
        before = self._manifest.before.get(job.target)
        if before is not None and before.ok:
            return (*job.inputs, job.target)
        if self._sizes[job.source.nbytes] > 1 or self._manifest.before:
            return job.inputs
        return None

    def _grouped(
        self, first: Job, files: tuple[str, ...]
    ) -> tuple[tuple[Job, ...], tuple[tuple[str, ...], ...]]:
        """Return a job and the small ones that wait behind it, with their files to digest."""
        jobs, groups, nbytes = [first], [files], first.source.nbytes
        while self._waiting and len(jobs) < _DIGESTED_JOBS:
            turn = self._waiting[0]
            found = None if turn.task is not None else self._digested(turn.job)
            nbytes += turn.job.source.nbytes
            if found is None or nbytes > _DIGESTED_BYTES or any(map(storage.is_remote, found)):
                break
            self._waiting.popleft()
            jobs.append(turn.job)
            groups.append(found)
        return tuple(jobs), tuple(groups)

    def _run_of(self, job: Job) -> RunTask:
        settings = self._settings
        return RunTask(
            job,
            settings.command,
            self._identity,
            settings.limits,
            settings.scratch,
            replaces=job.target in self._own,
            syncs=not self._engine.is_here,
        )

    def _copy_of(self, job: Job, result: Result) -> Copy:
        may_replace = job.target in self._own or "--force" in self._settings.command.options
        syncs = not self._engine.is_here
        return Copy(job, result, self._settings.scratch, replaces=may_replace, syncs=syncs)

    def _send(self, jobs: tuple[Job, ...], task: Task, *, is_alone: bool = False) -> None:
        if isinstance(task, RunTask):
            self._report.on_start(task.job)
        self._running[self._engine.submit(task, is_alone=is_alone)] = jobs

    # --- finishing ------------------------------------------------------------------------

    def _finish(self, done: list[tuple[tuple[Job, ...], Future[Any]]]) -> None:
        """Take the answers of tasks, and give results to who commits them."""
        turns: list[_Turn] = []
        for jobs, future in done:
            try:
                answer = future.result()
            except Evicted:
                if len(jobs) == 1:
                    self._alone += jobs
                else:  # small models that were digested: another process took the memory
                    turns += [_Turn(job, self._run_of(job)) for job in jobs]
                continue
            if isinstance(answer, tuple):
                for job, digests in zip(jobs, answer, strict=True):
                    turns += self._decided(job, digests)
                continue
            (job,) = jobs
            if answer is None:  # the result of the equal job is gone
                turns.append(_Turn(job, self._run_of(job)))
            else:
                ended, started = self._completed(job, _confirmed(answer))
                turns += started
                self._failed |= not all(each.ok for each in ended)
                for each in ended:
                    self._committer.put(each)
        self._waiting.extendleft(reversed(turns))

    def _decided(self, job: Job, digests: tuple[str, ...]) -> list[_Turn]:
        """Skip a job that is done, wait for an equal one, or return a task: to copy, or to run."""
        count = len(job.inputs)
        digest = joined(digests[:count])
        before = self._manifest.before.get(job.target)
        if before is not None and len(digests) > count:
            is_there = digests[count] == before.sha256_out != ""
            if is_there:
                self._own.add(job.target)
            if is_there and before.key == (digest, self._identity, self._versions):
                self._note(replace(before, status="skipped", reason="", source=job.source.path))
                return []
        self._digests[job.target] = digest
        known = self._known.get((digest, self._identity, self._versions))
        if digest and known is not None and known.target != job.target and self._may_copy(known):
            return [_Turn(job, self._copy_of(job, known))]
        if digest in self._first:
            self._equal[digest].append(job)
            return []
        if digest:
            self._first[digest] = job
        return [_Turn(job, self._run_of(job))]

    def _may_copy(self, result: Result) -> bool:
        """Return whether a copy is the result: not with the names of files in it."""
        has_data = any(storage.size_of(name) is not None for name in data_files(result.target))
        return self._settings.command.writes_model and not has_data and result.nbytes is not None

    def _completed(self, job: Job, result: Result) -> tuple[list[Result], list[_Turn]]:
        """Return a result, with those of equal jobs that need no work, and tasks of the others."""
        digest = self._digests.get(job.target, "")
        if result.status == "done":
            self._known[result.key] = result
        if self._first.get(digest) is not job:
            return [result], []
        del self._first[digest]
        waiting = self._equal.pop(digest, [])
        if result.status == "failed" and not _is_of_target(result):  # equal inputs come to the same
            failed = [self._as_equal(each, result) for each in waiting]
            return [result, *failed], []
        may_copy = result.ok and self._may_copy(result)
        task_of = (lambda each: self._copy_of(each, result)) if may_copy else self._run_of
        return [result], [_Turn(each, task_of(each)) for each in waiting]

    def _as_equal(self, job: Job, result: Result) -> Result:
        reason = result.reason.replace(result.source, job.source.path)
        return replace(result, source=job.source.path, target=job.target, reason=reason)

    def _note_committed(self) -> None:
        for result in self._committer.taken():
            self._note(result)

    def _note(self, result: Result) -> None:
        self.results[result.target] = result
        self._failed |= not result.ok  # the disk may have refused it
        self._report.on_result(result)

    def _not_run(self, job: Job) -> Result:
        reason = "another model failed before, and --fail-fast ends the batch"
        return Result(job.source.path, job.target, "not run", reason)


def _is_of_target(result: Result) -> bool:
    """Return whether a failure may be due to the place of the result, not to the input."""
    is_named = result.target in result.reason
    return is_named or result.exit_code == UsageError.exit_code or result.nbytes is not None


def _confirmed(result: Result) -> Result:
    """Return a result, as failed if the file that was written is not there."""
    if result.nbytes is None:
        return result
    found = storage.size_of(result.target)
    if found == result.nbytes:
        return result
    reason = f"the result has {found} bytes where it was written, expected {result.nbytes}"
    return replace(result, status="failed", reason=reason, exit_code=1)
