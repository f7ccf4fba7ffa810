"""Batches on a Dask cluster: a scheduler and workers as processes of this machine."""

import os
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.fleet.cluster import OTHER, Cluster
from tests.extensions.fleet.conftest import Make
from tests.registered import passes_forgotten
from tiered.cli import main
from tiered.extensions.fleet import (
    Command,
    FleetOptions,
    Result,
    cluster as cluster_module,
    read_manifest,
    submit,
)
from tiered.extensions.fleet.cluster import (
    _COUNTED_FOR,
    DaskEngine,
    _of_worker,
    _pass_on,
    connect,
)
from tiered.extensions.fleet.job import Job
from tiered.extensions.fleet.manifest import NAME
from tiered.extensions.fleet.sources import ModelSource
from tiered.extensions.fleet.tasks import Copy, Digest, RunTask, TaskLimits
from tiered.support.errors import FleetError

distributed = pytest.importorskip("distributed", reason="needs tiered[fleet]")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes as on POSIX systems")

O3 = Command("optimize", ("--opt-level=3",))
SLOW = '''
import time
from tiered import module_pass

@module_pass(opt_level=0)
def own_slow(model, ctx):
    """Take a while."""
    time.sleep(1.0)
'''


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    running = Cluster(folder)
    yield running
    running.end()


class AfterFirst:
    """A report that does something when the first result is there."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act: Callable[[], None] | None = act

    def on_plan(self, count: int) -> None:
        """Do nothing."""

    def on_start(self, job: object) -> None:
        """Do nothing."""

    def on_result(self, result: Result) -> None:
        """Do it, once."""
        act, self._act = self._act, None
        if act is not None:
            act()


@passes_forgotten()
def test_a_worker_that_is_killed_has_its_models_done_elsewhere(
    cluster: Cluster, models: Path, make: Make, tmp_path: Path
) -> None:
    for number in range(6):
        make(f"m{number}", number=number)
    (models / "broken.onnx").write_bytes(b"no model" * 99)
    (tmp_path / "slow.py").write_text(SLOW)
    words = (f"--load={tmp_path / 'slow.py'}", "--passes=own_slow,eliminate_identity")
    first = cluster.start_worker()
    cluster.start_worker()
    out = tmp_path / "out"
    with cluster.client(2) as client:
        command = Command("optimize", words)
        report = AfterFirst(first.kill)
        results = submit(client, [str(models)], str(out), command, report=report)
    assert first.wait(60) != 0
    statuses = {os.path.basename(result.source): result.status for result in results}
    assert statuses == {"broken.onnx": "failed", **{f"m{n}.onnx": "done" for n in range(6)}}
    lines = [line.target for line in read_manifest(str(out / NAME))]
    assert sorted(lines) == sorted(result.target for result in results)
    # The results are those of single runs.
    for number in range(6):
        single = tmp_path / f"m{number}.onnx"
        assert main(["optimize", str(models / single.name), str(single), *words, "-q"]) == 0
        assert (out / single.name).read_bytes() == single.read_bytes()


def test_a_worker_of_another_version_is_refused(
    cluster: Cluster, models: Path, make: Make, tmp_path: Path
) -> None:
    make("a")
    (tmp_path / "other.py").write_text(OTHER)
    cluster.start_worker()
    cluster.start_worker("--preload", str(tmp_path / "other.py"))
    with cluster.client(2) as client, pytest.raises(FleetError) as caught:
        submit(client, [str(models)], str(tmp_path / "out"), O3)
    assert "has tiered 0.0.9, the submitter tiered 0.2.0" in str(caught.value)
    assert "install the same versions" in str(caught.value)
    assert not (tmp_path / "out" / "a.onnx").exists()


def test_a_batch_goes_on_after_the_scheduler_is_lost(
    cluster: Cluster, models: Path, make: Make, tmp_path: Path
) -> None:
    for number in range(4):
        make(f"m{number}", number=number)
    out = tmp_path / "out"
    worker = cluster.start_worker()
    with cluster.client(1) as client:
        submit(client, [str(models / "m0.onnx"), str(models / "m1.onnx")], str(out), O3)
    for process in (cluster.scheduler, worker):
        process.kill()
        process.wait()
    cluster.scheduler = cluster.start_scheduler()
    cluster.start_worker()
    table = str(tmp_path / "all.jsonl")
    more = ("--cluster", str(cluster.file), "--results", table)
    code = main(["batch", str(models), "--out-dir", str(out), "-O3", "--resume", "-q", *more])
    assert code == 0
    found = {line.target: line.status for line in read_manifest(table)}
    statuses = [found[str(out / f"m{number}.onnx")] for number in range(4)]
    assert statuses == ["skipped", "skipped", "done", "done"]


@passes_forgotten()
def test_a_scheduler_that_is_lost_is_no_failure_of_models(
    cluster: Cluster, models: Path, make: Make, tmp_path: Path
) -> None:
    for number in range(6):
        make(f"m{number}", number=number)
    (tmp_path / "slow.py").write_text(SLOW)
    command = Command("optimize", (f"--load={tmp_path / 'slow.py'}", "--passes=own_slow"))
    cluster.start_worker()
    out = tmp_path / "out"
    given = ([str(models)], str(out), command)
    with (
        distributed.Client(scheduler_file=str(cluster.file), timeout=2) as client,
        pytest.raises(FleetError, match=r"scheduler is lost.*--resume"),
    ):
        submit(client, *given, report=AfterFirst(cluster.end))
    lines = read_manifest(str(out / NAME))
    assert {line.status for line in lines} == {"done"}
    assert 0 < len(lines) < 6


def test_a_scheduler_file_that_is_missing_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=r"no scheduler file '.*cluster\.json'; expected tcp://"):
        connect(str(tmp_path / "cluster.json"))


def test_a_cluster_without_workers_is_an_error(
    cluster: Cluster,
    models: Path,
    make: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make("a")
    monkeypatch.setattr("tiered.extensions.fleet.cluster.WAIT", 0.2)
    with cluster.client(0) as client, pytest.raises(FleetError, match="has no worker"):
        submit(client, [str(models)], str(tmp_path / "out"), O3, FleetOptions(jobs=1))


# --- the engine, with a scheduler in words alone --------------------------------------------------


class Done:
    """A task of Dask that has ended."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome

    def result(self) -> Any:
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome

    def add_done_callback(self, call: Callable[[Any], None]) -> None:
        call(self)


