"""What the README and the tour show is what happens: commands and programs run."""

import re
import shlex
from pathlib import Path

import pytest

from docs import readme
from tests.cli.conftest import Cli

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
TEXT = README + (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")

PROGRAMS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
QUOTED = re.findall(r"^```python file=(\S+)\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
CONSOLE = "".join(re.findall(r"^```console\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL))
COMMANDS = list(dict.fromkeys(re.findall(r"^\$ tiered (.*)\n(.*)", CONSOLE, re.MULTILINE)))
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


@pytest.mark.parametrize("program", list(dict.fromkeys(PROGRAMS)))
def test_a_program_runs(program: str) -> None:
    exec(compile(program, "README.md", "exec"), {})


@pytest.mark.parametrize(("file", "source"), QUOTED)
def test_quoted_source_is_the_files(file: str, source: str) -> None:
    assert source == (ROOT / file).read_text(encoding="utf-8")


def test_the_numbers_are_those_of_a_run_and_of_the_tables() -> None:
    found = readme.numbers()
    for name in readme.PAGES:
        page = (ROOT / name).read_text(encoding="utf-8")
        assert readme.written(page, found) == page, "run `python -m docs.readme`"
    assert all(re.search(pattern, README, re.MULTILINE) for pattern, _ in found)


def test_the_chart_is_that_of_the_table() -> None:
    assert (ROOT / readme.CHART).read_text(encoding="utf-8") == readme.chart()


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 130
    head = README.partition("## Install")[0]
    assert "% of the nodes" in head
    assert f"]({readme.CHART})" in head


def _without_numbers(text: str) -> str:
    """Return the text without what differs from run to run and grows with the project."""
    return re.sub(r"[\d.,]+ ?(?:ms|s)?\b", "#", text)
