"""How the process of a command line ends, and what it does with signals and streams."""

import atexit
import io
import signal
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from tiered import cli


class Ended(Exception):
    """The process ended: how, and with which exit code."""


def ends(how: str) -> Any:
    def end(code: int) -> None:
        raise Ended(how, code)

    return end


@pytest.mark.parametrize(
    ("is_own", "changed", "expected"),
    [
        (True, {}, "at once"),
        (False, {}, "as Python does"),
        (True, {"inspect": 1}, "as Python does"),
        (True, {"trace": print}, "as Python does"),
        (True, {"profile": print}, "as Python does"),
        (True, {"threads": 2}, "as Python does"),
    ],
)
def test_a_process_ends_at_once_if_only_code_of_tiered_ran(
    monkeypatch: pytest.MonkeyPatch, is_own: bool, changed: dict[str, Any], expected: str
) -> None:
    seen: list[object] = []
    given = {"inspect": 0, "trace": None, "profile": None, "threads": 1, **changed}

    def run(tokens: list[str]) -> tuple[int, bool]:
        seen.append(tokens)
        return 3, is_own

    monkeypatch.setattr(cli, "_main", run)
    monkeypatch.setattr(cli, "_flush_streams", lambda: seen.append("flushed"))
    monkeypatch.setattr(cli, "gc", SimpleNamespace(disable=lambda: None))
    monkeypatch.setattr(cli, "os", SimpleNamespace(_exit=ends("at once")))
    monkeypatch.setattr(atexit, "_run_exitfuncs", lambda: seen.append("exit functions"))
    monkeypatch.setattr(threading, "active_count", lambda: given["threads"])
    monkeypatch.setattr(cli, "sys", SimpleNamespace(
        argv=["tiered", "optimize", "a"], flags=SimpleNamespace(inspect=given["inspect"]),
        gettrace=lambda: given["trace"], getprofile=lambda: given["profile"],
        exit=ends("as Python does"),
    ))  # fmt: skip
    with pytest.raises(Ended) as ended:
        cli.process()
    assert ended.value.args == (expected, 3)
    last = ["exit functions", "flushed"] if expected == "at once" else []
    assert seen == [["optimize", "a"], *last]


def test_the_words_are_those_of_the_process_unless_others_are_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "argv", ["tiered", "inspect", "b"])
    monkeypatch.setattr(cli, "_main", lambda tokens: (len(tokens), tokens))
    assert (cli.main(), cli.main([]), cli.main(("a", "b", "c"))) == (2, 0, 3)


def test_a_request_to_end_interrupts_the_main_thread_unless_it_is_ignored() -> None:
    found: list[object] = []

    def note() -> None:
        with cli._sigterm_as_interrupt():
            found.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    try:
        for handler in (signal.SIG_DFL, signal.SIG_IGN):
            signal.signal(signal.SIGTERM, handler)
            note()
            thread = threading.Thread(target=note)
            thread.start()
            thread.join()
            assert signal.getsignal(signal.SIGTERM) is handler
    finally:
        signal.signal(signal.SIGTERM, before)
    ignored, default = signal.SIG_IGN, signal.SIG_DFL
    assert found == [signal.default_int_handler, default, ignored, ignored]


def test_closed_streams_are_not_flushed(monkeypatch: pytest.MonkeyPatch) -> None:
    flushed = io.StringIO()
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", flushed)
    cli._flush_streams()
    monkeypatch.setattr(sys, "stderr", None)
    cli._flush_streams()
