import platform
import re
import sys
from pathlib import Path

import onnxruntime
import pytest

from tests.cli.conftest import Cli
from tests.saturation import products_that
from tiered import __version__
from tiered.cli import command_run
from tiered.cli.commands import command_names, optimize as command
from tiered.cli.version import processor
from tiered.cli.watch import KINDS
from tiered.runtime.byte_products import ByteProducts
from tiered.runtime.worker.client import Worker
from tiered.support import errors


@pytest.mark.parametrize(
    ("tokens", "hint"),
    [
        (["optimze", "a"], 'Did you mean "optimize"?'),
        (["optimize"], "MODEL"),
        (["optimize", "a", "b", "--verif"], "--verify"),
        (["optimize", "a", "b", "-O"], "-O"),
        (["optimize", "a", "b", "-O", "high"], "high"),
        (["optimize", "a", "b", "-O1", "-O2"], "-O"),
        (["inspect"], "MODEL"),
        (["passes", "a", "b"], "b"),
    ],
)
def test_what_does_not_parse_is_a_usage_error_with_a_hint(
    cli: Cli, tokens: list[str], hint: str
) -> None:
    ended = cli(*tokens)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("tiered: error: ")
    assert ended.err.count("\n") == 1
    assert hint in ended.err
    assert "--help` shows" in ended.err


@pytest.mark.parametrize("tokens", [["--help"], ["-h"], [], ["optimize", "--help"]])
def test_help_is_a_result(cli: Cli, tokens: list[str]) -> None:
    ended = cli(*tokens)
    assert (ended.code, ended.err) == (0, "")
    assert "Usage: tiered" in ended.out


def test_help_names_every_option_of_optimize(cli: Cli) -> None:
    shown = cli("optimize", "--help").out
    for option in (
        *("-o", "-O", "-q", "-v", "--output", "--opt-level", "--quiet", "--verbose", "--disable"),
        *("--require", "--passes", "--verify", "--dry-run", "--json", "--annotate", "--strict"),
    ):
        assert option in shown
    assert "--no-" not in shown


def test_help_names_every_kind_of_remark(cli: Cli) -> None:
    shown = re.sub(r"\s", "", cli("optimize", "--help").out)
    assert f"={','.join(KINDS)}." in shown


@pytest.mark.parametrize("command", command_names())
def test_help_names_no_option_that_empties_a_list(cli: Cli, command: str) -> None:
    assert "--empty-" not in cli(command, "--help").out


def test_help_names_the_exit_codes(cli: Cli) -> None:
    shown = " ".join(cli("--help").out.split())
    assert "3 verification failed" in shown
    assert "130 interrupted" in shown


def test_the_version_is_printed(cli: Cli) -> None:
    assert cli("--version").out == f"tiered {__version__}\n"


@pytest.mark.parametrize("tokens", [("--version", "-v"), ("--verbose", "--version")])
@pytest.mark.parametrize(
    ("answer", "says"), [("exact", "exact"), ("saturate", "saturate (no VNNI)")]
)
def test_the_version_in_detail_names_the_processor(
    cli: Cli, tokens: tuple[str, ...], answer: ByteProducts, says: str
) -> None:
    with products_that(answer):
        lines = cli(*tokens).out.splitlines()
    assert lines[0] == f"tiered {__version__}"
    assert f"onnxruntime {onnxruntime.__version__}" in lines
    assert lines[-2:] == [f"processor: {processor()}", f"8-bit products: {says}"]


def test_the_version_alone_runs_nothing(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(Worker, "open")
    assert cli("--version").code == 0


@pytest.mark.parametrize(
    ("facts", "elsewhere", "machine", "name"),
    [
        ("processor: 0\nmodel name\t: Chip 7\n", "", "x86_64", "Chip 7 (x86_64)"),
        (None, "Chip 8", "AMD64", "Chip 8 (AMD64)"),
        ("Features: dot\n", "", "aarch64", "aarch64"),
        (None, "arm", "arm", "arm"),
        (None, "", "", "unknown"),
    ],
)
def test_the_processor_has_the_name_that_the_system_has(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    facts: str | None,
    elsewhere: str,
    machine: str,
    name: str,
) -> None:
    file = tmp_path / "cpuinfo"
    if facts is not None:
        file.write_text(facts)
    monkeypatch.setattr("tiered.support.processor._FACTS", file)
    monkeypatch.setattr(platform, "processor", lambda: elsewhere)
    monkeypatch.setattr(platform, "machine", lambda: machine)
    assert processor() == name


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.ModelError("found"), 1),
        (errors.RuntimeFailure("found"), 1),
        (MemoryError("found"), 1),
        (RecursionError("found"), 1),
        (OSError(28, "No space left on device"), 1),
        (errors.UsageError("found"), 2),
        (errors.VerificationError("found"), 3),
        (errors.TargetError("found"), 4),
        (errors.PassError("found"), 5),
        (ZeroDivisionError("found"), 5),
        (KeyboardInterrupt(), 130),
        (BrokenPipeError(), 0),
    ],
)
def test_every_way_to_end_has_its_exit_code(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(command, "run_prepared", fail)
    ended = cli("optimize", "m.onnx", "out.onnx")
    assert (ended.code, ended.out) == (code, "")
    assert "Traceback" not in ended.err
    if code in (1, 3, 4, 5):
        assert ended.err.startswith("tiered: error: m.onnx: ")


def test_a_bug_shows_where_it_happened_only_with_v(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise AssertionError("broken promise")

    monkeypatch.setattr(command, "run_prepared", fail)
    plain = cli("optimize", "m.onnx", "out.onnx")
    assert plain.err.count("\n") == 1
    assert "bug in tiered" in plain.err
    assert "report it" in plain.err
    told = cli("optimize", "m.onnx", "out.onnx", "-v")
    assert told.code == 5
    assert "Traceback" in told.err
    assert "test_app.py" in told.err


def test_an_interrupt_is_said_in_one_line(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "run_prepared", fail)
    assert cli("optimize", "m.onnx", "out.onnx").err == "tiered: interrupted\n"


def test_an_error_keeps_its_exit_code_when_stderr_is_closed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    class Closed:
        encoding = "utf-8"

        def write(self, text: str) -> int:
            raise BrokenPipeError

        def flush(self) -> None:
            raise BrokenPipeError

        def isatty(self) -> bool:
            return False

        def fileno(self) -> int:
            raise OSError

    monkeypatch.setattr(sys, "stderr", Closed())
    assert command_run.run(["inspect", str(tmp_path / "none.onnx")]) == (1, False)
