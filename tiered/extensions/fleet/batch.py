"""The scheduler of a batch: it chooses the next job, skips finished ones, and copies equal ones.

A job is skipped if the manifest says that it was done with the same input, command and versions,
and its result is still the one that was written. Models of equal content are done once: files of
equal size are digested first, and a job waits for an equal one that runs.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from tiered.extensions.fleet import storage
from tiered.extensions.fleet.engine import Engine
from tiered.extensions.fleet.job import Command, Job
from tiered.extensions.fleet.manifest import Manifest
from tiered.extensions.fleet.process import Evicted
from tiered.extensions.fleet.result import Result
from tiered.extensions.fleet.tasks import Copy, Digest, Limits, Run, Task, joined
from tiered.extensions.fleet.versions import text_of, versions
from tiered.graph.io.save import data_files
from tiered.support.errors import TieredError

_OVERTAKEN: Final = 20
"""So many smaller jobs may start before one that does not fit yet."""


class Report(Protocol):
    """Receives what happens in a batch."""

    def on_plan(self, count: int) -> None:
        """So many models are to be done."""

    def on_start(self, job: Job) -> None:
        """A job starts."""

    def on_result(self, result: Result) -> None:
        """The line of a job is final."""


@dataclass(frozen=True)
class Settings:
    """How a batch runs.

    Attributes:
        command: of each job.
        limits: of each job.
        scratch: the folder for unfinished files, on the file system of the results; None for that
            of the system.
        fail_fast: whether no job starts after the first failure.
    """

    command: Command
    limits: Limits
    scratch: str | None
    fail_fast: bool


def run_batch(
    jobs: Sequence[Job], settings: Settings, engine: Engine, manifest: Manifest, report: Report
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
        settings: Settings,
        engine: Engine,
        manifest: Manifest,
        report: Report,
    ) -> None:
        self.results: dict[str, Result] = {}
        self._settings, self._engine = settings, engine
        self._manifest, self._report = manifest, report
        self._identity = settings.command.identity()
        self._versions = text_of(versions())
        self._waiting = deque(jobs)
        self._alone: deque[Job] = deque()
        self._running: dict[Future[Any], Job] = {}
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

    def run(self) -> None:
        """Run until nothing is left."""
        while True:
            self._submit()
            if not self._running:
                break
            done, _ = wait(self._running, return_when=FIRST_COMPLETED)
            self._finish([(self._running.pop(future), future) for future in done])
        for job in (*self._waiting, *self._alone):
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
            job = self._waiting[at]
            del self._waiting[at]
            self._start(job)
        if not self._waiting and not self._running and self._alone:
            job = self._alone.popleft()
            self._send(job, self._run_of(job), is_alone=True)

    def _has_failed(self) -> bool:
        return self._settings.fail_fast and any(not each.ok for each in self.results.values())

    def _fitting(self) -> int | None:
        """Return the index of the first job with a predicted peak within the free memory."""
        room = self._engine.room()
        if room is None or not self._running:
            return 0
        room -= sum(self._engine.peak_of(job) for job in self._running.values())
        for at, job in enumerate(self._waiting):
            if self._engine.peak_of(job) <= room:
                self._overtaken = self._overtaken + 1 if at else 0
                return at if self._overtaken <= _OVERTAKEN else None
        return None

    def _start(self, job: Job) -> None:
        """Digest the input of a job if that may show that it is done, else run the job."""
        before = self._manifest.before.get(job.target)
        if before is not None and before.ok:
            self._send(job, Digest((*job.inputs, job.target)))
        elif self._sizes[job.source.nbytes] > 1 or self._manifest.before:
            self._send(job, Digest(job.inputs))
        else:
            self._send(job, self._run_of(job))

    def _run_of(self, job: Job) -> Run:
        settings = self._settings
        return Run(
            job,
            settings.command,
            self._identity,
            settings.limits,
            settings.scratch,
            replaces=job.target in self._own,
        )

    def _copy_of(self, job: Job, result: Result) -> Copy:
        may_replace = job.target in self._own or "--force" in self._settings.command.options
        return Copy(job, result, self._settings.scratch, replaces=may_replace)

    def _send(self, job: Job, task: Task, *, is_alone: bool = False) -> None:
        if isinstance(task, Run):
            self._report.on_start(job)
        self._running[self._engine.submit(task, is_alone=is_alone)] = job

    # --- finishing ------------------------------------------------------------------------

    def _finish(self, done: list[tuple[Job, Future[Any]]]) -> None:
        """Take the answers of tasks; results are in the manifest when this returns."""
        results: list[Result] = []
        for job, future in done:
            try:
                answer = future.result()
            except Evicted:
                self._alone.append(job)
                continue
            except TieredError:
                self._manifest.append(results)
                raise
            if isinstance(answer, tuple):
                self._decide(job, answer)
            elif answer is None:
                self._send(job, self._run_of(job))  # the result of the equal job is gone
            else:
                results += self._completed(job, _confirmed(answer))
        self._manifest.append(result for result in results if result.status != "skipped")
        for result in results:
            self._note(result)

    def _decide(self, job: Job, digests: tuple[str, ...]) -> None:
        """Skip a job that is done, copy the result of an equal one, or run it."""
        count = len(job.inputs)
        digest = joined(digests[:count])
        before = self._manifest.before.get(job.target)
        if before is not None and len(digests) > count:
            is_there = digests[count] == before.sha256_out != ""
            if is_there:
                self._own.add(job.target)
            if is_there and before.key == (digest, self._identity, self._versions):
                self._note(replace(before, status="skipped", reason="", source=job.source.path))
                return
        self._digests[job.target] = digest
        known = self._known.get((digest, self._identity, self._versions))
        if not digest:
            self._send(job, self._run_of(job))
        elif known is not None and known.target != job.target and self._may_copy(known):
            self._send(job, self._copy_of(job, known))
        elif digest in self._first:
            self._equal[digest].append(job)
        else:
            self._first[digest] = job
            self._send(job, self._run_of(job))

    def _may_copy(self, result: Result) -> bool:
        """Return whether a copy is the result: not with the names of files in it."""
        has_data = any(storage.size_of(name) is not None for name in data_files(result.target))
        return self._settings.command.writes_model and not has_data and result.nbytes is not None

    def _completed(self, job: Job, result: Result) -> list[Result]:
        """Return a result, with those of equal jobs that need no work; start the others."""
        digest = self._digests.get(job.target, "")
        if result.status == "done":
            self._known[result.key] = result
        if self._first.get(digest) is not job:
            return [result]
        del self._first[digest]
        waiting = self._equal.pop(digest, [])
        if result.status == "failed":  # an equal input comes to the same
            failed = [self._as_equal(each, result) for each in waiting]
            return [result, *failed]
        for each in waiting:
            if result.ok and self._may_copy(result):
                self._send(each, self._copy_of(each, result))
            else:
                self._send(each, self._run_of(each))
        return [result]

    def _as_equal(self, job: Job, result: Result) -> Result:
        reason = result.reason.replace(result.source, job.source.path)
        return replace(result, source=job.source.path, target=job.target, reason=reason)

    def _note(self, result: Result) -> None:
        self.results[result.target] = result
        self._report.on_result(result)

    def _not_run(self, job: Job) -> Result:
        reason = "another model failed before, and --fail-fast ends the batch"
        return Result(job.source.path, job.target, "not run", reason)


def _confirmed(result: Result) -> Result:
    """Return a result, as failed if the file that was written is not there."""
    if result.nbytes is None:
        return result
    found = storage.size_of(result.target)
    if found == result.nbytes:
        return result
    reason = f"the result has {found} bytes where it was written, expected {result.nbytes}"
    return replace(result, status="failed", reason=reason, exit_code=1)
