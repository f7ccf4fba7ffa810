"""Examples in help, and completion."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_main import environment
from tiered import pass_names
from tiered.cli.commands import command_in, command_names, load_command, summary_of
from tiered.cli.line.foreign import from_others
from tiered.cli.line.help import FIRST, _lines, help_of
from tiered.cli.line.reader import read
from tiered.cli.line.word_completion import SCRIPTS

BELOW = [name for each in command_names() for name in command_names(each)]
COMMANDS = (*command_names(), *BELOW)
EXAMPLES = {name: load_command(name).examples for name in COMMANDS}
LINES = [line for lines in (FIRST, *EXAMPLES.values()) for line in lines]


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_each_help_has_examples(cli: Cli, command: str) -> None:
    shown = cli(*command.split(), "--help").out
    for line in EXAMPLES[command] if command else FIRST:
        assert f"\n  {line}\n" in shown
    assert "Exit codes: " in shown
    assert "what was asked for cannot be done" in " ".join(shown.split()) or "batch" in command


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_says_what_it_does_in_its_first_line(cli: Cli, command: str) -> None:
    assert summary_of(command) == load_command(command).doc.partition("\n")[0]
    assert " ".join(cli(command.split(maxsplit=1)[0], "--help").out.split()).count("Args:") == 0


@pytest.mark.parametrize("command", COMMANDS)
def test_each_argument_and_option_has_a_line_of_help(command: str) -> None:
    arguments, options = load_command(command).described()
    assert [each.names[0] for each in (*arguments, *options) if not each.option.doc] == []


@pytest.mark.parametrize("command", COMMANDS)
def test_no_flag_stands_for_two_options(command: str) -> None:
    options = load_command(command).options
    flags = [flag for each in options for flag in (*each.names, each.off) if flag]
    assert len(flags) == len({*flags})
    assert len(options) == len({each.key for each in options})


def test_the_first_line_names_the_arguments_and_a_table_has_rows_without_text() -> None:
    usage = {name: help_of(name).partition("\n")[0] for name in ("batch", "optimize", "bench")}
    assert usage == {
        "batch": "Usage: tiered batch [COMMAND] [OPTIONS] [SOURCE...]",
        "optimize": "Usage: tiered optimize [OPTIONS] MODEL [OUT] [MORE...]",
        "bench": "Usage: tiered bench [OPTIONS] A [B...]",
    }
    assert list(_lines([("--a", ""), ("--bc", "a text")])) == ["  --a", "  --bc  a text"]


@pytest.mark.parametrize("line", LINES)
def test_an_example_parses(line: str) -> None:
    program, *tokens = shlex.split(line.partition(" > ")[0])
    assert program == "tiered"
    found = command_in(from_others(tokens, command_names()))
    assert found is not None
    read(*found)


def completed(cli: Cli, *words: str) -> list[str]:
    lines = cli("__complete", *words).out.splitlines()
    return [line.partition("\t")[0] for line in lines]


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
    if shell == "bash":
        script = tmp_path / "tiered"
        script.write_text(ended.out)
        subprocess.run(["bash", "-n", script], check=True)


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["opti"], ["optimize", "options"]),
        (["optimize", "m.onnx", "--external"], ["--external-data"]),
        (["convert", "m.onnx", "--order", "s"], ["sensitivity"]),
        (["convert", "m.onnx", "--order", "=", "s"], ["sensitivity"]),
        (["batch", "q"], ["quantize"]),
    ],
)
def test_bash_completes(tmp_path: Path, words: list[str], found: list[str]) -> None:
    script = tmp_path / "script"
    quoted = " ".join(map(shlex.quote, ("tiered", *words)))
    script.write_text(
        f'{SCRIPTS["bash"]}\ntiered() {{ {shlex.quote(sys.executable)} -m tiered "$@"; }}\n'
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}; _tiered\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    ended = subprocess.run(
        ["bash", script], capture_output=True, text=True, env=environment(), check=True
    )
    assert ended.stdout.split() == found


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ([], "optimize"),
        (["optimize", "--remarks", "--ver"], "--verify"),
        (["memory", "m.onnx", "--no"], "--no-in-place"),
        (["convert", "m.onnx", "--order=e"], "--order=error"),
        (["completion", ""], "fish"),
    ],
)
def test_candidates_are_commands_flags_and_values(cli: Cli, words: list[str], found: str) -> None:
    assert found in completed(cli, *words)


def test_words_without_candidates_have_none(cli: Cli) -> None:
    assert completed(cli, "optimize", "m") == []
    assert completed(cli, "optimize", "m.onnx", "--limit", "") == []


def test_an_unknown_shell_is_a_usage_error(cli: Cli) -> None:
    ended = cli("completion", "tcsh")
    assert (ended.code, "bash" in ended.err) == (2, True)
