"""The scheduler of a batch, with an engine that answers at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tiered.extensions.fleet.job import Command, Job
from tiered.extensions.fleet.manifest import Manifest
from tiered.extensions.fleet.process import Evicted
from tiered.extensions.fleet.result_line import Result
from tiered.extensions.fleet.result_versions import text_of, versions
from tiered.extensions.fleet.scheduler import BatchSettings, run_batch
from tiered.extensions.fleet.sources import ModelSource
from tiered.extensions.fleet.tasks import Copy, Digest, RunTask, Task, TaskLimits
from tiered.support.errors import HelperError

O3 = Command("optimize", ("-O3",))


class Engine:
    """Digests are the contents of the files; a run writes them to the target.

    Args:
        window: how many tasks are submitted at once at most.
        answer: another answer to a task, None for that of this class.
        limit: the bytes that jobs may take together; each takes those of its model.
    """

    is_here = True

    def __init__(
        self,
        window: int = 1,
        answer: Callable[[Task], Any] = lambda task: None,
        limit: int | None = None,
    ) -> None:
        self.window = window
        self.tasks: list[tuple[Task, bool]] = []
        self._answer, self._limit = answer, limit

    def peak_of(self, job: Job) -> int:
        return job.source.nbytes

    def room(self) -> int | None:
        return self._limit

    def submit(self, task: Task, *, is_alone: bool = False) -> Future[Any]:
        self.tasks.append((task, is_alone))
        done: Future[Any] = Future()
        try:
            done.set_result(self._answer(task) or performed(task))
        except (Evicted, HelperError) as error:
            done.set_exception(error)
        return done

    def close(self) -> None:
        """Nothing runs."""

    def said(self) -> list[str]:
        """Return the tasks as words."""
        return [word_of(task) for task, _ in self.tasks]


def word_of(task: Task) -> str:
    match task:
        case Digest(groups):
            return "digest " + " ".join(Path(path).name for group in groups for path in group)
        case Copy(job, of):
            return f"copy {Path(of.target).name} to {Path(job.target).name}"
        case RunTask(job):
            return f"run {Path(job.source.path).name}"
    raise AssertionError(task)


def performed(task: Task) -> Any:
    match task:
        case Digest(groups):
            return tuple(tuple(map(digest, group)) for group in groups)
        case Copy(job, of):
            Path(job.target).write_bytes(Path(of.target).read_bytes())
            return Result(job.source.path, job.target, "cached", nbytes=of.nbytes)
        case RunTask(job):
            content = Path(job.source.path).read_bytes()
            if content.startswith(b"bad"):
                return Result(job.source.path, job.target, "failed", f"{job.source.path}: bad")
            Path(job.target).write_bytes(content)
            return Result(
                job.source.path,
                job.target,
                "done",
                sha256_in=digest(job.source.path),
                sha256_out=digest(job.target),
                nbytes=len(content),
                command=task.identity,
                versions=text_of(versions()),
            )
    raise AssertionError(task)


def digest(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if Path(path).exists() else ""


class Report:
    def __init__(self) -> None:
        self.started: list[str] = []

    def on_plan(self, count: int) -> None:
        self.count = count

    def on_start(self, job: Job) -> None:
        self.started.append(job.source.name)

    def on_result(self, result: Result) -> None:
        """The results are returned."""


def run(
    folder: Path,
    contents: dict[str, bytes],
    engine: Engine,
    *,
    fail_fast: bool = False,
    resume: bool = False,
    options: Sequence[str] = (),
) -> list[str]:
    """Run files of these contents, in their order, and return the statuses."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    jobs = []
    for name, content in contents.items():
        (folder / name).write_bytes(content)
        jobs.append(Job(ModelSource(str(folder / name), name, len(content)), str(out / name)))
    command = Command("optimize", ("-O3", *options))
    settings = BatchSettings(command, TaskLimits(), None, fail_fast)
    with Manifest(str(folder / "lines"), resume=resume) as manifest:
        report = Report()
        results = run_batch(jobs, settings, engine, manifest, report)
    assert report.count == len(jobs)
    assert report.started == [
        task.job.source.name for task, _ in engine.tasks if isinstance(task, RunTask)
    ]
    assert [result.target for result in results] == [job.target for job in jobs]
    return [result.status for result in results]


