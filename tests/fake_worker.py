"""A worker that is no process: models open here, and what time their runs take is made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import pytest

from tiered.extensions.measurement import subjects
from tiered.runtime import Session
from tiered.runtime.opening import Opening
from tiered.runtime.worker.client import TimedRuns


class FakeSession(Session):
    """A session with the clock of a worker; `seconds` maps the end of a name to a time."""

    seconds: ClassVar[Mapping[str, float]]
    openings: ClassVar[list[Opening]]
    held: ClassVar[list[Sequence[Mapping[str, Any]]]]
    interrupt: ClassVar[Callable[[], bool]]

    def __init__(self, model: Any, **how: Any) -> None:
        super().__init__(model, **how)
        self._taken = next(
            (taken for end, taken in self.seconds.items() if str(model).endswith(end)), 0.001
        )
        self.openings.append(how["setting"])

    def hold(self, samples: Sequence[Mapping[str, Any]]) -> None:
        """Take the feeds, which the model accepts."""
        for feeds in samples:
            self.prepared(feeds)()
        self.held.append(samples)

    def time(self, sample: int, runs: int, before: int) -> TimedRuns:
        """Return the seconds that are made up."""
        if type(self).interrupt():
            raise KeyboardInterrupt
        return TimedRuns([self._taken] * runs, [self._taken] * runs, 0.25, 4096, {})


class FakeWorker:
    """A worker without a process."""

    def __init__(self, *, seconds: float) -> None:
        self.limit = seconds

    def __enter__(self) -> FakeWorker:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def ready(self) -> None:
        """Wait for nothing."""

    def open(self, model: Any, **how: Any) -> FakeSession:
        """Open a model in this process."""
        return FakeSession(model, **how)


@pytest.fixture
def fake_worker(monkeypatch: pytest.MonkeyPatch) -> type[FakeSession]:
    """Let models be measured without processes; return the class of their sessions."""
    monkeypatch.setattr(subjects, "Worker", FakeWorker)
    made_up = {
        "seconds": {"b.onnx": 0.0005, "c.onnx": 0.002},
        "openings": [],
        "held": [],
        "interrupt": staticmethod(lambda: False),
    }
    for name, value in made_up.items():
        monkeypatch.setattr(FakeSession, name, value, raising=False)
    return FakeSession
