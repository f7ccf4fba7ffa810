import errno
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tiered.support import whole_files
from tiered.support.errors import ModelError
from tiered.support.whole_files import whole_file, write_chunks, write_json, write_text


class _Full(io.FileIO):
    """A file on a disk with place for three bytes more."""

    def write(self, data: Any) -> int:
        super().write(bytes(data)[:3])
        raise OSError(errno.ENOSPC, "No space left on device")


def test_text_takes_the_place_of_the_old_text(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old, and longer")
    write_text(str(path), "né", "w")
    assert path.read_bytes() == "néw".encode()
    write_json(str(path), {"a": [1]})
    assert path.read_text() == '{\n "a": [\n  1\n ]\n}\n'


def test_a_full_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    monkeypatch.setattr(whole_files, "open", _Full, raising=False)
    with pytest.raises(ModelError, match=r"cannot write '.*a.txt': No space left on device"):
        write_text(str(path), "newer")
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_an_error_of_the_writer_leaves_the_old_file(tmp_path: Path) -> None:
    def chunks() -> Iterator[str]:
        yield "new"
        raise ValueError("half")

    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(ValueError, match="half"):
        write_chunks(str(path), chunks())
    with pytest.raises(KeyboardInterrupt), whole_file(str(path)):
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"no/a.txt': No such file"):
        write_text(str(tmp_path / "no" / "a.txt"), "")
