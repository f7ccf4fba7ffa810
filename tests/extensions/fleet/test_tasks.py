"""The tasks of a batch, with a process that answers at once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tiered.extensions.fleet import storage
from tiered.extensions.fleet.job import Command, Job
from tiered.extensions.fleet.process import JobProcess
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


def names(value: Any) -> Any:
    """Return the names of files, for their paths."""
    if isinstance(value, list):
        return [names(each) for each in value]
    return Path(value).name if isinstance(value, str) else value


def test_what_is_asked_of_a_process(tmp_path: Path) -> None:
    target = str(tmp_path / "out" / "m.onnx")
    forced = Command("optimize", ("-O3", "--force"))
    for command, replaces, words, out, place, force in (
        (Command("optimize"), False, ["optimize", "in.onnx", "m.onnx", "--quiet"], "m.onnx",
         target, False),
        (Command("optimize"), True, ["optimize", "in.onnx", "m.onnx", "--quiet"], "m.onnx",
         target, True),
        (forced, False, ["optimize", "in.onnx", "m.onnx", "-O3", "--force", "--quiet"], "m.onnx",
         target, True),
        (Command("inspect"), False, ["inspect", "in.onnx", "--json"], None, None, False),
    ):  # fmt: skip
        run = replace(task(tmp_path, command), replaces=replaces)
        process = Process()
        done(run, process)
        (request,) = process.asked
        assert request["target"] == place
        assert {key: names(value) for key, value in request.items()} == {
            "do": "run", "words": words, "files": ["in.onnx"], "out": out, "force": force,
            "target": names(place),
        }  # fmt: skip


def test_the_folder_of_a_result_is_made_unless_it_is_remote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = task(tmp_path)
    for target, place, folder in (
        ("s3://bucket/m.onnx", None, "s3:"),
        ("deep/er/m.onnx", "deep/er/m.onnx", "deep/er"),
        ("m.onnx", "m.onnx", "."),
    ):
        process = Process()
        own = replace(run, job=replace(run.job, target=target))
        own._answer(process, ["a"], str(tmp_path))  # type: ignore[arg-type]  # a fake
        assert process.asked[0]["target"] == place
        assert Path(folder).is_dir() == (place is not None)


def test_a_failure_of_an_optimisation_is_reproduced(tmp_path: Path) -> None:
    bundle = str(tmp_path / "bundle")
    for command, code, reproducer, count in (
        (Command("optimize"), 3, bundle, 2),
        (Command("optimize"), 5, bundle, 2),
        (Command("optimize"), 1, bundle, 1),
        (Command("optimize"), 3, None, 1),
        (Command("inspect"), 3, bundle, 1),
    ):
        run = task(tmp_path, command)
        run = replace(run, job=replace(run.job, reproducer=reproducer))
        process = Process(code)
        assert done(run, process).exit_code == code
        assert len(process.asked) == count, (command, code)
        assert "--reproducer" not in process.asked[0]["words"]
        if count == 2:
            assert process.asked[1]["words"][-2:] == ["--reproducer", bundle]


@pytest.mark.parametrize("reproducer", [False, True])
def test_a_process_that_is_lost_leaves_a_bundle(tmp_path: Path, *, reproducer: bool) -> None:
    class Lost(Process):
        def ask(self, request: dict[str, Any], doing: str, seconds: float | None = None) -> Any:
            self.peak = 0
            raise Crashed("gone")

    run = task(tmp_path)
    Path(run.job.source.path).write_bytes(b"a model")
    bundle = tmp_path / "bundle"
    run = replace(run, job=replace(run.job, reproducer=str(bundle) if reproducer else None))
    found = done(run, Lost())
    assert (found.status, found.peak) == ("crashed", None)
    assert bundle.exists() == reproducer


def test_figures_of_a_run(tmp_path: Path) -> None:
    class Figures(Process):
        own: int | None = 5

        def ask(self, request: dict[str, Any], doing: str, seconds: float | None = None) -> Any:
            answer = super().ask(request, doing, seconds)
            figures = {"verified": True, "passes": "p=1", "nodes_after": 2}
            return {**answer, "peak": self.own, "seconds": 0.12345678, "figures": figures}

    for own, held, peak in ((None, 0, None), (0, 0, None), (9, 7, 9), (5, 7, 7), (None, 7, 7)):
        process = Figures()
        process.own, process.peak = own, held
        found = done(task(tmp_path), process)
        assert (found.peak, found.seconds, found.nbytes) == (peak, 0.123457, None)
        assert (found.verified, found.passes, found.nodes_after) == (None, "p=1", 2)
    verifying = Command("optimize", ("--verify",))
    assert verifying.compares
    assert done(task(tmp_path, verifying), Figures()).verified is True


def test_a_report_without_json_is_no_file(tmp_path: Path) -> None:
    run = task(tmp_path, Command("inspect"))
    found = done(run, Process(out="no JSON"))
    assert (found.status, found.nbytes) == ("done", None)
    assert not Path(run.job.target).exists()
    record = {"first": "local", "second": "other", "nodes": 1}
    assert run._renamed(record, ["local"]) == (
        f'{{\n  "first": "{run.job.source.path}",\n  "second": "other",\n  "nodes": 1\n}}\n'
    )


def test_a_reason_of_400_characters_is_whole(tmp_path: Path) -> None:
    assert done(task(tmp_path), Process(1, "a" * 400)).reason == "a" * 400


def test_a_remote_model_comes_with_its_weights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Data(Process):
        def ask(self, request: dict[str, Any], doing: str, seconds: float | None = None) -> Any:
            if request["do"] != "data":
                return super().ask(request, doing, seconds)
            self.asked.append(request)
            return ["w/a.bin", "gone.bin"]

    fetched: list[tuple[str, str]] = []
    storage = "tiered.extensions.fleet.tasks.storage"
    monkeypatch.setattr(f"{storage}.fetch", lambda path, local: fetched.append((path, local)))
    monkeypatch.setattr(f"{storage}.size_of", lambda path: None if "gone" in path else 1)
    process = Data()
    found = Digest((("s3://b/x/m.onnx",),)).perform(process)  # type: ignore[arg-type]  # a fake
    assert found == (("dm.onnx",),)
    ((model, local), (data, beside)) = fetched
    assert (model, data) == ("s3://b/x/m.onnx", "s3://b/x/w/a.bin")
    folder = Path(local).parent
    assert (Path(local).name, beside) == ("m.onnx", str(folder / "w" / "a.bin"))
    assert folder.parent.name.startswith("tiered-")


def test_a_remote_copy_is_placed_whatever_is_on_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed: list[str] = []
    monkeypatch.setattr(storage, "place", lambda file, target, *, syncs: placed.append(target))
    monkeypatch.setattr(storage, "copy", lambda source, file: Path(file).write_bytes(b"12"))
    monkeypatch.setattr("os.path.exists", lambda path: True)
    process: Any = JobProcess()
    for target, replaces, expected in (
        ("own://box/a", False, "cached"), ("own://box/a", True, "cached"),
        (str(tmp_path / "a"), True, "cached"), (str(tmp_path / "a"), False, None),
    ):  # fmt: skip
        job = Job(ModelSource("s", "s", 2), target)
        of = Result("of", "out/of", "done", nbytes=2, seconds=3.0, peak=4)
        found = Copy(job, of, str(tmp_path), replaces=replaces).perform(process)
        assert (found.status if found else None) == expected
        if found is not None:
            assert (found.source, found.target, found.reason) == ("s", target, "as of")
            assert (found.seconds, found.peak) == (0.0, None)
    assert placed == ["own://box/a", "own://box/a", str(tmp_path / "a")]