def test_files_of_a_size_of_their_own_are_not_digested(tmp_path: Path) -> None:
    engine = Engine()
    assert run(tmp_path, {"a": b"123", "b": b"12", "c": b"1"}, engine) == ["done"] * 3
    assert engine.said() == ["run a", "run b", "run c"]


def test_files_of_equal_sizes_are_digested_together_and_equal_ones_copied(tmp_path: Path) -> None:
    engine = Engine()
    contents = {"a": b"12", "b": b"34", "c": b"12", "d": b"9"}
    assert run(tmp_path, contents, engine) == ["done", "done", "cached", "done"]
    # The copy comes as soon as its original is there; what is alone in its size is not digested.
    assert engine.said() == ["digest a b c", "run a", "copy a to c", "run b", "run d"]


@pytest.mark.parametrize(("count", "groups"), [(64, [64]), (65, [64, 1]), (130, [64, 64, 2])])
def test_at_most_64_files_are_digested_together(
    tmp_path: Path, count: int, groups: list[int]
) -> None:
    engine = Engine()
    run(tmp_path, {f"m{at:03}": b"%03d" % at for at in range(count)}, engine)
    found = [len(task.groups) for task, _ in engine.tasks if isinstance(task, Digest)]
    assert found == groups


def test_large_files_are_digested_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.extensions.fleet.scheduler._DIGESTED_BYTES", 10)
    engine = Engine()
    run(tmp_path, {"a": b"123456", "b": b"123457", "c": b"12345", "d": b"54321"}, engine)
    digests = [word for word in engine.said() if word.startswith("digest")]
    assert digests == ["digest a", "digest b", "digest c d"]


def test_no_more_tasks_than_the_window_wait_for_the_engine(tmp_path: Path) -> None:
    class Waiting(Engine):
        def submit(self, task: Task, *, is_alone: bool = False) -> Future[Any]:
            done = super().submit(task, is_alone=is_alone)
            running.append(done)
            assert sum(not each.done() for each in running) <= self.window
            return done

    running: list[Future[Any]] = []
    engine = Waiting(2)
    assert set(run(tmp_path, {f"m{at}": b"%d" % at for at in range(8)}, engine)) == {"done"}
    assert len(engine.said()) == 9


def test_what_waits_for_an_equal_model_fails_with_it_under_its_own_name(tmp_path: Path) -> None:
    engine = Engine()
    assert run(tmp_path, {"a": b"bad", "b": b"bad"}, engine) == ["failed", "failed"]
    assert engine.said() == ["digest a b", "run a"]


@pytest.mark.parametrize(
    ("reason", "more"),
    [("in the way", {"exit_code": 2}), ("cannot write OUT", {}), ("of 3 bytes", {"nbytes": 3})],
)
def test_what_waits_for_a_model_whose_target_fails_runs_itself(
    tmp_path: Path, reason: str, more: dict[str, Any]
) -> None:
    def answer(task: Task) -> Any:
        if isinstance(task, RunTask) and task.job.source.name == "a":
            job = task.job
            return Result(
                job.source.path, job.target, "failed", reason.replace("OUT", job.target), **more
            )
        return None

    engine = Engine(answer=answer)
    assert run(tmp_path, {"a": b"x", "b": b"x"}, engine) == ["failed", "done"]
    assert engine.said() == ["digest a b", "run a", "run b"]


def test_what_waits_for_a_process_that_was_lost_runs_itself(tmp_path: Path) -> None:
    def answer(task: Task) -> Any:
        if isinstance(task, RunTask) and task.job.source.name == "a":
            return Result(task.job.source.path, task.job.target, "crashed")
        return None

    engine = Engine(answer=answer)
    assert run(tmp_path, {"a": b"x", "b": b"x"}, engine) == ["crashed", "done"]
    assert engine.said() == ["digest a b", "run a", "run b"]


def test_a_copy_that_cannot_be_made_is_a_run(tmp_path: Path) -> None:
    class Gone(Engine):
        def submit(self, task: Task, *, is_alone: bool = False) -> Future[Any]:
            if not isinstance(task, Copy):
                return super().submit(task, is_alone=is_alone)
            self.tasks.append((task, is_alone))
            done: Future[Any] = Future()
            done.set_result(None)
            return done

    engine = Gone()
    assert run(tmp_path, {"a": b"x", "b": b"x"}, engine) == ["done", "done"]
    assert engine.said() == ["digest a b", "run a", "copy a to b", "run b"]