class Scheduler:
    """A client whose tasks end at once.

    Args:
        outcome: of each task.
        threads: of each worker.
    """

    def __init__(self, outcome: Any = "answer", threads: tuple[int, ...] = (2, 1)) -> None:
        self.outcome, self.threads, self.status = outcome, threads, "running"
        self.asked, self.cancelled = 0, list[Any]()

    def wait_for_workers(self, count: int, timeout: float) -> None:
        if not self.threads:
            raise TimeoutError

    def run(self, function: Callable[[], Any]) -> dict[str, Any]:
        return {"tcp://w": function()}

    def nthreads(self) -> dict[str, int]:
        self.asked += 1
        if self.status != "running":
            raise OSError("gone")
        return {f"tcp://{at}": count for at, count in enumerate(self.threads)}

    def submit(self, function: Any, *args: Any, pure: bool, retries: int) -> Done:
        if self.status != "running":
            raise OSError("gone")
        return Done(self.outcome)

    def cancel(self, tasks: list[Any]) -> None:
        self.cancelled += tasks


def run_task() -> RunTask:
    job = Job(ModelSource("m.onnx", "m.onnx", 7), "out/m.onnx")
    return RunTask(job, Command("optimize"), "id", TaskLimits(), None)


def engine_of(scheduler: Scheduler, jobs: int | None = None) -> DaskEngine:
    return DaskEngine(scheduler, None, jobs)


