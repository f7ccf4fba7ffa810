"""Bundles of lost processes: `tiered replay` runs their command again, within the same limits."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.extensions.fleet.conftest import Make
from tiered.cli import main
from tiered.extensions.fleet import Command, FleetOptions, run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes end by signals")


@pytest.fixture
def bundle(models: Path, make: Make, trouble: tuple[str, ...], tmp_path: Path) -> Path:
    """Return the bundle of a model that crashes its process."""
    return _bundle_of("crash", models, make, trouble, tmp_path)


def _bundle_of(
    graph: str,
    models: Path,
    make: Make,
    trouble: tuple[str, ...],
    tmp_path: Path,
    **limits: Any,
) -> Path:
    make("model", graph=graph)
    bundles = tmp_path / "bundles"
    options = FleetOptions(reproducers=str(bundles), **limits)
    (result,) = run([str(models)], str(tmp_path / "out"), Command("optimize", trouble), options)
    assert not result.ok
    shutil.rmtree(models)
    return bundles / "model.onnx"


def test_a_crash_is_shown_again(bundle: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(bundle)]) == 3
    said = capsys.readouterr().err
    assert "SIGSEGV" in said
    assert "in the batch: crashed" in said


def test_a_crash_that_is_mended_is_reported(
    bundle: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "trouble.py"
    file.write_text(file.read_text().replace("os.kill(os.getpid(), 11)", "pass"))
    assert main(["replay", str(bundle)]) == 0
    assert "the process is not lost" in capsys.readouterr().out


def test_the_limits_are_those_of_the_batch(
    models: Path,
    make: Make,
    trouble: tuple[str, ...],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    limits = {"timeout": 2.0, "max_memory": 600 << 20}
    found = _bundle_of("hang", models, make, trouble, tmp_path, **limits)
    content = json.loads((found / "crash.json").read_text())
    assert (content["seconds"], content["status"]) == (2.0, "timeout")
    assert content["memory"] is not None
    assert main(["replay", str(found)]) == 3
    assert "took more than 2 s" in capsys.readouterr().err


def test_a_bundle_without_its_model_is_an_error(
    bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (bundle / "0-model.onnx").unlink()
    assert main(["replay", str(bundle)]) == 1
    assert "has no copy of" in capsys.readouterr().err


@pytest.mark.parametrize("files", [None, [], {"model.onnx": 3}])
def test_a_file_that_is_no_bundle_is_an_error(
    files: object, bundle: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    crash = bundle / "crash.json"
    record = {} if files is None else {**json.loads(crash.read_text()), "files": files}
    crash.write_text(json.dumps(record))
    assert main(["replay", str(bundle)]) == 1
    assert "is no bundle that can be read" in capsys.readouterr().err
