import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.cli.conftest import Cli


class _Netron(ModuleType):
    """Stands in for Netron: its server would not end."""

    def __init__(self) -> None:
        super().__init__("netron")
        self.calls: list[object] = []

    def start(self, file: str, *, browse: bool) -> tuple[str, int]:
        self.calls.append((Path(file).name, browse))
        return "localhost", 8080 + len(self.calls)

    def wait(self) -> None:
        self.calls.append("wait")


def test_one_model_is_opened(cli: Cli, small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netron = _Netron()
    monkeypatch.setitem(sys.modules, "netron", netron)
    ended = cli("view", small)
    assert (ended.code, ended.err) == (0, "")
    assert "http://localhost:8081" in ended.out
    assert cli("view", small, "--no-browser").code == 0
    assert netron.calls == [("small.onnx", True), "wait", ("small.onnx", False), "wait"]


def test_without_netron_the_error_says_what_to_install(
    cli: Cli, small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "netron", None)
    ended = cli("view", small)
    assert ended.code == 2
    assert "pip install 'tiered[view]'" in ended.err


def test_a_file_that_is_not_there_is_an_error(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "netron", _Netron())
    assert cli("view", tmp_path / "absent.onnx").code == 1
