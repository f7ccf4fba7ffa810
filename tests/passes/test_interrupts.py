"""Ctrl-C takes effect between two edits, and at once if it is pressed again."""

import gc
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType, SimpleNamespace
from typing import Any

import pytest

from tiered.passes import interrupts
from tiered.passes.interrupts import interrupted_between_edits, may_stop

CALL = "def {name}(inner):\n    return inner()\n"


def frame_in(*modules: str, name: str = "call") -> FrameType:
    """Return a frame in functions of modules that call each other, the outermost first."""
    inner: Callable[[], FrameType] = sys._getframe
    for module in reversed(modules):
        scope: dict[str, Any] = {"__name__": module}
        exec(CALL.format(name=name), scope)
        inner = _bound(scope[name], inner)
    found: FrameType | None = inner()
    while found is not None and found.f_globals["__name__"] == __name__:
        found = found.f_back
    assert found is not None
    return found


def _bound(call: Callable[[Any], FrameType], inner: Callable[[], FrameType]) -> Any:
    return lambda: call(inner)


@pytest.mark.parametrize(
    ("modules", "expected"),
    [
        (["script"], True),
        (["script", "tiered.graph.core.node"], False),
        (["tiered.graph", "script"], False),  # a callback of an edit
        (["script", "tiered.graphs"], True),
        (["tiered.graph.intervals.propagation"], True),
        (["tiered.graph", "tiered.graph.intervals"], False),
        (["tiered.passes.base"], False),
        (["tiered.context"], False),
        (["tiered.pipeline.pipeline_base"], False),
        (["contextlib"], False),
        (["tiered.passes.base", "script"], True),  # a pass of the user
        (["tiered.passes.base", "json.decoder"], False),  # the library works for its caller
        (["script", "json.decoder", "namedtuple_Place"], True),
        (["tiered.passes", "weakref"], False),
    ],
)
def test_a_program_stops_where_nothing_is_half_done(modules: list[str], expected: bool) -> None:
    # What runs the tests is no part of the program.
    assert may_stop(_cut(frame_in(*modules), len(modules))) is expected


class _Frame:
    """A frame whose callers are left out."""

    def __init__(self, frame: FrameType, callers: "list[FrameType]") -> None:
        self.f_code, self.f_globals = frame.f_code, frame.f_globals
        self.f_back = _Frame(callers[0], callers[1:]) if callers else None


def _cut(frame: FrameType, count: int) -> Any:
    frames: list[FrameType] = []
    at: FrameType | None = frame
    while at is not None and len(frames) < count:
        if at.f_globals["__name__"] != __name__:
            frames.append(at)
        at = at.f_back
    return _Frame(frames[0], frames[1:])


def test_exceptions_of_destructors_and_of_the_collector_would_be_lost() -> None:
    assert not may_stop(_cut(frame_in("script", name="__del__"), 1))
    frame = _cut(frame_in("script"), 1)

    def callback(phase: str, info: dict[str, int]) -> None:
        """Of no meaning."""

    assert may_stop(frame)
    frame.f_code = callback.__code__
    gc.callbacks.append(callback)
    try:
        assert not may_stop(frame)
    finally:
        gc.callbacks.remove(callback)
    assert may_stop(None)


@pytest.fixture
def default() -> Iterator[None]:
    """SIGINT has Python's own handler, and gets its former one back."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


Steps = Callable[[list[str], Callable[[], None]], None]


def interrupted(body: Steps) -> list[str]:
    """Run the body, which must be interrupted; return the steps that it made."""
    steps: list[str] = []

    def run() -> None:
        with interrupted_between_edits() as obey:
            body(steps, obey)

    with pytest.raises(KeyboardInterrupt):
        run()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return steps


def _once(steps: list[str], obey: Callable[[], None]) -> None:
    obey()
    signal.raise_signal(signal.SIGINT)
    steps.append("waits")


def _obeys(steps: list[str], obey: Callable[[], None]) -> None:
    _once(steps, obey)
    obey()
    steps.append("goes on")


def _twice(steps: list[str], obey: Callable[[], None]) -> None:
    _once(steps, obey)
    signal.raise_signal(signal.SIGINT)
    steps.append("goes on")


@pytest.mark.usefixtures("default")
@pytest.mark.parametrize("body", [_once, _obeys, _twice])
def test_a_signal_waits_for_the_program_to_obey_or_for_the_next_one(
    body: Steps, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interrupts, "may_stop", lambda frame: False)
    monkeypatch.setattr(interrupts, "_RETRY", 60)
    assert interrupted(body) == ["waits"]


@pytest.mark.usefixtures("default")
def test_where_the_program_may_stop_a_signal_is_raised_at_once() -> None:
    assert interrupted(_once) == []


def test_a_signal_that_waits_is_tried_again_until_it_is_obeyed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started: list[tuple[Callable[[int], None], tuple[int]]] = []
    sent: list[int] = []
    of_threads = SimpleNamespace(
        start_new_thread=lambda *call: started.append(call), interrupt_main=sent.append
    )
    stops = [False]
    monkeypatch.setattr(interrupts, "_thread", of_threads)
    monkeypatch.setattr(interrupts, "time", SimpleNamespace(sleep=lambda seconds: None))
    monkeypatch.setattr(interrupts, "may_stop", lambda frame: stops[0])

    handler = interrupts._Handler()
    for tried in (1, 2, 3):
        handler(signal.SIGINT, None)
        retry, arguments = started[-1]
        retry(*arguments)
        assert (len(started), sent) == (tried, [signal.SIGINT] * tried)
    stops[0] = True
    with pytest.raises(KeyboardInterrupt):
        handler(signal.SIGINT, None)
    retry(*arguments)
    handler.obey()
    assert len(sent) == 3

    stops[0] = False
    handler(signal.SIGINT, None)
    retry(*arguments)
    with pytest.raises(KeyboardInterrupt):
        handler.obey()
    stops[0] = True
    handler(signal.SIGINT, None)  # the last try comes late
    with pytest.raises(KeyboardInterrupt):
        handler(signal.SIGINT, None)


def test_a_handler_of_the_program_stays() -> None:
    def own(number: int, frame: FrameType | None) -> None:
        """Of the program."""

    before = signal.signal(signal.SIGINT, own)
    try:
        with interrupted_between_edits() as obey:
            assert signal.getsignal(signal.SIGINT) is own
            obey()
    finally:
        signal.signal(signal.SIGINT, before)


def test_another_thread_has_no_handler() -> None:
    found: list[object] = []

    def run() -> None:
        with interrupted_between_edits() as obey:
            found.append(obey())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [None]
