"""Calls and processes are measured in turns, as ratios."""

import sys
from pathlib import Path

import pytest

from benchmarks import calls, processes
from benchmarks.worker import seconds_of_calls
from tests.benchmarks.test_peers import save_small


def test_each_call_of_a_process_is_timed(tmp_path: Path) -> None:
    source, target = save_small(tmp_path), tmp_path / "out.onnx"
    taken = seconds_of_calls("tiered", str(source), str(target), level=3, calls=2)
    assert len(taken) == 2
    assert all(seconds > 0 for seconds, _ in taken)
    assert target.exists()


def test_three_kinds_of_calls_are_compared_with_the_first_call_of_a_peer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_small(tmp_path)
    monkeypatch.setattr(calls, "PEERS", ("load-and-save",))
    means = calls.main(tmp_path, sys.executable, turns=1)
    assert set(means) == {("load-and-save", kind) for kind in calls.KINDS}
    assert all(ratio > 0 for ratio, _ in means.values())
    assert "second call" in capsys.readouterr().out


def test_a_peer_that_fails_has_no_ratio(tmp_path: Path) -> None:
    missing = tmp_path / "missing.onnx"
    assert calls.measured("load-and-save", missing, tmp_path / "out", sys.executable) is None


def test_processes_are_compared_by_time_and_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_small(tmp_path)
    kept = {name: processes.TOOLS[name] for name in ("tiered", "load and save")}
    monkeypatch.setattr(processes, "TOOLS", kept)
    means = processes.main(tmp_path, sys.executable, turns=1)
    assert set(means) == {"load and save"}
    assert min(means["load and save"]) > 0
    assert "geometric mean" in capsys.readouterr().out
