"""The limit of time of a pass: a timer of the main thread, which raises between two edits."""

import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tests.small import parsed
from tiered import Model, PassContext, PassInfo, get_pass
from tiered.extensions.debug.time_limit import TimeLimit

NODE = get_pass("eliminate_identity").info
PIPELINE = PassInfo(name="all", opt_level=None, kind="pipeline")


@pytest.fixture
def model() -> Model:
    return parsed("(float[2] x) => (float[2] y) { y = Relu(x) }")


@pytest.fixture(autouse=True)
def _no_timer() -> Iterator[None]:
    before = signal.getsignal(signal.SIGALRM)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def is_ticking() -> bool:
    return signal.getitimer(signal.ITIMER_REAL)[0] > 0


def limited(seconds: float) -> PassContext:
    return PassContext(config={"verify.seconds": seconds})


def test_a_timer_ticks_while_a_pass_runs(model: Model) -> None:
    before, limit = signal.getsignal(signal.SIGALRM), TimeLimit()
    with limited(1000.0):
        limit.run_before_pass(model, NODE)
        left, again = signal.getitimer(signal.ITIMER_REAL)
        assert 900 < left <= 1000
        assert 999 < again < 1001
        limit.run_after_pass(model, NODE)
    assert not is_ticking()
    assert signal.getsignal(signal.SIGALRM) == before


def test_a_failed_pass_stops_it_too_and_so_does_the_end_of_the_context(model: Model) -> None:
    limit = TimeLimit()
    with limited(1000.0):
        limit.run_before_pass(model, NODE)
        limit.run_after_pass_failed(model, NODE, ValueError("no"))
        assert not is_ticking()
        limit.run_before_pass(model, NODE)
        limit.exit_pass_ctx()
        assert not is_ticking()
        limit.run_before_pass(model, NODE)
        assert is_ticking()


def test_a_pass_inside_of_a_pass_has_the_timer_of_the_outer_one(model: Model) -> None:
    limit = TimeLimit()
    with limited(1000.0):
        limit.run_before_pass(model, NODE)
        limit.run_before_pass(model, NODE)
        limit.run_after_pass(model, NODE)
        assert is_ticking()
        limit.run_after_pass(model, NODE)
        assert not is_ticking()


def test_a_pipeline_has_no_limit(model: Model) -> None:
    limit = TimeLimit()
    with limited(1000.0):
        limit.run_before_pass(model, PIPELINE)
        assert not is_ticking()
        limit.run_before_pass(model, NODE)
        limit.run_after_pass(model, PIPELINE)
        assert is_ticking()


@pytest.mark.parametrize(("seconds", "ticks"), [(0.0, False), (1e8, False), (9e7, True)])
def test_no_time_and_very_long_ones_are_no_limit(
    model: Model, seconds: float, *, ticks: bool
) -> None:
    with limited(seconds):
        TimeLimit().run_before_pass(model, NODE)
        assert is_ticking() == ticks


def test_another_thread_has_none(model: Model) -> None:
    found: list[bool] = []

    def run() -> None:
        with limited(1000.0):
            TimeLimit().run_before_pass(model, NODE)
            found.append(is_ticking())

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [False]


def test_an_alarm_of_the_program_stays(model: Model) -> None:
    signal.signal(signal.SIGALRM, signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 500)
    limit = TimeLimit()
    with limited(1000.0):
        limit.run_before_pass(model, NODE)
        assert 400 < signal.getitimer(signal.ITIMER_REAL)[0] <= 500
        limit.run_after_pass(model, NODE)
    assert is_ticking()
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_IGN


def test_the_alarm_raises_where_a_pass_may_stop(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit, asked = TimeLimit(), [False, True]
    monkeypatch.setattr("tiered.extensions.debug.time_limit.may_stop", lambda frame: asked.pop(0))
    with limited(1000.0):
        limit.run_before_pass(model, NODE)
        handler: Any = signal.getsignal(signal.SIGALRM)
        handler(signal.SIGALRM, None)  # an edit is under way: it comes again soon
        left, again = signal.getitimer(signal.ITIMER_REAL)
        signal.setitimer(signal.ITIMER_REAL, 1000.0, 1000.0)
        assert left <= 0.0005
        assert again > 999
        with pytest.raises(TimeoutError, match=r"it ran for more than 1000 s; .*verify.seconds"):
            handler(signal.SIGALRM, None)
        limit.run_after_pass(model, NODE)
        handler(signal.SIGALRM, None)  # too late: nothing runs any more


def test_a_system_without_timers_sets_no_limit(
    model: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_timer = signal.setitimer
    monkeypatch.delattr(signal, "setitimer")
    limit = TimeLimit()
    with limited(1000.0):
        limit.run_before_pass(model, NODE)
        assert not is_ticking()
        limit.run_after_pass(model, NODE)
    monkeypatch.setattr(signal, "setitimer", set_timer, raising=False)
