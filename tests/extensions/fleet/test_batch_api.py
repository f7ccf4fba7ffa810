"""Batches from Python: what is checked first, and what is left behind."""

import os
from pathlib import Path
from typing import Any

import pytest

from tiered.extensions.fleet import batch_api
from tiered.extensions.fleet.batch_api import FleetOptions, run
from tiered.extensions.fleet.job import Command, Job
from tiered.extensions.fleet.manifest import NAME
from tiered.extensions.fleet.result_line import Result
from tiered.extensions.fleet.tasks import SCRATCH, TaskLimits
from tiered.support.errors import HelperError, UsageError


class Engine:
    """An engine that is only opened and closed."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what the engine and the scheduler are given."""
    found: dict[str, Any] = {}

    def engine(jobs: int | None, memory: int | None, *, runs: bool) -> Engine:
        made = Engine()
        found["engine"], found["is made with"] = made, (jobs, memory, runs)
        return made

    def batch(jobs: list[Job], settings: Any, engine: Any, lines: Any, report: Any) -> list[Result]:
        found.update(jobs=jobs, settings=settings, report=report)
        report.on_plan(len(jobs))
        report.on_start(jobs[0])
        report.on_result(Result("a", "b", "done"))
        if scratch := settings.scratch:
            os.makedirs(os.path.join(scratch, "left"))
        if found.get("fails"):
            raise HelperError("no process")
        return []

    monkeypatch.setattr(batch_api, "LocalEngine", engine)
    monkeypatch.setattr(batch_api, "run_batch", batch)
    return found


@pytest.fixture
def model(tmp_path: Path) -> str:
    path = tmp_path / "in" / "a.onnx"
    path.parent.mkdir()
    path.write_bytes(b"x")
    return str(path)


@pytest.mark.parametrize("jobs", [0, -1])
def test_a_number_of_jobs_is_from_1(tmp_path: Path, jobs: int) -> None:
    with pytest.raises(UsageError, match=rf"--jobs takes a number from 1, not {jobs}"):
        run(["missing"], str(tmp_path / "out"), options=FleetOptions(jobs=jobs))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("timeout", [0, -1.5, float("nan"), float("inf")])
def test_a_timeout_is_above_0_and_finite(tmp_path: Path, timeout: float) -> None:
    with pytest.raises(UsageError, match=rf"--timeout takes seconds above 0, not {timeout:g}"):
        run(["missing"], str(tmp_path / "out"), options=FleetOptions(timeout=timeout))


def test_remote_results_need_a_manifest_of_this_machine(model: str) -> None:
    with pytest.raises(UsageError, match="--manifest FILE"):
        run([model], "s3://bucket/out")


@pytest.mark.parametrize("fails", [False, True])
def test_a_batch_leaves_the_manifest_and_no_unfinished_files(
    tmp_path: Path, model: str, seen: dict[str, Any], *, fails: bool
) -> None:
    out = tmp_path / "out"
    (out / SCRATCH / "of a batch that was killed").mkdir(parents=True)
    seen["fails"] = fails
    options = FleetOptions(jobs=3, timeout=2.5, max_memory=1 << 30, fail_fast=True)
    if fails:
        with pytest.raises(HelperError):
            run([model], str(out), Command("verify"), options)
    else:
        assert run([model], str(out), Command("verify"), options) == []
    assert seen["is made with"] == (3, 1 << 30, Command("verify").runs_models)
    assert seen["engine"].is_closed
    settings = seen["settings"]
    assert settings.limits == TaskLimits(2.5, 1 << 30)
    assert settings.fail_fast
    assert settings.scratch == str(out / SCRATCH)
    assert sorted(os.listdir(out)) == [NAME]


def test_the_manifest_may_be_elsewhere(tmp_path: Path, model: str, seen: dict[str, Any]) -> None:
    options = FleetOptions(manifest=str(tmp_path / "lines.jsonl"))
    run([model], str(tmp_path / "out"), options=options)
    assert (tmp_path / "lines.jsonl").exists()
    assert not (tmp_path / "out" / NAME).exists()
    assert [job.source.path for job in seen["jobs"]] == [model]
