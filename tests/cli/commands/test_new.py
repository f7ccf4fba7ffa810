"""`tiered new`: a pass that does nothing yet, and its test, which fails."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.house.tree import PACKAGE, PASS_FOLDERS, ROOT


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return the folders of a checkout, without the passes."""
    for folder in PASS_FOLDERS:
        (tmp_path / "tiered" / folder).mkdir(parents=True)
    (tmp_path / "tests").mkdir()
    return tmp_path


def test_all_that_is_printed(transcript: Callable[[str], None]) -> None:
    transcript("new")


@pytest.mark.parametrize("kind", ["rewrite", "function", "module"])
def test_the_pass_loads_and_its_test_fails(tmp_path: Path, cli: Cli, kind: str) -> None:
    copied = tmp_path / "tiered"
    shutil.copytree(PACKAGE, copied)
    (tmp_path / "tests").mkdir()
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    ended = cli("new", "identity/fuse_nothing", "--kind", kind, "--root", tmp_path)
    assert (ended.code, ended.err) == (0, "")
    shown = subprocess.run(
        [sys.executable, "-m", "tiered", "passes", "fuse_nothing"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "opt-in" in shown.stdout
    tested = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert tested.returncode == 1, tested.stdout
    assert "fuse_nothing did nothing" in tested.stdout
    failed = "1 failed, 1 passed" if kind == "rewrite" else "1 failed"
    assert failed in tested.stdout


def test_it_says_what_it_wrote_and_what_comes_next(checkout: Path, cli: Cli) -> None:
    ended = cli("new", "shape/fuse_nothing", "--root", checkout)
    lines = ended.out.splitlines()
    written = [line.removeprefix("wrote ") for line in lines if line.startswith("wrote ")]
    assert [Path(file).relative_to(checkout).as_posix() for file in written] == [
        "tiered/function_passes/shape/fuse_nothing.py",
        "tests/function_passes/shape/test_fuse_nothing.py",
        "tiered/function_passes/shape/__init__.py",
    ]
    assert all(Path(file).is_file() for file in written)
    assert "pipeline/default.py" in ended.out


def test_a_module_pass_goes_to_the_module_passes(checkout: Path, cli: Cli) -> None:
    cli("new", "metadata/remove_nothing", "--kind", "module", "--root", checkout)
    assert (checkout / "tiered/module_passes/metadata/remove_nothing.py").is_file()


def test_nothing_is_overwritten(checkout: Path, cli: Cli) -> None:
    cli("new", "shape/fuse_nothing", "--root", checkout)
    ended = cli("new", "shape/fuse_nothing", "--root", checkout)
    assert ended.code == 2
    assert "already" in ended.err


NOT_PATHS = ["fuse_x", "Shape/fuse_x", "a/b/c", "shape/Fuse", "../x/y", "shape/"]


@pytest.mark.parametrize("path", NOT_PATHS)
def test_a_path_is_a_folder_and_a_name(checkout: Path, cli: Cli, path: str) -> None:
    ended = cli("new", path, "--root", checkout)
    assert ended.code == 2
    assert "is not FOLDER/NAME" in ended.err


def test_a_pass_has_a_name_of_its_own(checkout: Path, cli: Cli) -> None:
    ended = cli("new", "shape/eliminate_identity", "--root", checkout)
    assert ended.code == 2
    assert "there is a pass 'eliminate_identity' already" in ended.err


def test_a_name_without_a_verb_is_noted(checkout: Path, cli: Cli) -> None:
    ended = cli("new", "shape/reshapes", "--root", checkout)
    assert ended.code == 0
    assert "begins with no verb" in ended.err


def test_it_needs_a_checkout(tmp_path: Path, cli: Cli) -> None:
    ended = cli("new", "shape/fuse_nothing", "--root", tmp_path)
    assert ended.code == 2
    assert "is not a checkout of tiered" in ended.err
    assert "examples/third_party_pass" in ended.err
