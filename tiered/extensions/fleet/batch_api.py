"""Batches from Python: `run` on this machine, `submit` on a Dask cluster."""

from __future__ import annotations

import contextlib
import math
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tiered.extensions.fleet import storage
from tiered.extensions.fleet.engine import Engine
from tiered.extensions.fleet.job import Command, Job, jobs_of
from tiered.extensions.fleet.local import LocalEngine
from tiered.extensions.fleet.manifest import NAME, Manifest
from tiered.extensions.fleet.result_line import Result
from tiered.extensions.fleet.scheduler import BatchObserver, BatchSettings, run_batch
from tiered.extensions.fleet.sources import find_sources
from tiered.extensions.fleet.tasks import SCRATCH, TaskLimits
from tiered.support.errors import UsageError

if TYPE_CHECKING:
    from distributed import Client


@dataclass(frozen=True, kw_only=True)
class FleetOptions:
    """How a batch runs.

    Attributes:
        jobs: how many jobs at once, at most; None for one a processor.
        timeout: the seconds that one model may take.
        max_memory: the most bytes that all processes of a machine may hold.
        resume: whether to skip what the manifest lists as done.
        fail_fast: whether to start no more models after the first failure.
        reproducers: a folder for bundles of models that fail.
        manifest: the file that records results; by default `tiered-batch.jsonl` in the folder of
            the results.
    """

    jobs: int | None = None
    timeout: float | None = None
    max_memory: int | None = None
    resume: bool = False
    fail_fast: bool = False
    reproducers: str | None = None
    manifest: str | None = None


_DEFAULT = FleetOptions()
_OPTIMIZE = Command("optimize")


def run(
    sources: Sequence[str],
    out_dir: str,
    command: Command = _OPTIMIZE,
    options: FleetOptions = _DEFAULT,
    report: BatchObserver | None = None,
) -> list[Result]:
    """Run a command on many models, in processes of this machine.

    Args:
        sources: folders, globs, lists (.txt) and files; also URLs that fsspec reads.
        out_dir: the folder or URL for the results.
        command: with its options.
        options: how to run it.
        report: receives the start and the result of each model.

    Returns:
        the results, largest model first; errors of models are among them.

    Raises:
        UsageError: a wrong option, or sources without models.
        ModelError: the manifest cannot be written.
    """

    def engine() -> LocalEngine:
        return LocalEngine(options.jobs, options.max_memory, runs=command.runs_models)

    return _run(engine, sources, out_dir, command, options, report)


def submit(
    client: Client,
    sources: Sequence[str],
    out_dir: str,
    command: Command = _OPTIMIZE,
    options: FleetOptions = _DEFAULT,
    report: BatchObserver | None = None,
) -> list[Result]:
    """Run a command on many models, on the workers of a Dask cluster; arguments as of `run`.

    Sources and results must be where all workers find them: on a file system that they share, or
    at URLs. `options.jobs` limits the jobs at once, `options.max_memory` the memory of each worker.

    Raises:
        FleetError: a worker has other versions of tiered, onnx or onnxruntime.
    """
    from tiered.extensions.fleet.cluster import DaskEngine

    def engine() -> DaskEngine:
        return DaskEngine(client, options.max_memory, options.jobs)

    return _run(engine, sources, out_dir, command, options, report)


def _run(
    make_engine: Callable[[], Engine],
    sources: Sequence[str],
    out_dir: str,
    command: Command,
    options: FleetOptions,
    report: BatchObserver | None,
) -> list[Result]:
    _check(options)
    is_remote = storage.is_remote(out_dir)
    if is_remote and options.manifest is None:
        raise UsageError(
            f"{out_dir!r} cannot be appended to; name a file of this machine for the manifest "
            "(--manifest FILE)"
        )
    jobs = jobs_of(command, find_sources(sources, out_dir), out_dir, options.reproducers)
    scratch = None if is_remote else storage.join(out_dir, SCRATCH)
    limits = TaskLimits(options.timeout, options.max_memory)
    settings = BatchSettings(command, limits, scratch, options.fail_fast)
    manifest = options.manifest or storage.join(out_dir, NAME)
    with Manifest(manifest, resume=options.resume) as lines, _removed(scratch):
        engine = make_engine()
        try:
            return run_batch(jobs, settings, engine, lines, report or _Silent())
        finally:
            engine.close()


def _check(options: FleetOptions) -> None:
    """Check options before any file is read.

    Raises:
        UsageError: one is wrong.
    """
    if options.jobs is not None and options.jobs < 1:
        raise UsageError(f"--jobs takes a number from 1, not {options.jobs}")
    if options.timeout is not None and not (math.isfinite(options.timeout) and options.timeout > 0):
        raise UsageError(f"--timeout takes seconds above 0, not {options.timeout:g}")


@contextlib.contextmanager
def _removed(scratch: str | None) -> Iterator[None]:
    """Remove unfinished files: those of a batch that was killed, and those of this one."""
    if scratch is None:
        yield
        return
    shutil.rmtree(scratch, ignore_errors=True)
    try:
        yield
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


class _Silent:
    """A report that shows nothing."""

    def on_plan(self, count: int) -> None:
        """Show nothing."""

    def on_start(self, job: Job) -> None:
        """Show nothing."""

    def on_result(self, result: Result) -> None:
        """Show nothing."""
