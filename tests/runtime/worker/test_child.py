"""A process that answers frames: how it is started, bounded and ended, and what its end means."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from tiered.runtime.worker import child
from tiered.runtime.worker.child import Child, Ended
from tiered.runtime.worker.limits import OUT_OF_MEMORY
from tiered.support.errors import Crashed, HelperError, OutOfMemory, TimedOut

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the processes are of a shell")
Start = Callable[..., Child]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start a command of a shell instead of a server; `cat` answers with its requests."""
    made: list[Child] = []
    monkeypatch.setattr(child, "PYTHON", ("sh", "-c"))

    def start(command: str = "exec cat", *, group: bool = False) -> Child:
        made.append(Child(command, group=group))
        return made[-1]

    yield start
    for each in made:
        each.end()


def ended(given: Child, seconds: float | None = 20) -> Ended:
    with pytest.raises(Ended) as found:
        given.exchange({"do": "run"}, [], seconds)
    return found.value


def test_requests_are_answered(started: Start) -> None:
    given = started()
    assert given.is_alive
    assert given.exchange({"do": "run"}, [b"ab"], 20) == ({"do": "run"}, [bytearray(b"ab")])
    assert given.exchange({"more": 1}, [], None) == ({"more": 1}, [])
    given.end()
    assert given.process.poll() is not None
    given.end()


def test_the_first_frame_is_the_greeting(started: Start) -> None:
    body = '[{"done": 7}, []]'
    given = started(f"printf '\\{len(body):03o}\\0\\0\\0\\0\\0\\0\\0%s' '{body}'; exec cat")
    assert not given.is_ready
    assert given.greet() == 7
    assert given.is_ready


def test_a_process_that_does_not_greet_cannot_start(started: Start) -> None:
    given = started("echo no module >&2; exit 3")
    with pytest.raises(HelperError) as failed:
        given.greet()
    text = str(failed.value)
    assert text.startswith("the process that runs models cannot start: the runtime crashed while ")
    assert "starting (exit code 3); its last words: no module" in text
    assert text.endswith("sys.executable must be a Python that can import tiered and onnxruntime")
    assert not given.is_ready


def test_a_command_that_is_not_there_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child, "PYTHON", ("/nowhere/python",))
    with pytest.raises(HelperError, match="No such file or directory"):
        Child("a.server")


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("exit 1", "the runtime crashed while running it (exit code 1)"),
        ("kill -SEGV $$", "the runtime crashed while running it (SIGSEGV)"),
        (
            "kill -KILL $$",
            "the runtime crashed while running it (SIGKILL, perhaps out of memory)",
        ),
        (
            "printf 'a\\n  b\\n' >&2; exit 2",
            "the runtime crashed while running it (exit code 2); its last words: a b",
        ),
    ],
)
def test_a_process_that_ends_has_crashed(started: Start, command: str, message: str) -> None:
    failure = ended(started(command)).failure("running it", 5, None)
    assert type(failure) is Crashed
    assert str(failure) == message


def test_another_kind_of_server_is_named(started: Start) -> None:
    failure = ended(started("exit 1")).failure("checking it", None, None, "the checker")
    assert str(failure) == "the checker crashed while checking it (exit code 1)"


def test_the_code_of_too_much_memory_is_known(started: Start) -> None:
    end = ended(started(f"exit {OUT_OF_MEMORY}"))
    for memory, size in ((None, "its limit"), (3 * 2**29, "1.5 GiB")):
        failure = end.failure("running it", 5, memory)
        assert type(failure) is OutOfMemory
        assert str(failure) == f"running it took more memory than {size} and was stopped"


@pytest.mark.parametrize("group", [False, True])
def test_a_process_that_takes_too_long_is_stopped(started: Start, group: bool) -> None:
    given = started("exec sleep 600", group=group)
    failure = ended(given, 0.05).failure("running it", 0.05, None)
    assert type(failure) is TimedOut
    assert str(failure) == "running it took more than 0.05 s and was stopped"
    assert not given.is_alive


def test_a_process_that_answered_in_time_is_left_alone(
    started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    timers: list[tuple[str, float]] = []

    class Timer:
        daemon = False

        def __init__(self, seconds: float, _stop: Callable[[], None]) -> None:
            self.seconds = seconds

        def start(self) -> None:
            assert self.daemon
            timers.append(("start", self.seconds))

        def cancel(self) -> None:
            timers.append(("cancel", self.seconds))

    monkeypatch.setattr(threading, "Timer", Timer)
    given = started()
    given.exchange({}, [], 5)
    given.exchange({}, [], None)
    assert timers == [("start", 5), ("cancel", 5)]


def test_a_group_ends_as_a_whole(started: Start) -> None:
    """The second process holds the end of the pipe: only without it the answers end."""
    given = started("sleep 600 & wait", group=True)
    given.kill()
    assert ended(given)._code == -signal.SIGKILL


def test_a_process_that_ignores_the_end_of_its_input_is_killed(
    started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert started("cat; exit 4").wait() == 4
    monkeypatch.setattr(child, "_END_SECONDS", 0.05)
    given = started("exec sleep 600")

    def kill() -> None:
        given.process.kill()
        given.process.wait()

    monkeypatch.setattr(given, "kill", kill)
    assert given.wait() == -signal.SIGKILL


def test_the_last_words_are_the_end_in_one_line(started: Start) -> None:
    given = started("printf '%04d ' $(seq 1000) >&2")
    given.wait()
    words = given.last_words()
    assert words.startswith("... ")
    assert words.endswith("0999 1000")
    assert len(words) == 604
    short = started(f"printf '%s' {'b' * 600} >&2")
    short.wait()
    assert short.last_words() == "b" * 600
    silent = started("true")
    silent.wait()
    assert silent.last_words() == ""


def test_a_fork_has_no_process_of_its_own(started: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    given = started()
    with monkeypatch.context() as patch:
        patch.setattr(os, "getpid", lambda: given._owner + 1)
        assert not given.is_alive
    assert given.is_alive


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (None, "it does not end"), (0, "exit code 0"), (255, "exit code 255"),
        (256, "exit code 0x100"), (0xC0000005, "exit code 0xc0000005"), (-6, "SIGABRT"),
        (-9, "SIGKILL, perhaps out of memory"), (-99, "exit code -99"),
    ],
)  # fmt: skip
def test_ends_have_reasons(code: int | None, text: str) -> None:
    assert child._reason(code) == text


def test_what_python_needs_comes_first_on_the_path(
    started: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = os.path.dirname(os.__file__)
    monkeypatch.setattr(sys, "path", ["", "/a", own, "/b"])
    given = started('printf %s "$PYTHONPATH" >&2')
    given.wait()
    assert given.last_words() == f"{own}:/a:/b"
