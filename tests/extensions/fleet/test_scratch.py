"""Unfinished files of a batch: a folder a process, empty between two tasks."""

import os
import shutil
from pathlib import Path

import pytest

from tiered.extensions.fleet.scratch import Scratch


def test_tasks_have_one_folder_which_each_of_them_leaves_empty(tmp_path: Path) -> None:
    scratch = Scratch()
    with scratch.within(str(tmp_path)) as first:
        staged = Path(first, "out")
        (staged / "model.onnx").write_bytes(b"half")
        (staged / "folder").mkdir()
        Path(first, "in0").mkdir()
    with scratch.within(str(tmp_path)) as second:
        assert second == first
        assert os.listdir(second) == ["out"]
        assert os.listdir(staged) == []
    shutil.rmtree(first)
    with scratch.within(str(tmp_path)) as third:
        assert third != first
    scratch.remove()
    assert os.listdir(tmp_path) == []


def test_folders_on_other_file_systems_are_other_ones(tmp_path: Path) -> None:
    scratch = Scratch()
    with scratch.within(str(tmp_path / "a")) as one, scratch.within(None) as other:
        assert Path(one).parent == tmp_path / "a"
        assert tmp_path not in Path(other).parents
    scratch.remove()
    assert not os.path.exists(one)
    assert not os.path.exists(other)


def test_a_task_that_fails_leaves_nothing_either(tmp_path: Path) -> None:
    scratch = Scratch()

    def fail() -> None:
        with scratch.within(str(tmp_path)) as made:
            Path(made, "out", "model.onnx").write_bytes(b"half")
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    (made,) = tmp_path.iterdir()
    assert os.listdir(made / "out") == []


def test_a_link_to_a_folder_goes_and_the_folder_stays(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").write_text("")
    scratch = Scratch()
    with scratch.within(str(tmp_path)) as made:
        Path(made, "out", "link").symlink_to(tmp_path / "kept")
    assert os.listdir(Path(made, "out")) == []
    assert os.listdir(tmp_path / "kept") == ["file"]
    scratch.remove()
