import io
import json
import sys
from types import SimpleNamespace

import pytest

from tiered.cli.output import terminal


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_invisible_characters_are_escaped_and_others_are_not() -> None:
    assert terminal.printable("Grüße/層 1") == "Grüße/層 1"
    assert terminal.printable("a\n\t\x1b]0;x\x07\u202e\udc80") == r"a\n\t\x1b]0;x\x07\u202e\udc80"


def test_a_pipe_gets_wide_rows_and_no_colours(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    terminal.results().print("x" * 300)
    assert capsys.readouterr().out == "x" * 300 + "\n"


def test_json_is_ascii_and_parses(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.print_json({"name": "層\udc80"})
    text = capsys.readouterr().out
    assert text.isascii()
    assert json.loads(text) == {"name": "層\udc80"}


def test_progress_is_shown_on_a_terminal_when_the_work_is_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shown = _progress_of_long_work(monkeypatch, Terminal())
    assert "fold_constant" in shown


@pytest.mark.parametrize("enabled", [True, False])
def test_progress_is_silent_in_a_pipe_and_when_not_wanted(
    monkeypatch: pytest.MonkeyPatch, enabled: bool
) -> None:
    stream = io.StringIO() if enabled else Terminal()
    assert _progress_of_long_work(monkeypatch, stream, enabled=enabled) == ""


def test_progress_is_silent_when_the_work_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with terminal.Progress() as progress:
        progress.say("reading")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("columns", "is_terminal", "is_wide"),
    [(None, False, True), ("70", False, False), (None, True, False)],
)
def test_results_in_a_pipe_are_as_wide_as_needed(
    monkeypatch: pytest.MonkeyPatch, columns: str | None, is_terminal: bool, is_wide: bool
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setattr(sys, "stdout", Terminal() if is_terminal else io.StringIO())
    assert (terminal.results().width == terminal.PIPE_WIDTH) is is_wide


def test_what_is_done_now_is_shown_from_then_on() -> None:
    seen: list[str] = []
    progress = terminal.Progress(enabled=False)
    progress.say("before")
    progress._status = SimpleNamespace(update=seen.append)  # type: ignore[assignment]  # a stand-in
    progress.say("now")
    assert seen == ["now"]


def test_streams_that_are_closed_are_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    monkeypatch.setattr(sys, "stdout", None)
    terminal.results().print("x")
    terminal.notes().print("x")
    terminal.print_json({})
    with terminal.Progress() as progress:
        progress.say("reading")


def _progress_of_long_work(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, *, enabled: bool = True
) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(terminal, "LONG_WORK", 0.05)
    monkeypatch.setenv("TERM", "xterm")
    with terminal.Progress(enabled=enabled) as progress:
        progress.say("fold_constant")
        if progress._timer.is_alive():
            progress._timer.join()
    return stream.getvalue()
