"""Which models a batch has, and their names."""

from pathlib import Path

import pytest

from tests.extensions.fleet.conftest import Make
from tiered.extensions.fleet.sources import find_sources
from tiered.support.errors import ModelError, UsageError


def names(*entries: str | Path, out: str | Path = "out") -> list[str]:
    return [source.name for source in find_sources(map(str, entries), str(out))]


def test_a_folder_keeps_its_folders(models: Path, make: Make) -> None:
    make("b/c")
    make("a")
    (models / "notes.txt").write_text("no model")
    (models / ".hidden.onnx").write_text("no model")
    assert names(models) == ["a.onnx", "b/c.onnx"]


def test_the_folder_of_results_is_no_source(models: Path, make: Make) -> None:
    make("a")
    make("out/a")
    assert names(models, out=models / "out") == ["a.onnx"]


def test_names_of_a_glob_are_below_its_first_wildcard(models: Path, make: Make) -> None:
    make("x/1")
    make("x/y/2")
    make("z/3")
    assert names(f"{models}/x/**/*.onnx") == ["1.onnx", "y/2.onnx"]
    assert names(f"{models}/*/?.onnx") == ["x/1.onnx", "z/3.onnx"]


def test_a_list_holds_any_entries(models: Path, make: Make, tmp_path: Path) -> None:
    file = make("x/1")
    make("y/2")
    (tmp_path / "list.txt").write_text(f"# some\n\n{file}\n{models}/y\n")
    assert names(tmp_path / "list.txt") == ["1.onnx", "2.onnx"]


def test_a_list_of_another_editor(make: Make, tmp_path: Path) -> None:
    content = f"\ufeff# some\r\n\r\n  {make('x/1')}  \r\n"
    (tmp_path / "list.txt").write_bytes(content.encode())
    assert names(tmp_path / "list.txt") == ["1.onnx"]
    (tmp_path / "list.txt").write_bytes(content.encode("utf-16"))
    with pytest.raises(ModelError, match=r"list\.txt' is not UTF-8 text"):
        names(tmp_path / "list.txt")


def test_errors_of_a_list_name_the_line(make: Make, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text(f"# some\n{make('a')}\nnone.onnx\n")
    with pytest.raises(ModelError, match=r"line 3 of '.*list\.txt': cannot read 'none\.onnx'"):
        names(tmp_path / "list.txt")
    (tmp_path / "list.txt").write_text("*.none\n")
    with pytest.raises(UsageError, match=r"line 1 of '.*list\.txt': '\*\.none' has no models"):
        names(tmp_path / "list.txt")


def test_a_model_is_taken_once(models: Path, make: Make) -> None:
    assert names(make("a"), models) == ["a.onnx"]


def test_bytes_include_weights_beside(models: Path, make: Make) -> None:
    path = make("a")
    (models / "a.onnx.data").write_bytes(b"12345")
    (source,) = find_sources([str(models)], "out")
    assert source.nbytes == path.stat().st_size + 5


def test_two_models_of_one_name_are_an_error(models: Path, make: Make) -> None:
    with pytest.raises(UsageError, match=r"would both be written to 'out.a\.onnx'"):
        names(make("x/a"), make("y/a"))


def test_nothing_to_do_is_an_error(models: Path) -> None:
    with pytest.raises(UsageError, match="has no models; expected files that end with"):
        names(models)
    with pytest.raises(UsageError, match="has no models"):
        names(f"{models}/*.onnx")
    with pytest.raises(UsageError, match="no models; expected a folder"):
        names()
    with pytest.raises(ModelError, match="no such file or folder"):
        names(models / "missing")
