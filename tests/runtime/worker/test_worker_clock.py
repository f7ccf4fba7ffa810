"""The clock of the worker: as many runs as were asked for, each with its seconds."""

import gc
import time
from collections.abc import Iterator
from typing import Any, cast

import pytest

from tiered.runtime.session import Session
from tiered.runtime.worker import worker_clock
from tiered.runtime.worker.worker_clock import TimedModel, timed
from tiered.support.errors import RuntimeFailure


class Clock:
    """A session, and clocks that only its runs move: 2 s of the wall, 1 s of the processor."""

    nodes_by_provider: dict[str, int] = {"CPUExecutionProvider": 3}  # noqa: RUF012 - read only

    def __init__(self) -> None:
        self.wall = self.processor = 0.0
        self.ran: list[Any] = []
        self.collects: set[bool] = set()
        self.error: Exception | None = None

    def prepared(self, feeds: Any) -> Any:
        def call() -> None:
            if self.error is not None:
                raise self.error
            self.collects.add(gc.isenabled())
            self.ran.append(feeds)
            self.wall += 2
            self.processor += 1

        return call

    def end_profile(self) -> str:
        return "profile.json"

    @property
    def session(self) -> Session:
        return cast(Session, self)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[Clock]:
    made = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: made.wall)
    monkeypatch.setattr(time, "thread_time", lambda: made.processor)
    yield made
    monkeypatch.undo()


def test_runs_are_timed_after_others_that_are_not(clock: Clock) -> None:
    model = TimedModel(clock.session, 0.5, None)
    model.hold([{"x": 1}, {"x": 2}])
    assert model.seconds(1, 3, 2) == {"wall": [2.0] * 3, "processor": [1.0] * 3}
    assert clock.ran == [{"x": 2}] * 5
    assert model.seconds(0, 0, 1) == {"wall": [], "processor": []}
    assert clock.ran[-1] == {"x": 1}
    assert model.started == 0.5
    assert model.nodes_by_provider == {"CPUExecutionProvider": 3}
    assert model.end_profile() == "profile.json"


def test_feeds_are_those_of_the_last_hold(clock: Clock) -> None:
    model = TimedModel(clock.session, 0.5, None)
    model.hold([{"x": 1}])
    model.hold([{"x": 3}])
    model.seconds(0, 1, 0)
    assert clock.ran == [{"x": 3}]


@pytest.mark.parametrize("was_enabled", [True, False])
def test_no_garbage_is_collected_during_runs(clock: Clock, was_enabled: bool) -> None:
    model = TimedModel(clock.session, 0.5, None)
    model.hold([{}])
    (gc.enable if was_enabled else gc.disable)()
    try:
        model.seconds(0, 1, 1)
        assert clock.collects == {False}
        assert gc.isenabled() == was_enabled
        clock.error = ValueError("no")
        with pytest.raises(RuntimeFailure):
            model.seconds(0, 1, 0)
        assert gc.isenabled() == was_enabled
    finally:
        gc.enable()


def test_what_fails_in_a_run_is_an_error_of_the_runtime(clock: Clock) -> None:
    model = TimedModel(clock.session, 0.5, None)
    model.hold([{}])
    clock.error = ValueError("no")
    with pytest.raises(RuntimeFailure, match="onnxruntime failed in a timed run: no") as failed:
        model.seconds(0, 1, 0)
    assert failed.value.__cause__ is clock.error
    clock.error = RuntimeFailure("as it is")
    with pytest.raises(RuntimeFailure) as failed:
        model.seconds(0, 0, 1)
    assert failed.value is clock.error


@pytest.mark.parametrize(
    ("base", "peak", "grown"),
    [(100, 150, 50), (100, 100, 0), (100, 90, 0), (None, 9, None), (9, None, None)],
)
def test_the_growth_is_that_of_the_peak(
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
    base: int | None,
    peak: int | None,
    grown: int | None,
) -> None:
    monkeypatch.setattr(worker_clock, "peak_since_reset", lambda: peak)
    assert TimedModel(clock.session, 0.5, base).grown() == grown


def test_opening_is_timed_from_a_new_peak(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    peaks = iter([100, 160])
    monkeypatch.setattr(worker_clock, "reset_peak", lambda: done.append("reset"))
    monkeypatch.setattr(worker_clock, "peak_since_reset", lambda: next(peaks))

    def opened() -> Session:
        done.append("opened")
        clock.wall += 7
        return clock.session

    model, session = timed(opened)
    assert done == ["reset", "opened"]
    assert cast(Any, session) is clock
    assert (model.started, model.grown()) == (7.0, 60)
