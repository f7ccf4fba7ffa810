"""Batches on a Dask cluster: a scheduler and workers as processes of this machine."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.conftest import Make
from tiered.cli import main
from tiered.errors import FleetError
from tiered.fleet import Command, FleetOptions, Result, read_manifest, submit
from tiered.fleet.manifest import NAME

distributed = pytest.importorskip("distributed", reason="needs tiered[fleet]")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes as on POSIX systems")

O3 = Command("optimize", ("--opt-level=3",))
ROOT = Path(__file__).resolve().parents[2]
OTHER = "import tiered.fleet.versions as v\nv.__version__ = '0.0.9'\n"
SLOW = '''
import time
from tiered import module_pass

@module_pass(opt_level=0)
def own_slow(model, ctx):
    """Take a while."""
    time.sleep(1.0)
'''

Start = Callable[..., subprocess.Popen[bytes]]


class Cluster:
    """A scheduler and its workers, all processes of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "scheduler.json"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.scheduler = self.start_scheduler()

    def start_scheduler(self) -> subprocess.Popen[bytes]:
        self.file.unlink(missing_ok=True)
        options = ("--scheduler-file", str(self.file), "--port", "0", "--no-dashboard")
        process = self._start("distributed.cli.dask_scheduler", *options)
        deadline = time.monotonic() + 60
        while not self.file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return process

    def start_worker(self, *more: str) -> subprocess.Popen[bytes]:
        options = ("--scheduler-file", str(self.file), "--nthreads", "1", "--no-nanny")
        local = ("--no-dashboard", "--local-directory", str(self.folder))
        process = self._start("distributed.cli.dask_worker", *options, *local, *more)
        self.workers.append(process)
        return process

    def _start(self, module: str, *options: str) -> subprocess.Popen[bytes]:
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        retries = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "2"}
        return subprocess.Popen(
            [sys.executable, "-m", module, *options],
            env={**os.environ, **retries, "PYTHONPATH": path},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    @contextmanager
    def client(self, workers: int) -> Iterator[Any]:
        with distributed.Client(scheduler_file=str(self.file), timeout=60) as client:
            if workers:
                client.wait_for_workers(workers, timeout=60)
            yield client

    def end(self) -> None:
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    folder = tmp_path / "cluster"
    folder.mkdir()
    running = Cluster(folder)
    yield running
    running.end()


class KillAfterFirst:
    """A report that kills a process when the first result is there."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process: subprocess.Popen[bytes] | None = process

    def on_plan(self, count: int) -> None:
        """Do nothing."""

    def on_start(self, job: object) -> None:
        """Do nothing."""

    def on_result(self, result: Result) -> None:
        """Kill it, once."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process = None


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
        report = KillAfterFirst(first)
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
    assert "has tiered 0.0.9, the submitter tiered 0.1.0" in str(caught.value)
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


def test_a_cluster_without_workers_is_an_error(
    cluster: Cluster,
    models: Path,
    make: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make("a")
    monkeypatch.setattr("tiered.fleet.cluster.WAIT", 0.2)
    with cluster.client(0) as client, pytest.raises(FleetError, match="has no worker"):
        submit(client, [str(models)], str(tmp_path / "out"), O3, FleetOptions(jobs=1))
