"""Which models a batch has, and their names."""

from pathlib import Path

import pytest

from tests.extensions.fleet.conftest import Make
from tiered.extensions.fleet.sources import _size, find_sources
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


def test_sources_of_other_file_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "s3://b/a.onnx": [("s3://b/a.onnx", 3)],
        "s3://b/a": [("s3://b/a", 4)],
        "s3://b/x": [("s3://b/x/d/a.onnx", 1), ("s3://b/x/b.txt", 2), ("s3://b/x/c.onnx", 5)],
        "s3://b/x*/*.onnx": [("s3://b/x1/a.onnx", 1), ("s3://b/x2/a.onnx", 2)],
    }
    roots: list[str | None] = []

    def files_of(entry: str, root: str | None) -> tuple[list[tuple[str, int]], str]:
        roots.append(root)
        return files[entry], root or "s3://b/x"

    monkeypatch.setattr("tiered.extensions.fleet.sources.storage.files_of", files_of)
    found = {entry: [(each.name, each.nbytes) for each in find_sources([entry], "s3://out")]
             for entry in files}  # fmt: skip
    assert found == {
        "s3://b/a.onnx": [("a.onnx", 3)],
        "s3://b/a": [("a", 4)],
        "s3://b/x": [("d/a.onnx", 1), ("c.onnx", 5)],
        "s3://b/x*/*.onnx": [("x1/a.onnx", 1), ("x2/a.onnx", 2)],
    }
    assert roots == [None, None, None, "s3://b/"]


def test_folders_and_globs_without_a_folder(
    models: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    make("a")
    (models / ".hidden").mkdir()
    (models / ".hidden" / "b.onnx").write_bytes(b"1")
    (models / "list*.txt").write_bytes(b"1")
    monkeypatch.chdir(models)
    for entry in ("*.onnx", "a.onnx", ".", "a*"):
        assert [each.name for each in find_sources([entry], "s3://out")] == ["a.onnx"]
    assert [each.name for each in find_sources(["list*.txt"], "out")] == ["list*.txt"]


def test_a_model_that_is_gone_has_no_bytes(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"123")
    (tmp_path / "a.data").write_bytes(b"45")
    (tmp_path / "a_data").mkdir()
    assert (_size(str(tmp_path / "a")), _size(str(tmp_path / "b"))) == (5, 0)
