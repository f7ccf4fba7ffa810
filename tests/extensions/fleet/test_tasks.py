"""The tasks of a batch, with a process that answers at once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tiered.extensions.fleet.job import Command, Job
from tiered.extensions.fleet.result_line import Result
from tiered.extensions.fleet.scratch import Scratch
from tiered.extensions.fleet.sources import ModelSource
from tiered.extensions.fleet.tasks import Copy, Digest, RunTask, TaskLimits, joined
from tiered.support.errors import Crashed, OutOfMemory, RuntimeFailure, TimedOut


class Process:
    """A process whose answers are those of a test.

    Args:
        code, err, out: what the command printed, and its exit code.
        writes: files that the command writes beside its result, by name.
        is_memory: whether it failed for want of memory.
    """

    def __init__(
        self,
        code: int = 0,
        err: str = "",
        out: str = "",
        writes: dict[str, str] | None = None,
        is_memory: bool = False,
    ) -> None:
        self.code, self.err, self.out, self.writes = code, err, out, writes
        self.is_memory = is_memory
        self.memory, self.peak, self.scratch = None, 7, Scratch()
        self.asked: list[dict[str, Any]] = []

    def ask(self, request: dict[str, Any], doing: str, seconds: float | None = None) -> Any:
        self.asked.append(request)
        if request["do"] == "digest":
            if "bad" in "".join(request["paths"]):
                raise Crashed(doing)
            return [f"d{Path(path).name}" for path in request["paths"]]
        for name, text in (self.writes or {}).items():
            place = Path(request["out"]).with_name(name)
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        return {
            "code": self.code, "err": self.err.replace("OUT", request["out"] or ""),
            "out": self.out.replace("IN", request["files"][0]), "figures": {"nodes_before": 3},
            "peak": 5, "seconds": 0.5, "sha256_in": ["i"], "sha256_out": "o",
            "is_memory": self.is_memory,
        }  # fmt: skip


def task(folder: Path, command: Command | None = None, limits: TaskLimits | None = None) -> RunTask:
    job = Job(ModelSource(str(folder / "in.onnx"), "in.onnx", 1), str(folder / "out" / "m.onnx"))
    scratch = str(folder / "scratch")
    return RunTask(job, command or Command("optimize"), "id", limits or TaskLimits(), scratch)


def done(run: RunTask, process: Process) -> Result:
    return run.perform(process)  # type: ignore[arg-type]  # a fake


def test_digests_are_those_of_each_group_and_files_are_read_once() -> None:
    process = Process()
    found = Digest((("a", "b"), ("b",))).perform(process)  # type: ignore[arg-type]  # a fake
    assert found == (("da", "db"), ("db",))
    assert [request["paths"] for request in process.asked] == [["a", "b"]]


def test_a_file_that_ends_the_process_has_no_digest_and_the_others_have() -> None:
    process = Process()
    found = Digest((("a", "bad"), ("c",))).perform(process)  # type: ignore[arg-type]  # a fake
    assert found == (("da", ""), ("dc",))


def test_the_digest_of_several_files_is_one() -> None:
    assert joined(["a"]) == "a"
    assert joined([""]) == joined(["a", ""]) == ""
    assert joined(["a", "b"]) != joined(["b", "a"])


def test_a_result_is_placed_with_its_weights_and_has_its_figures(tmp_path: Path) -> None:
    process = Process(writes={"m.onnx": "model", "m.onnx.data": "weights"})
    found = done(task(tmp_path), process)
    assert (found.status, found.nbytes, found.nodes_before) == ("done", 5, 3)
    assert (found.sha256_in, found.sha256_out, found.command) == ("i", "o", "id")
    assert (found.seconds, found.peak) == (0.5, 7)
    out = tmp_path / "out"
    assert {path.name: path.read_text() for path in out.iterdir()} == {
        "m.onnx": "model", "m.onnx.data": "weights"
    }  # fmt: skip
    assert not [path for path in (tmp_path / "scratch").rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("limit", "is_memory", "code", "status"),
    [
        (None, True, 1, "failed"), (9, True, 1, "memory"), (9, True, 5, "memory"),
        (9, True, 2, "failed"), (9, False, 5, "failed"),
    ],
)  # fmt: skip
def test_a_command_that_fails_leaves_no_result(
    tmp_path: Path, limit: int | None, is_memory: bool, code: int, status: str
) -> None:
    said = "tiered: error: OUT:\n out of memory"
    process = Process(code, said, writes={"m.onnx": "half"}, is_memory=is_memory)
    run = task(tmp_path, limits=TaskLimits(None, limit))
    found = done(run, process)
    assert (found.status, found.exit_code, found.nbytes) == (status, code, None)
    assert found.reason == f"{run.job.target}: out of memory"
    assert not Path(run.job.target).exists()


@pytest.mark.parametrize(
    ("error", "status"),
    [(Crashed("x"), "crashed"), (TimedOut("x"), "timeout"), (OutOfMemory("x"), "memory")],
)
def test_a_process_that_is_lost_is_a_result(
    tmp_path: Path, error: RuntimeFailure, status: str
) -> None:
    class Lost(Process):
        def ask(self, request: dict[str, Any], doing: str, seconds: float | None = None) -> Any:
            raise error

    found = done(task(tmp_path), Lost())
    assert (found.status, found.reason, found.exit_code, found.peak) == (status, "x", 1, 7)


def test_long_reasons_are_cut(tmp_path: Path) -> None:
    found = done(task(tmp_path), Process(1, "a" * 1000))
    assert found.reason == "a" * 400 + " ..."


def copied(folder: Path, of: Result, *, replaces: bool = False) -> Result | None:
    run = task(folder)
    copy = Copy(run.job, of, run.scratch, replaces)
    return copy.perform(Process())  # type: ignore[arg-type]  # a fake


def test_a_copy_is_whole_and_replaces_only_what_it_may(tmp_path: Path) -> None:
    first = tmp_path / "first.onnx"
    first.write_text("model")
    of = Result("a.onnx", str(first), "done", nbytes=5, seconds=3.0, peak=9)
    target = tmp_path / "out" / "m.onnx"
    assert copied(tmp_path, replace(of, nbytes=4)) is None
    assert copied(tmp_path, replace(of, target=str(tmp_path / "gone"))) is None
    assert not target.exists()
    found = copied(tmp_path, of)
    assert found is not None
    assert (found.status, found.reason, found.seconds, found.peak) == (
        "cached", "as a.onnx", 0.0, None
    )  # fmt: skip
    assert target.read_text() == "model"
    first.write_text("other")
    assert copied(tmp_path, of) is None
    assert target.read_text() == "model"
    assert copied(tmp_path, of, replaces=True) is not None
    assert target.read_text() == "other"


def test_a_report_has_the_paths_of_the_job(tmp_path: Path) -> None:
    run = task(tmp_path, Command("inspect"))
    process = Process(out=json.dumps({"model": "IN", "nodes": 4}))
    found = done(run, process)
    assert process.asked[0]["out"] is None
    report = json.loads(Path(run.job.target).read_text())
    assert report == {"model": run.job.source.path, "nodes": 4}
    assert (found.status, found.nodes_before) == ("done", 3)
