"""The lines of a manifest survive, and a line that is not whole is ignored."""

from pathlib import Path

import pytest

from tiered.extensions.fleet.manifest import Manifest, read_manifest
from tiered.extensions.fleet.result_line import Result
from tiered.support.errors import ModelError, UsageError

A, B = Result("a.onnx", "out/a.onnx", "done"), Result("b.onnx", "out/b.onnx", "failed", "line\n2")


def test_lines_are_read_again(tmp_path: Path) -> None:
    path = str(tmp_path / "new" / "m.jsonl")
    with Manifest(path, resume=False) as manifest:
        manifest.append([A])
        manifest.append([B])
        assert read_manifest(path) == [A, B]
    with Manifest(path, resume=True) as manifest:
        assert manifest.before == {A.target: A, B.target: B}


def test_a_line_that_is_not_whole_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    for cut in (1, 10, len(B.line())):
        path.write_text(f"{A.line()}\n{B.line()[:cut]}")
        with Manifest(str(path), resume=True) as manifest:
            whole = cut == len(B.line())
            assert set(manifest.before) == {A.target, *([B.target] if whole else [])}
            manifest.append([B])
        assert read_manifest(str(path))[-1] == B


def test_without_resume_it_starts_empty(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text(f"{A.line()}\n")
    with Manifest(str(path), resume=False) as manifest:
        assert manifest.before == {}
    assert path.read_text() == ""


def test_two_batches_do_not_share_one(tmp_path: Path) -> None:
    path = str(tmp_path / "m.jsonl")
    with Manifest(path, resume=False) as manifest:
        manifest.append([A])
        with pytest.raises(UsageError, match="another batch writes"):
            Manifest(path, resume=False)
        assert read_manifest(path) == [A]
    Manifest(path, resume=True).close()


def test_a_file_as_the_folder_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(ModelError, match=r"out' is a file; expected a folder"):
        Manifest(str(tmp_path / "out" / "m.jsonl"), resume=False)


def test_lines_of_other_fields_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "m.jsonl"
    path.write_text('{"source": "a"}\n[1]\n17\n' + A.line() + "\n")
    assert read_manifest(str(path)) == [A]
    with pytest.raises(ModelError, match="cannot read"):
        read_manifest(str(tmp_path / "none"))


def test_a_manifest_may_be_in_the_folder_where_one_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Manifest("m.jsonl", resume=False) as manifest:
        manifest.append([A])
    assert read_manifest("m.jsonl") == [A]
