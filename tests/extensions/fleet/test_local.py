"""The engine of one machine, with processes that exist in words alone."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tiered.extensions.fleet import local as module
from tiered.extensions.fleet.job import Command, Job
from tiered.extensions.fleet.local import LocalEngine, processors
from tiered.extensions.fleet.sources import ModelSource
from tiered.extensions.fleet.tasks import Digest, RunTask, TaskLimits
from tiered.support.errors import UsageError

MIB = 1 << 20


class Process:
    """A process that holds what a test says."""

    made: list[Process] = []  # noqa: RUF012  # of one test

    def __init__(self, memory: int | None) -> None:
        self.memory, self.idle, self.holds = memory, 0, 0
        self.said: list[str] = []
        self.stopped = threading.Event()
        Process.made.append(self)

    def start(self) -> None:
        self.said.append("start")
        self.idle = 100 * MIB

    def held(self) -> int:
        return self.holds

    def stop(self, *, is_alone: bool) -> None:
        self.said.append("stop alone" if is_alone else "stop")
        self.holds = 0
        self.stopped.set()

    def close(self) -> None:
        self.said.append("close")

    def end(self) -> None:
        self.said.append("end")


class Task(RunTask):
    """A task that calls a function with its process."""

    def __init__(self, work: Callable[[Any], Any], nbytes: int = 0) -> None:
        job = Job(ModelSource("m.onnx", "m.onnx", nbytes), "out/m.onnx")
        super().__init__(job, Command("optimize"), "", TaskLimits(), None)
        object.__setattr__(self, "work", work)

    def perform(self, process: Any) -> Any:
        return self.work(process)  # type: ignore[attr-defined]  # set above


Make = Callable[..., LocalEngine]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    Process.made = []
    monkeypatch.setattr(module, "JobProcess", Process)
    engines: list[LocalEngine] = []

    def made(jobs: int | None, memory: int | None = None) -> LocalEngine:
        engines.append(LocalEngine(jobs, memory, runs=False))
        return engines[-1]

    yield made
    for engine in engines:
        engine.close()


def test_there_is_a_process_for_each_job_and_the_first_is_started(make: Make) -> None:
    assert make(3).window == 3
    assert [process.said for process in Process.made] == [["start"], [], []]


def test_without_a_number_there_is_one_for_each_processor(make: Make) -> None:
    assert make(None).window == processors() >= 1


@pytest.mark.parametrize(("memory", "window"), [(200, 1), (400, 2), (10_000, 4)])
def test_no_more_run_than_the_memory_has_room_for(make: Make, memory: int, window: int) -> None:
    engine = make(4, memory * MIB)
    assert engine.window == window
    assert engine.room() == int(memory * MIB * 0.9) - window * 100 * MIB
    assert {process.memory for process in Process.made} == {memory * MIB}


def test_memory_for_no_process_is_refused(make: Make) -> None:
    with pytest.raises(UsageError, match=r"--max-memory: 171,966,463 bytes.*least 171,966,464"):
        make(1, 164 * MIB - 1)
    assert Process.made[0].said == ["start", "close"]
    assert make(1, 164 * MIB).window == 1


def test_a_larger_model_is_expected_to_take_more(make: Make) -> None:
    engine = make(1)
    small, large = (engine.peak_of(Task(print, size).job) for size in (0, 1 << 30))
    assert large - small >= 1 << 30


def test_tasks_run_at_once_in_processes_of_their_own(make: Make) -> None:
    engine, barrier = make(2), threading.Barrier(2, timeout=30)

    def work(process: Process) -> Process:
        barrier.wait()
        return process

    found = {each.result(30) for each in [engine.submit(Task(work)) for _ in range(2)]}
    assert found == {*Process.made}


def test_an_error_of_a_task_is_its_answer_and_frees_the_process(make: Make) -> None:
    engine = make(1)
    with pytest.raises(ZeroDivisionError):
        engine.submit(Task(lambda process: 1 // 0)).result(30)
    assert engine.submit(Digest(())).exception(30) is not None  # the fake has no folders
    assert engine.submit(Task(lambda process: 5)).result(30) == 5


def test_a_task_alone_ends_all_processes_but_its_own(make: Make) -> None:
    engine = make(3)
    releases, started = [threading.Event(), threading.Event()], threading.Semaphore(0)

    def work(process: Process) -> bool:
        started.release()
        return releases[Process.made.index(process)].wait(30)

    running = []
    for _ in range(2):
        running.append(engine.submit(Task(work)))
        assert started.acquire(timeout=30)
    assert engine.submit(Task(lambda process: process)).result(30) is Process.made[2]
    for task, release in zip(running, releases, strict=True):
        release.set()
        assert task.result(30)
    own = engine.submit(Task(lambda process: process), is_alone=True).result(30)
    assert own is Process.made[1]
    assert ["close" in process.said for process in Process.made] == [True, False, True]


@pytest.mark.parametrize("is_alone", [False, True])
def test_the_one_furthest_beyond_its_prediction_is_stopped(make: Make, *, is_alone: bool) -> None:
    engine = make(2, 1000 * MIB)
    started = threading.Semaphore(0)

    def work(process: Process) -> list[str]:
        process.holds = 100 * MIB
        started.release()
        assert process.stopped.wait(30)
        return process.said

    def small(process: Process) -> str:
        started.release()
        process.holds = 300 * MIB
        return "" if Process.made[0].stopped.wait(30) else "not stopped"

    first = engine.submit(Task(work), is_alone=is_alone)
    assert started.acquire(timeout=30)
    second = None if is_alone else engine.submit(Task(small, 200 * MIB))
    if second is not None:
        assert started.acquire(timeout=30)
    Process.made[0].holds = 950 * MIB
    assert first.result(30)[-1] == ("stop alone" if is_alone else "stop")
    if second is not None:
        assert second.result(30) == ""
        assert not Process.made[1].stopped.is_set()


def test_a_closed_engine_has_ended_all_processes(make: Make) -> None:
    make(2).close()
    assert [process.said[-2:] for process in Process.made] == [["close", "end"]] * 2


def test_one_that_runs_beside_nothing_is_stopped_as_one_of_many(make: Make) -> None:
    engine, started = make(2, 1000 * MIB), threading.Event()

    def work(process: Process) -> list[str]:
        process.holds = 950 * MIB
        started.set()
        assert process.stopped.wait(30)
        return process.said

    assert engine.submit(Task(work)).result(30)[-1] == "stop"


def test_the_processors_of_a_system_without_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for count, expected in ((7, 7), (1, 1), (None, 1)):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        assert processors() == expected
