"""A process for jobs: started at first use, and again after it was lost or stopped."""

import os
import subprocess
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from tiered.extensions.fleet import process as module
from tiered.extensions.fleet.process import Evicted, JobProcess, held_by_tree
from tiered.runtime.worker.child import Ended
from tiered.support.errors import HelperError, OutOfMemory, RuntimeFailure
from tiered.support.memory_limit import held_by


class Child:
    """A child that exists in words alone."""

    made: list["Child"] = []  # noqa: RUF012  # of one test
    answer: Callable[["Child", dict[str, Any]], dict[str, Any]]

    def __init__(self, *program: str, group: bool) -> None:
        assert (program, group) == (("tiered", "serve-jobs"), True)
        self.is_alive, self.asked, self.killed = True, list[dict[str, Any]](), False
        self.ended = False
        self.process = SimpleNamespace(pid=len(Child.made))
        Child.made.append(self)

    def greet(self) -> int:
        return 100

    def exchange(self, request: dict[str, Any], blobs: object, seconds: float | None) -> Any:
        self.asked.append({**request, "seconds": seconds})
        return type(self).answer(self, request), ()

    def wait(self) -> int:
        return 0

    def last_words(self) -> str:
        return ""

    def end(self) -> None:
        self.is_alive, self.ended = False, True

    def kill(self) -> None:
        self.is_alive, self.killed = False, True


@pytest.fixture(autouse=True)
def _fake(monkeypatch: pytest.MonkeyPatch) -> None:
    Child.made = []
    Child.answer = staticmethod(lambda child, request: {"done": request["do"], "retire": False})
    monkeypatch.setattr(module, "Child", Child)
    monkeypatch.setattr(module, "held_by_tree", lambda pid: 1000 + pid)


def test_it_starts_at_first_use_and_stays() -> None:
    process = JobProcess(7)
    assert Child.made == []
    assert process.held() == 0
    assert process.ask({"do": "a"}, "doing", 3.0) == "a"
    assert process.ask({"do": "b"}, "doing") == "b"
    (child,) = Child.made
    assert process.idle == 100
    assert child.asked == [
        {"do": "a", "memory": 7, "seconds": 3.0}, {"do": "b", "memory": 7, "seconds": None}
    ]  # fmt: skip


def test_a_lost_one_is_started_again() -> None:
    process = JobProcess()
    process.ask({"do": "a"}, "doing")
    Child.made[0].is_alive = False
    process.ask({"do": "b"}, "doing")
    assert len(Child.made) == 2


def test_one_that_holds_too_much_retires() -> None:
    Child.answer = staticmethod(lambda child, request: {"done": 1, "retire": True})
    process = JobProcess()
    assert process.ask({"do": "a"}, "doing") == 1
    assert not Child.made[0].is_alive
    process.ask({"do": "a"}, "doing")
    assert len(Child.made) == 2


def test_one_that_cannot_greet_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def greet(self: Child) -> int:
        raise HelperError("no")

    monkeypatch.setattr(Child, "greet", greet)
    process = JobProcess()
    with pytest.raises(HelperError):
        process.ask({"do": "a"}, "doing")
    assert not Child.made[0].is_alive


def test_the_peak_is_of_the_present_job() -> None:
    process = JobProcess()
    process.ask({"do": "a"}, "doing")
    assert process.held() == 1000
    assert process.peak == 1000
    process.ask({"do": "b"}, "doing")
    assert process.peak == 0


@pytest.mark.parametrize(("is_alone", "kind"), [(True, OutOfMemory), (False, Evicted)])
def test_one_that_is_stopped_says_why(kind: type[Exception], *, is_alone: bool) -> None:
    process = JobProcess(3 << 20)

    def answer(child: Child, request: dict[str, Any]) -> dict[str, Any]:
        process.stop(is_alone=is_alone)
        raise Ended(child, is_overdue=False)  # type: ignore[arg-type]  # a fake

    Child.answer = staticmethod(answer)
    with pytest.raises(kind) as found:
        process.ask({"do": "a"}, "doing")
    if is_alone:
        assert str(found.value) == "took more memory than its limit of 3 MiB and was stopped"
    assert Child.made[0].killed
    Child.answer = staticmethod(lambda child, request: {"done": 2, "retire": False})
    assert process.ask({"do": "b"}, "doing") == 2


def test_a_stop_between_two_jobs_stops_neither() -> None:
    process = JobProcess()
    process.ask({"do": "a"}, "doing")
    process.stop(is_alone=False)
    assert process.ask({"do": "b"}, "doing") == "b"
    assert [child.killed for child in Child.made] == [True, False]
    JobProcess().stop(is_alone=True)


def test_one_that_is_stopped_as_it_answers_is_ended_after_it() -> None:
    process = JobProcess()

    def answer(child: Child, request: dict[str, Any]) -> dict[str, Any]:
        process.stop(is_alone=False)
        return {"done": request["do"], "retire": False}

    Child.answer = staticmethod(answer)
    assert process.ask({"do": "a"}, "doing") == "a"
    assert [(child.killed, child.ended) for child in Child.made] == [(True, True)]


def test_one_that_is_stopped_as_a_job_begins_is_started_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = JobProcess()
    stale, start = Child("tiered", "serve-jobs", group=True), process.start
    children = [stale]
    monkeypatch.setattr(process, "start", lambda: children.pop() if children else start())
    assert process.ask({"do": "a"}, "doing") == "a"
    assert [(child.ended, len(child.asked)) for child in Child.made] == [(True, 0), (False, 1)]


def test_another_error_ends_the_process_and_is_passed_on() -> None:
    def answer(child: Child, request: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeFailure("mine")

    Child.answer = staticmethod(answer)
    process = JobProcess()
    with pytest.raises(RuntimeFailure, match="mine"):
        process.ask({"do": "a"}, "doing")
    assert not Child.made[0].is_alive


def test_a_closed_one_is_ended_and_may_be_closed_again() -> None:
    process = JobProcess()
    process.close()
    process.start()
    process.close()
    process.close()
    assert not Child.made[0].is_alive
    assert process.held() == 0


@pytest.mark.parametrize("platform", ["linux", "win32"])
def test_the_processes_below_count(monkeypatch: pytest.MonkeyPatch, platform: str) -> None:
    if platform == "linux" != sys.platform:
        pytest.skip("Linux alone has /proc")
    monkeypatch.setattr(module, "held_by_tree", held_by_tree)
    sleeps = "import sys, time; print(flush=True); time.sleep(600)"
    with psutil.Popen([sys.executable, "-c", sleeps], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            monkeypatch.setattr(sys, "platform", platform)
            assert held_by_tree(os.getpid()) >= held_by(os.getpid()) + held_by(child.pid) // 2
        finally:
            child.kill()
    assert held_by_tree(child.pid) == 0
