"""Files beside the model, as charts, pages and reports, are written whole or not at all."""

import errno
import io
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.cli.conftest import Cli
from tiered.support import whole_files
from tiered.testing import parse

COMMANDS = {
    "optimize --html": ("optimize", "{model}", "--dry-run", "--html", "{folder}/side.html"),
    "optimize --trace": ("optimize", "{model}", "--dry-run", "--trace", "{folder}/side.json"),
    "verify --html": ("verify", "{model}", "{model}", "--html", "{folder}/side.html"),
    "layout --html": ("layout", "{model}", "--html", "{folder}/side.html"),
    "memory --svg": ("memory", "{model}", "--svg", "{folder}/side.svg"),
    "quantize --report": (
        *("quantize", "{product}", "--dry-run", "-q", "--report", "{folder}/side.json"),
    ),
}


class _Full(io.FileIO):
    """A file on a disk with place for 16 bytes more."""

    def write(self, data: Any) -> int:
        super().write(bytes(data)[:16])
        raise OSError(errno.ENOSPC, "No space left on device")


def tokens_of(command: tuple[str, ...], small: Path, folder: Path) -> list[str]:
    """Return a command line; `product` is a model that can be quantised."""
    product = small.with_name("product.onnx")
    text = "(float[n,2] x) => (float[n,2] y) <float[2,2] w = {1,2,3,4}> { y = MatMul(x, w) }"
    onnx.save(parse(text), product)
    return [token.format(model=small, product=product, folder=folder) for token in command]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_a_full_disk_leaves_the_former_content(
    cli: Cli,
    small: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[str, ...],
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    tokens = tokens_of(command, small, folder)
    side = next(Path(token) for token in tokens if "/side." in token)
    side.write_text("former")
    monkeypatch.setattr(whole_files, "open", _Full, raising=False)
    ended = cli(*tokens)
    assert ended.code == 1
    assert f"cannot write {str(side)!r}: No space left on device" in ended.err
    assert side.read_text() == "former"
    assert [each.name for each in folder.iterdir()] == [side.name]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_with_space_it_is_written(
    cli: Cli, small: Path, tmp_path: Path, command: tuple[str, ...]
) -> None:
    tokens = tokens_of(command, small, tmp_path)
    assert cli(*tokens).code == 0
    side = next(Path(token) for token in tokens if "/side." in token)
    assert side.stat().st_size > 16
