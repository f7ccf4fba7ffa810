"""Examples in help, and completion."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tiered import pass_names
from tiered.cli.app import app
from tiered.cli.examples import COMMANDS, EXAMPLES, FIRST
from tiered.cli.foreign import with_command
from tiered.cli.optional_values import complete

LINES = [line for lines in (FIRST, *EXAMPLES.values()) for line in lines]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_each_help_has_examples(cli: Cli, command: str) -> None:
    shown = cli(*([command] if command else []), "--help").out
    for line in EXAMPLES[command] if command else FIRST:
        assert f"\n  {line}\n" in shown
    assert "Exit codes: " in shown
    assert "what was asked for cannot be done" in " ".join(shown.split()) or command == "batch"


@pytest.mark.parametrize("command", COMMANDS)
def test_paragraphs_of_help_are_wrapped_by_the_terminal(command: str) -> None:
    said = app[command].help
    assert said
    assert "\n" not in said.replace("\n\n", "")
    assert "Args:" not in said


@pytest.mark.parametrize("line", LINES)
def test_an_example_parses(line: str) -> None:
    program, *tokens = shlex.split(line.partition(" > ")[0])
    assert program == "tiered"
    tokens = complete(with_command(tokens, COMMANDS))
    app.parse_args(tokens, exit_on_error=False, print_error=False)


def completed(cli: Cli, *words: str) -> list[str]:
    lines = cli("__complete", *words).out.splitlines()
    return [line.partition("\t")[0] for line in lines[lines.index("\x1fbegin") + 1 :]]


@pytest.mark.parametrize(
    "words",
    [
        ("passes", "fuse_g"),
        ("explain", "m.onnx", "fuse_g"),
        ("optimize", "m.onnx", "--disable", "fuse_g"),
        ("optimize", "m.onnx", "--require", ""),
        ("bisect", "m.onnx", "--passes", "fuse_g"),
    ],
)
def test_names_of_passes_are_completed(cli: Cli, words: tuple[str, ...]) -> None:
    assert completed(cli, *words) == list(pass_names())


def test_names_behind_a_comma_are_completed(cli: Cli) -> None:
    found = completed(cli, "optimize", "m.onnx", "--disable", "inline,fuse_g")
    assert found == [f"inline,{name}" for name in pass_names()]


def test_backends_and_operators_are_completed(cli: Cli) -> None:
    assert "onnxruntime_cpu" in completed(cli, "check", "m.onnx", "--backend", "")
    assert {"Conv", "com.microsoft::FusedMatMul"} <= {*completed(cli, "passes", "--op", "C")}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "powershell"])
def test_each_shell_has_a_script(cli: Cli, shell: str, tmp_path: Path) -> None:
    ended = cli("completion", shell)
    assert (ended.code, ended.err) == (0, "")
    assert re.search(r"\b__complete\b", ended.out)
    assert "optimize" in ended.out
    if shell == "bash":
        script = tmp_path / "tiered"
        script.write_text(ended.out)
        subprocess.run(["bash", "-n", script], check=True)


def test_an_unknown_shell_is_a_usage_error(cli: Cli) -> None:
    ended = cli("completion", "tcsh")
    assert (ended.code, "bash" in ended.err) == (2, True)