def test_fail_fast_names_also_what_waited_for_an_equal_model(tmp_path: Path) -> None:
    engine = Engine()
    contents = {"a": b"bad", "b": b"123", "c": b"123"}
    assert run(tmp_path, contents, engine, fail_fast=True) == ["failed", "not run", "not run"]
    assert engine.said() == ["digest a b c", "run a"]


def test_an_evicted_job_runs_alone_at_the_end(tmp_path: Path) -> None:
    evicted: list[str] = []

    def answer(task: Task) -> Any:
        if isinstance(task, RunTask) and task.job.source.name == "a" and not evicted:
            evicted.append("a")
            raise Evicted
        return None

    engine = Engine(answer=answer)
    assert run(tmp_path, {"a": b"123", "b": b"1"}, engine) == ["done", "done"]
    assert engine.said() == ["run a", "run b", "run a"]
    assert [is_alone for _, is_alone in engine.tasks] == [False, False, True]


def test_models_whose_digests_were_evicted_run_without(tmp_path: Path) -> None:
    def answer(task: Task) -> Any:
        if isinstance(task, Digest):
            raise Evicted
        return None

    engine = Engine(answer=answer)
    assert run(tmp_path, {"a": b"1", "b": b"2"}, engine) == ["done", "done"]
    assert engine.said() == ["digest a b", "run a", "run b"]


def test_an_error_of_the_engine_ends_the_batch_and_keeps_what_is_done(tmp_path: Path) -> None:
    def answer(task: Task) -> Any:
        if isinstance(task, RunTask) and task.job.source.name == "b":
            raise HelperError("cannot start")
        return None

    with pytest.raises(HelperError):
        run(tmp_path, {"a": b"123", "b": b"1"}, Engine(answer=answer))
    assert len((tmp_path / "lines").read_text().splitlines()) == 1
    engine = Engine()
    assert run(tmp_path, {"a": b"123", "b": b"1"}, engine, resume=True) == ["skipped", "done"]


def test_a_result_that_is_not_there_is_a_failure(tmp_path: Path) -> None:
    def answer(task: Task) -> Any:
        assert isinstance(task, RunTask)
        job = task.job
        return Result(job.source.path, job.target, "done", nbytes=7)

    assert run(tmp_path, {"a": b"123"}, Engine(answer=answer)) == ["failed"]
    line = (tmp_path / "lines").read_text()
    reason = "the result has None bytes where it was written, expected 7"
    assert f'"reason": "{reason}", "exit_code": 1' in line, line


def test_smaller_models_overtake_one_that_does_not_fit_20_times(tmp_path: Path) -> None:
    class Slow(Engine):
        """The first task never ends before the last look for another one."""

        def peak_of(self, job: Job) -> int:
            return {"a": 90, "b": 80}.get(job.source.name, 0)

        def submit(self, task: Task, *, is_alone: bool = False) -> Future[Any]:
            done = super().submit(task, is_alone=is_alone)
            if len(self.tasks) > 1:
                return done
            self.answer = done.result()
            return first

        def room(self) -> int:
            if len(self.tasks) == 21 and not first.done():
                first.set_result(self.answer)  # after the 20th that overtook
            return 100

    first: Future[Any] = Future()
    engine = Slow(window=100)
    contents = {name: b"x" * (50 - at) for at, name in enumerate(["a", "b", *map(str, range(30))])}
    assert set(run(tmp_path, contents, engine)) == {"done"}
    overtook = [f"run {at}" for at in range(20)]
    assert engine.said()[:22] == ["run a", *overtook, "run b"]


def test_fail_fast_ends_also_at_a_result_that_the_disk_refuses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing:
        """Commits at once, and nothing fits on the disk."""

        is_busy = False

        def __init__(self, manifest: Manifest, *, syncs: bool) -> None:
            self.refused: list[Result] = []

        def put(self, result: Result) -> None:
            self.refused.append(replace(result, status="failed"))

        def taken(self) -> list[Result]:
            found, self.refused = self.refused, []
            return found

        def close(self) -> None:
            """Nothing waits."""

    monkeypatch.setattr("tiered.extensions.fleet.scheduler.Committer", Refusing)
    engine = Engine()
    contents = {"a": b"123", "b": b"12"}
    assert run(tmp_path, contents, engine, fail_fast=True) == ["failed", "not run"]
    assert engine.said() == ["run a"]


