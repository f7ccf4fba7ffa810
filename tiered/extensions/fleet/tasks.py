"""The tasks of a batch: digest files, run a job, copy a result. Each is done where it is sent.

A task fetches what is remote, runs a command line in a process of its own, and moves the result to
its place. It returns plain data, so that it can be sent to other machines.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from tiered.extensions.fleet import storage
from tiered.extensions.fleet.crash_bundle import OUT, CrashBundle
from tiered.extensions.fleet.job import Command, Job
from tiered.extensions.fleet.process import JobProcess
from tiered.extensions.fleet.result_line import Result, Status
from tiered.extensions.fleet.result_versions import text_of, versions
from tiered.extensions.fleet.scratch import STAGED
from tiered.support.errors import (
    Crashed,
    ModelError,
    OutOfMemory,
    RuntimeFailure,
    TimedOut,
    UsageError,
)
from tiered.support.whole_files import write_text

SCRATCH: Final = ".tiered-batch"
"""The folder for unfinished files, in the folder of the results."""

_REPRODUCED: Final = frozenset({3, 5})
"""The exit codes of failures that a bundle shows."""
_ENDED_BY_MEMORY: Final = frozenset({1, 5})
"""The exit codes that want of memory may have."""
_LONGEST_REASON: Final = 400
_FILE_FIELDS: Final = ("input", "output", "model", "file", "first", "second")


@dataclass(frozen=True)
class TaskLimits:
    """What one task may take: seconds of its command, and bytes of its processes."""

    seconds: float | None = None
    memory: int | None = None


@dataclass(frozen=True)
class Digest:
    """Find the sha256 of the files of several jobs."""

    groups: tuple[tuple[str, ...], ...]

    def perform(self, process: JobProcess) -> tuple[tuple[str, ...], ...]:
        """Return the digests of each group, "" for what cannot be read."""
        paths = list(dict.fromkeys(path for group in self.groups for path in group))
        found = self._found(paths, process)
        if found is None:  # which one it is that ends the process, only each alone can tell
            found = [(self._found([path], process) or [""])[0] for path in paths]
        digests = dict(zip(paths, found, strict=True))
        return tuple(tuple(digests[path] for path in group) for group in self.groups)

    def _found(self, paths: Sequence[str], process: JobProcess) -> list[str] | None:
        """Return the digests of files; None if one of them cannot be fetched or read at all."""
        is_remote = any(map(storage.is_remote, paths))
        with process.scratch.within(None) if is_remote else contextlib.nullcontext("") as folder:
            try:
                local = [_fetched(path, _own_folder(folder, path), process) for path in paths]
                doing = f"reading {paths[0]}"
                return [str(each) for each in process.ask({"do": "digest", "paths": local}, doing)]
            except (ModelError, RuntimeFailure):
                return None  # the run of the job reports it


@dataclass(frozen=True)
class Copy:
    """Copy the result of an equal input.

    Attributes:
        job, of: what to do, and the result of the equal input.
        scratch: the folder for unfinished files.
        replaces: whether the target holds a result of this batch, or any may be replaced.
        syncs: whether the target is on the disk afterwards, if it is on this machine.
    """

    job: Job
    of: Result
    scratch: str | None
    replaces: bool = False
    syncs: bool = True

    def perform(self, process: JobProcess) -> Result | None:
        """Return the result of the copy; None if there is no whole result to copy."""
        job, of = self.job, self.of
        with process.scratch.within(self.scratch) as folder:
            staged = _staged(job, folder)
            try:
                storage.copy(of.target, staged)
            except (ModelError, OSError):
                return None
            if os.path.getsize(staged) != of.nbytes:
                return None
            is_local = not storage.is_remote(job.target)
            if is_local and not self.replaces and os.path.exists(job.target):
                return None  # a run checks whether it may be replaced
            storage.place(staged, job.target, syncs=self.syncs)
        return replace(
            of,
            source=job.source.path,
            target=job.target,
            status="cached",
            reason=f"as {of.source}",
            seconds=0.0,
            peak=None,
        )


@dataclass(frozen=True)
class RunTask:
    """Run the command of a job and write its result.

    Attributes:
        job, command: what to do.
        identity: that of the command.
        limits: of the command.
        scratch: the folder for unfinished files.
        replaces: whether the target holds a result of this batch.
        syncs: whether the target is on the disk afterwards, if it is on this machine.
    """

    job: Job
    command: Command
    identity: str
    limits: TaskLimits
    scratch: str | None
    replaces: bool = False
    syncs: bool = True

    def perform(self, process: JobProcess) -> Result:
        """Return what became of the job; errors of the model are part of it.

        Raises:
            Evicted: the process was killed for the memory of others.
            HelperError: the process cannot start.
        """
        with process.scratch.within(self.scratch) as folder:
            try:
                files = self._files(process, folder)
                answer = self._answer(process, files, folder)
                result = self._result(process, files, answer, folder)
                if result.exit_code in _REPRODUCED:
                    self._reproduce(process, files, folder)
                return result
            except (Crashed, TimedOut, OutOfMemory) as error:
                lost = self._lost(error, process)
                return replace(lost, reason=self._shown(lost.reason, folder))
            except (ModelError, UsageError) as error:
                return self._failed("failed", str(error), error.exit_code)

    # --- what it does ---------------------------------------------------------------------

    def _files(self, process: JobProcess, folder: str) -> list[str]:
        job = self.job
        return [
            _fetched(path, os.path.join(folder, f"in{number}"), process)
            for number, path in enumerate(job.inputs)
        ]

    def _answer(
        self, process: JobProcess, files: list[str], folder: str, *, with_reproducer: bool = False
    ) -> dict[str, Any]:
        job, staged = self.job, _staged(self.job, folder)
        words = self.command.words(tuple(files), staged)
        if with_reproducer and job.reproducer is not None:
            words += ["--reproducer", job.reproducer]
        is_local = not storage.is_remote(job.target)
        if is_local and not os.path.isdir(place := os.path.dirname(job.target) or "."):
            os.makedirs(place, exist_ok=True)
        request = {
            "do": "run",
            "words": words,
            "files": files,
            "out": staged if self.command.writes_model else None,
            "target": job.target if is_local and self.command.writes_model else None,
            "force": self.replaces or "--force" in self.command.options,
        }
        answer: dict[str, Any] = process.ask(
            request, f"running {job.source.path}", self.limits.seconds
        )
        return answer

    def _result(
        self, process: JobProcess, files: list[str], answer: dict[str, Any], folder: str
    ) -> Result:
        """Move the result to its place, and return its line."""
        record = None if self.command.writes_model else _record(answer["out"])
        result = self._with_figures(answer, record, process)
        code = int(answer["code"])
        if code:
            text = self._shown(str(answer["err"]), folder)
            is_memory = answer["is_memory"] and code in _ENDED_BY_MEMORY
            status: Status = "memory" if is_memory and self.limits.memory else "failed"
            result = replace(result, status=status, reason=_reason(text), exit_code=code)
        staged = _staged(self.job, folder)
        if not self.command.writes_model:
            if record is None:
                return result
            text = self._renamed(record, files)
            write_text(staged, text)
            digest = hashlib.sha256(text.encode()).hexdigest()
            result = replace(result, sha256_out=digest)
        elif code:
            return result
        if not os.path.exists(staged):  # --dry-run
            return result
        nbytes = os.path.getsize(staged)
        self._place(staged)
        return replace(result, nbytes=nbytes)

    def _place(self, staged: str) -> None:
        """Move the files of the result: its weights first, so that the model is never without."""
        target = self.job.target
        name = os.path.basename(staged)
        beside = sorted(set(os.listdir(os.path.dirname(staged))) - {name})
        if beside:
            storage.remove(target)  # it would have the weights of the new one
        for other in beside:
            place = storage.join(storage.parent(target), other)
            storage.place(os.path.join(os.path.dirname(staged), other), place, syncs=self.syncs)
        storage.place(staged, target, syncs=self.syncs)

    def _reproduce(self, process: JobProcess, files: list[str], folder: str) -> None:
        """Run a command that failed once more, so that it writes a bundle."""
        if self.job.reproducer is None or self.command.name != "optimize":
            return
        with contextlib.suppress(RuntimeFailure):  # the line of the job is known
            self._answer(process, files, folder, with_reproducer=True)

    # --- what it says ---------------------------------------------------------------------

    def _with_figures(
        self, answer: dict[str, Any], record: dict[str, Any] | None, process: JobProcess
    ) -> Result:
        figures, own = answer["figures"], answer["peak"]
        verified = figures.get("verified") if record is None else record.get("ok")
        nodes = None if record is None else record.get("nodes")
        return Result(
            source=self.job.source.path,
            target=self.job.target,
            status="done",
            nodes_before=figures.get("nodes_before", nodes),
            nodes_after=figures.get("nodes_after"),
            bytes_before=figures.get("bytes_before"),
            bytes_after=figures.get("bytes_after"),
            seconds=round(float(answer["seconds"]), 6),
            peak=max(own or 0, process.peak) or None,
            passes=figures.get("passes", ""),
            verified=verified if self.command.compares else None,
            sha256_in=joined(answer["sha256_in"]),
            sha256_out=str(answer["sha256_out"]),
            command=self.identity,
            versions=text_of(versions()),
        )

    def _failed(self, status: Status, reason: str, code: int) -> Result:
        return Result(
            source=self.job.source.path,
            target=self.job.target,
            status=status,
            reason=_reason(reason),
            exit_code=code,
            command=self.identity,
            versions=text_of(versions()),
        )

    def _lost(self, error: RuntimeFailure, process: JobProcess) -> Result:
        """Return the result of a job after its process was lost, and write its bundle."""
        status: Status = "crashed"
        if isinstance(error, TimedOut):
            status = "timeout"
        elif isinstance(error, OutOfMemory):
            status = "memory"
        reason = str(error)
        if self.job.reproducer is not None:
            bundle = CrashBundle.of(
                self.command.words(self.job.inputs, OUT),
                self.job.inputs,
                status,
                reason,
                seconds=self.limits.seconds,
                memory=process.memory,
            )
            bundle.save(self.job.reproducer)
        peak = process.peak or None
        return replace(self._failed(status, reason, 1), peak=peak)

    def _shown(self, text: str, folder: str) -> str:
        """Return a message with the paths of the job instead of those of its unfinished files."""
        for number, path in enumerate(self.job.inputs):
            scratch = os.path.join(folder, f"in{number}", path.rpartition("/")[2])
            text = text.replace(scratch, path)
        return text.replace(_staged(self.job, folder), self.job.target)

    def _renamed(self, record: dict[str, Any], files: Sequence[str]) -> str:
        """Return the JSON of a report, with the paths of the job instead of local copies."""
        names = dict(zip(files, self.job.inputs, strict=True))
        for field in _FILE_FIELDS:
            if record.get(field) in names:
                record[field] = names[record[field]]
        return json.dumps(record, indent=2) + "\n"


Task = Digest | Copy | RunTask


def joined(digests: Sequence[str]) -> str:
    """Return one digest for the files of a job."""
    if len(digests) == 1 or not all(digests):
        return digests[0] if len(digests) == 1 else ""
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


# --- files ----------------------------------------------------------------------------------------


def _own_folder(folder: str, path: str) -> str:
    """Return a folder for a file of any name, within another one."""
    return os.path.join(folder, hashlib.md5(path.encode()).hexdigest())


def _staged(job: Job, folder: str) -> str:
    """Return the file that the command writes: its name is that of the target."""
    return os.path.join(folder, STAGED, job.target.replace(os.sep, "/").rpartition("/")[2])


def _fetched(path: str, folder: str, process: JobProcess) -> str:
    """Return a local file of a model; a remote one is copied, with its external data."""
    if not storage.is_remote(path):
        return storage.local_path(path)
    local = os.path.join(folder, path.rpartition("/")[2])
    storage.fetch(path, local)
    for location in process.ask({"do": "data", "path": local}, f"reading {path}"):
        place = storage.join(storage.parent(path), location)
        if storage.size_of(place) is not None:
            storage.fetch(place, os.path.join(folder, *location.split("/")))
    return local


# --- what a command printed -----------------------------------------------------------------------


def _record(out: str) -> dict[str, Any] | None:
    """Return the JSON object that a command printed, None if there is none."""
    try:
        read = json.loads(out)
    except json.JSONDecodeError:
        return None
    return read if isinstance(read, dict) else None


def _reason(text: str) -> str:
    """Return a message as one short line."""
    line = " ".join(text.split()).removeprefix("tiered: error: ")
    return line if len(line) <= _LONGEST_REASON else f"{line[:_LONGEST_REASON]} ..."