def test_twice_as_many_tasks_as_threads_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr("tiered.extensions.fleet.cluster.time.monotonic", lambda: now[0])
    scheduler = Scheduler()
    engine = engine_of(scheduler)
    assert (engine.window, engine.window, scheduler.asked) == (6, 6, 1)
    now[0] += _COUNTED_FOR
    assert (engine.window, scheduler.asked) == (6, 2)
    assert engine_of(scheduler, 5).window == 5
    scheduler.threads = (0,)
    assert engine_of(scheduler).window == 1
    assert engine.peak_of(run_task().job) > engine.peak_of(replace(
        run_task().job, source=ModelSource("m.onnx", "m.onnx", 1)))  # fmt: skip
    scheduler.status = "closed"
    with pytest.raises(FleetError, match="the connection to the Dask scheduler is lost"):
        _ = engine_of(scheduler).window
    with pytest.raises(FleetError, match="the cluster has no worker after"):
        engine_of(Scheduler(threads=()))


def test_what_becomes_of_a_task() -> None:
    digest = Digest((("a", "b"), ("c",)))
    lost = "the connection to the Dask scheduler is lost"
    for outcome, task, status, expected in (
        ("answer", digest, "running", "answer"),
        (FleetError("other versions"), digest, "running", "other versions"),
        (CancelledError(), digest, "running", lost),
        (ValueError("a  worker\n died"), digest, "running", (("", ""), ("",))),
        (ValueError("died"), digest, "closed", lost),
        (ValueError("died"), Copy(run_task().job, Result("", "", "done"), None), "running",
         "a task failed on the cluster: died"),
    ):  # fmt: skip
        scheduler = Scheduler(outcome)
        engine = engine_of(scheduler)
        future: Any = Future()
        scheduler.status = status
        _pass_on(Done(outcome), task, future, scheduler)
        found = future.exception() or future.result()
        if isinstance(found, FleetError):
            assert str(found).startswith(str(expected))
        else:
            assert found == expected
        engine.close()
    scheduler = Scheduler(ValueError("a  worker\n died" + "x" * 400))
    engine = engine_of(scheduler)
    result = engine.submit(run_task()).result()
    assert (result.status, result.exit_code, result.command) == ("crashed", 1, "id")
    assert result.reason == f"its worker was lost: ValueError: a worker died{'x' * 287}"
    engine.close()
    assert scheduler.cancelled == []
    scheduler.status = "closed"
    with pytest.raises(FleetError, match=lost):
        engine.submit(run_task())


def test_an_address_or_a_file_of_a_scheduler(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=r"no scheduler file 'none\.json'; expected tcp:"):
        connect("none.json")
    with pytest.raises(FleetError, match="no Dask scheduler at 'nowhere://x'"):
        connect("nowhere://x")
    assert _of_worker(str, "default") == "default"


def test_a_task_on_a_worker_has_its_share_of_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _of_worker(lambda worker: 5, 7) == 7
    assert cluster_module._threads() == 1
    assert cluster_module._address() == "of this process"
    made: list[Any] = []

    class Process:
        def __init__(self, memory: int | None) -> None:
            made.append(memory)

        def end(self) -> None:
            """Do nothing."""

    monkeypatch.setattr(cluster_module, "JobProcess", Process)
    monkeypatch.setattr(cluster_module, "versions", dict)
    monkeypatch.setattr(cluster_module, "_threads", lambda: 4)
    monkeypatch.setattr(RunTask, "perform", lambda self, process: self.limits.memory)
    monkeypatch.setattr(Digest, "perform", lambda self, process: type(process))
    job = Job(ModelSource("m.onnx", "m.onnx", 1), "out/m.onnx")
    run = RunTask(job, O3, "", TaskLimits(memory=99), None)
    for memory, share in ((None, None), (1000, 250), (1003, 250)):
        cluster_module._processes.cache_clear()
        assert cluster_module.perform_on_worker(run, {}, memory) == share
        assert cluster_module.perform_on_worker(Digest(()), {}, memory) is Process
        assert made.pop() == share
        assert not made
    cluster_module._processes.cache_clear()
