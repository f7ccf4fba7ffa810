"""Versions: each result has them, so that they are found once in a process."""

import importlib.metadata

import onnx
import pytest

from tiered import __version__
from tiered.extensions.fleet import result_versions as module
from tiered.extensions.fleet.result_versions import check_versions, text_of, versions
from tiered.support.errors import FleetError


def test_the_metadata_of_a_package_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    read = importlib.metadata.version

    def noted(name: str) -> str:
        asked.append(name)
        return read(name)

    monkeypatch.setattr(importlib.metadata, "version", noted)
    module._version.cache_clear()
    first, second = versions(), versions()
    assert asked == ["onnx", "onnxruntime"]
    assert first == second
    assert text_of(first).startswith(f"tiered {__version__}, onnx {onnx.__version__}, ")


def test_a_worker_of_another_version_is_an_error() -> None:
    own = versions()
    check_versions("a", own, own)
    with pytest.raises(FleetError, match="the worker a has onnx 0, the submitter onnx "):
        check_versions("a", {**own, "onnx": "0"}, own)
