import os
from pathlib import Path

import pytest

from tiered.cli.files import check_input, check_output, choose_output
from tiered.support.errors import ModelError, UsageError


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    path.write_bytes(b"x")
    return path


def test_the_output_is_given_once() -> None:
    assert choose_output("a", None, may_lack=False) == "a"
    assert choose_output(None, "b", may_lack=False) == "b"
    with pytest.raises(UsageError, match="two files to write"):
        choose_output("a", "b", may_lack=True)


def test_the_output_may_be_left_out_only_where_nothing_needs_it() -> None:
    assert choose_output(None, None, may_lack=True) is None
    with pytest.raises(UsageError, match="--dry-run"):
        choose_output(None, None, may_lack=False)


@pytest.mark.parametrize("spelling", ["m.onnx", "./m.onnx", "d/../m.onnx", "link", "hard", "d/up"])
def test_the_input_is_not_overwritten_whatever_it_is_called(
    model: Path, spelling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(model.parent)
    os.mkdir("d")
    os.symlink("m.onnx", "link")
    os.symlink("../m.onnx", "d/up")
    os.link("m.onnx", "hard")
    with pytest.raises(UsageError, match="is the model that is read"):
        check_output(str(model), spelling)
    with pytest.raises(UsageError, match="is the model that is read"):
        check_output(spelling, str(model))


def test_a_new_file_and_an_existing_one_can_be_written(model: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.onnx"
    check_output(str(model), str(other))
    other.write_bytes(b"old")
    check_output(str(model), str(other))
    assert other.read_bytes() == b"old"


def test_what_cannot_be_written_is_found_before_the_work(model: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for target, why in (
        (tmp_path, "is a directory"),
        (f"{tmp_path}/new/", "is a directory"),
        (tmp_path / "no" / "out.onnx", "no directory"),
        (tmp_path / "m.onnx" / "out.onnx", "no directory"),
        (tmp_path / "pipe", "not a regular file"),
        ("/dev/null", "not a regular file"),
    ):
        with pytest.raises(ModelError, match=why):
            check_output(str(model), str(target))


@pytest.mark.skipif(
    os.name != "posix" or os.geteuid() == 0, reason="permissions of POSIX, which bind all but root"
)
def test_a_folder_without_permission_is_found_before_the_work(model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "closed"
    folder.mkdir(mode=0o500)
    with pytest.raises(ModelError, match="no permission"):
        check_output(str(model), str(folder / "out.onnx"))


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such file"):
        check_input(str(tmp_path / "none.onnx"))
    with pytest.raises(ModelError, match=r"is a directory; .*`tiered batch DIR --out-dir OUT`"):
        check_input(str(tmp_path))