def again(folder: Path, before: str, after: str, options: str, change: str) -> str:
    """Run files twice, and return the statuses and tasks of the second time.

    Args:
        before, after: the files of both times: `a=12 b=34` has the contents 12 and 34.
        options: of the command, both times.
        change: a result that is changed between.
    """

    def contents(text: str) -> dict[str, bytes]:
        return {pair[0]: pair[2:].encode() for pair in text.split()}

    run(folder, contents(before), Engine(), options=options.split())
    if change:
        (folder / "out" / change).write_bytes(b"other")
    engine = Engine()
    statuses = run(folder, contents(after), engine, resume=True, options=options.split())
    tasks = [
        word_of(task) + (" anew" if not isinstance(task, Digest) and task.replaces else "")
        for task, _ in engine.tasks
    ]
    return f"{' '.join(statuses)}: {', '.join(tasks)}"


def test_a_second_time(tmp_path: Path) -> None:
    for at, (before, after, options, change, expected) in enumerate((
        ("a=12 b=3", "a=12 b=3", "", "", "skipped skipped: digest a a b b"),
        ("a=12 b=3", "a=12 b=4", "", "", "skipped done: digest a a b b, run b anew"),
        ("a=12 b=3", "a=12 b=3", "", "b", "skipped done: digest a a b b, run b"),
        ("a=12 b=34", "a=12 b=12", "", "", "skipped cached: digest a a b b, copy a to b anew"),
        ("a=12 b=3", "a=12 b=3 c=4567", "", "", "skipped skipped done: digest a a b b c, run c"),
        ("a=12 b=3", "a=12 c=12", "", "", "skipped cached: digest a a c, copy a to c"),
        ("a=12 b=3", "a=12 c=12", "--force", "", "skipped cached: digest a a c, copy a to c anew"),
        ("a=bad b=3", "a=bad b=3", "", "", "failed skipped: digest a b b, run a"),
        ("a=bad b=3", "a=bad b=3 c=bad", "", "", "failed skipped failed: digest a b b c, run a"),
    )):  # fmt: skip
        folder = tmp_path / str(at)
        folder.mkdir()
        assert again(folder, before, after, options, change=change) == expected, (before, after)


def test_equal_models_that_are_digested_apart_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tiered.extensions.fleet.scheduler._DIGESTED_BYTES", 1)
    engine = Engine()
    assert run(tmp_path, {"a": b"12", "b": b"34", "c": b"12"}, engine) == ["done", "done", "cached"]
    assert engine.said() == [
        "digest a", "run a", "digest b", "run b", "digest c", "copy a to c",
    ]  # fmt: skip


def test_a_result_with_files_beside_it_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.data").write_bytes(b"weights")
    engine = Engine()
    assert run(tmp_path, {"a": b"12", "b": b"12"}, engine) == ["done", "done"]
    assert engine.said() == ["digest a b", "run a", "run b"]


def test_a_command_without_a_result_may_have_a_file_there(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for name in "ab":
        (tmp_path / "out" / name).write_bytes(b"something")

    def answer(task: Task) -> Any:
        if not isinstance(task, RunTask):
            return None
        return Result(task.job.source.path, task.job.target, "done")

    engine = Engine(answer=answer)
    assert run(tmp_path, {"a": b"12", "b": b"12"}, engine) == ["done", "done"]
    assert engine.said() == ["digest a b", "run a", "run b"]


def test_a_model_beyond_the_memory_runs_if_nothing_else_does(tmp_path: Path) -> None:
    engine = Engine(limit=1)
    assert run(tmp_path, {"a": b"123", "b": b"12"}, engine) == ["done", "done"]


def test_what_fits_exactly_into_the_memory_is_not_overtaken(tmp_path: Path) -> None:
    engine = Engine(window=3, limit=7)
    contents = {"a": b"1234", "b": b"123", "c": b"1"}
    assert run(tmp_path, contents, engine) == ["done"] * 3
    assert engine.said() == ["run a", "run b", "run c"]
