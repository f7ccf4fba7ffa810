"""Batches on a Dask cluster: a scheduler and workers as processes of this machine."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.extensions.fleet.cluster import OTHER, Cluster
from tests.extensions.fleet.conftest import Make
from tests.registered import passes_forgotten
from tiered.cli import main
from tiered.extensions.fleet import Command, FleetOptions, Result, read_manifest, submit
from tiered.extensions.fleet.cluster import connect
from tiered.extensions.fleet.manifest import NAME
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
