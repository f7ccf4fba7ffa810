"""What the README shows is what happens: commands and programs run, quoted source is current."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Cli

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")

PROGRAMS = re.findall(r"^```python\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
QUOTED = re.findall(r"^```python file=(\S+)\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
CONSOLE = "".join(re.findall(r"^```console\n(.*?)^```", README, re.MULTILINE | re.DOTALL))
COMMANDS = re.findall(r"^\$ tiered (.*)\n(.*)", CONSOLE, re.MULTILINE)
"""Each command with the first line that it is said to print."""


@pytest.fixture(autouse=True)
def at_the_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Work where the models are found and nothing of the repository is written."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("command", "shown"), COMMANDS)
def test_a_command_does_what_is_shown(cli: Cli, command: str, shown: str) -> None:
    ended = cli(*shlex.split(command))
    first = (ended.err if shown.startswith("tiered: error") else ended.out).splitlines()[0]
    assert _without_numbers(first) == _without_numbers(shown)


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_runs(program: str) -> None:
    exec(compile(program, "README.md", "exec"), {})


@pytest.mark.parametrize(("file", "source"), QUOTED)
def test_quoted_source_is_the_files(file: str, source: str) -> None:
    assert source == (ROOT / file).read_text(encoding="utf-8")


def _without_numbers(text: str) -> str:
    """Return the text without what differs from run to run and grows with the project."""
    return re.sub(r"[\d.,]+ ?(?:ms|s)?\b", "#", text)
