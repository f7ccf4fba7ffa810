"""The workflow and the hook of docs/ci.md do what the page says, as the scripts that they are."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from tests.cli.conftest import SMALL
from tiered.testing import parse

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "ci.md").read_text(encoding="utf-8")
WORKFLOW, HOOK = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def run(command: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command line of the page, where `tiered` is the package under test."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    script = programs / "tiered"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m tiered "$@"\n')
    script.chmod(0o755)
    root = str(Path(__file__).resolve().parents[2])
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": root}
    return subprocess.run(
        ["sh", "-c", f'{command} "$@"', "sh", *arguments], cwd=folder, env=env,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(parse(SMALL), tmp_path / "model.onnx")
    return tmp_path


def test_both_are_short() -> None:
    assert all(len(text.splitlines()) <= 12 for text in (WORKFLOW, HOOK))


def test_the_steps_of_the_workflow_run(folder: Path) -> None:
    steps = re.findall(r"- run: (tiered .*)", WORKFLOW)
    assert [shlex.split(step)[1] for step in steps] == ["optimize", "diff"]
    for step in steps:
        ended = run(step, folder)
        assert ended.returncode == 0, ended.stderr
    assert (folder / "small.onnx").exists()
    assert "tiered diff" in (folder / "diff.html").read_text(encoding="utf-8")


def test_the_hook_takes_good_models_and_refuses_others(folder: Path) -> None:
    (entry,) = re.findall(r"entry: (.*)", HOOK)
    (pattern,) = re.findall(r"files: (.*)", HOOK)
    assert re.search(pattern, "a/model.onnx")
    assert not re.search(pattern, "model.onnx.md")
    ended = run(entry, folder, "model.onnx", "model.onnx")
    assert ended.returncode == 0, ended.stderr
    (folder / "broken.onnx").write_bytes(b"no model")
    assert run(entry, folder, "broken.onnx", "model.onnx").returncode == 1
    assert sorted(path.name for path in folder.glob("*.onnx")) == ["broken.onnx", "model.onnx"]
