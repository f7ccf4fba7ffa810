"""`tiered diff A B`: tables, JSON, a page, and the exit code."""

import json
import tempfile
import webbrowser
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import Cli


@pytest.fixture
def other(cli: Cli, small: Path) -> Path:
    path = small.with_name("other.onnx")
    assert cli("optimize", small, path).code == 0
    return path


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("diff")


def test_the_tables_say_what_changed(cli: Cli, small: Path, other: Path) -> None:
    ended = cli("diff", small, other)
    assert (ended.code, ended.err) == (0, "")
    for text in ("metadata tiered.source", "Operators", "Constants: 1 removed", "unused", "Nodes",
                 "Identity", "in both: "):  # fmt: skip
        assert text in ended.out
    assert ended.out.splitlines()[-1].startswith(f"{small} and {other} differ in ")


def test_the_same_model_is_said_to_be_the_same(cli: Cli, small: Path) -> None:
    ended = cli("diff", small, small, "--exit-code")
    assert (ended.code, ended.out) == (0, f"{small} and {small} are the same\n")


def test_the_exit_code_is_for_scripts(cli: Cli, small: Path, other: Path) -> None:
    ended = cli("diff", small, other, "--exit-code")
    assert ended.code == 4
    assert "differ in" in ended.err
    model = onnx.load(small)
    model.producer_name = "other"
    onnx.save(model, other)
    assert cli("diff", small, other, "--exit-code").code == 4
    assert cli("diff", small, other, "--exit-code", "--ignore", "properties,names").code == 0
    wrong = cli("diff", small, other, "--exit-code", "--ignore", "name")
    assert wrong.code == 2
    assert "did you mean 'names'" in wrong.err


def test_json_is_one_object(cli: Cli, small: Path, other: Path) -> None:
    found = json.loads(cli("diff", small, other, "--json").out)
    assert found["files"] == [str(small), str(other)]
    assert found["before"]["nodes"] > found["after"]["nodes"]
    assert [each["what"] for each in found["tensors"]] == [["removed"]]


def test_a_page_has_the_places(cli: Cli, small: Path, other: Path, tmp_path: Path) -> None:
    page = tmp_path / "diff.html"
    assert cli("diff", small, other, "--html", page).code == 0
    text = page.read_text(encoding="utf-8")
    assert "tiered diff small.onnx other.onnx" in text
    assert str(tmp_path) not in text
    assert cli("diff", small, other, "--html", tmp_path / "diff.onnx").code == 2


def test_view_opens_the_page_of_two(
    cli: Cli, small: Path, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(small.parent))  # nothing is left behind
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    ended = cli("view", small, other)
    assert ended.code == 0, ended.err
    (address,) = opened
    assert address in ended.out
    assert "tiered diff" in Path(address.removeprefix("file://")).read_text(encoding="utf-8")
    assert cli("view", small, other, "--no-browser").code == 0
    assert len(opened) == 1


def test_a_file_that_is_not_there_is_an_error(cli: Cli, small: Path) -> None:
    assert cli("diff", small, small.with_name("absent.onnx")).code == 1
