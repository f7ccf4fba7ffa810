"""The pages that `--html` writes."""

from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.cli.test_optimize import add_to_itself, registered
from tests.pages.reader import read


def test_optimize_writes_a_page(cli: Cli, small: Path, tmp_path: Path) -> None:
    ended = cli("optimize", small, "--dry-run", "--html", tmp_path / "run.html", "--verify")
    assert (ended.code, ended.err) == (0, "")
    page = read((tmp_path / "run.html").read_text(encoding="utf-8"))
    assert "tiered optimize small.onnx" in page.text
    assert "Verification" in page.text
    assert page.data["total"] == 3
    assert str(tmp_path) not in (tmp_path / "run.html").read_text(encoding="utf-8")


def test_without_times_the_page_is_the_same_each_time(
    cli: Cli, small: Path, tmp_path: Path
) -> None:
    for name in ("a.html", "b.html"):
        cli("optimize", small, "--dry-run", "--html", tmp_path / name, "--html-without-times")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_a_run_that_fails_has_a_page_too(
    cli: Cli, small: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run.html"
    run = ("optimize", small, tmp_path / "o.onnx", "--verify", "--html", out)
    with registered(add_to_itself):
        ended = cli(*run, "--passes", "add_to_itself")
    assert ended.code == 3
    assert "The run ended with an error: " in read(out.read_text(encoding="utf-8")).text


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--html", "model.onnx"], 2, "its file ends in .html"),
        (["--html", "absent/run.html"], 1, "no directory 'absent'"),
        (["--html-without-times"], 2, "--html-without-times needs --html FILE"),
    ],
)
def test_wrong_options_are_errors(
    cli: Cli, small: Path, options: list[str], code: int, said: str
) -> None:
    ended = cli("optimize", small, "--dry-run", *options)
    assert ended.code == code
    assert said in ended.err


def test_one_page_is_not_for_several_models(cli: Cli, small: Path, tmp_path: Path) -> None:
    ended = cli("optimize", small, small, "--out-dir", tmp_path / "o", "--html", "a.html")
    assert ended.code == 2
    assert "--html names one file" in ended.err
