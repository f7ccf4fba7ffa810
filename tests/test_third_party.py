"""A pass in a package of its own: installed, found by its entry point, tested, run."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "third_party_pass"
ENTRY_POINTS = "[tiered.passes]\nfuse_neg_into_sub = cancel_neg:fuse_neg_into_sub\n"


def install(site: Path, source: Path) -> None:
    """Install the example into a folder: by pip where that can build it without a network."""
    shutil.copytree(EXAMPLE, source)
    if importlib.util.find_spec("pip") and importlib.util.find_spec("wheel"):
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
        where = ["--no-build-isolation", "--target", str(site), str(source)]
        subprocess.run([*pip, *where], check=True, capture_output=True, text=True)
        return
    # What pip would write, as far as Python reads it.
    info = site / "tiered_cancel_neg-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiered-cancel-neg\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    shutil.copy(source / "cancel_neg.py", site)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("third_party")
    install(folder / "site", folder / "source")
    return folder


def run(installed: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python where the package is installed, and nowhere near its source."""
    path = os.pathsep.join([str(installed / "site"), str(ROOT)])
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=installed,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_is_found_by_its_entry_point(installed: Path) -> None:
    shown = run(installed, "-m", "tiered", "passes", "fuse_neg_into_sub")
    assert shown.returncode == 0, shown.stderr
    assert "Sub(a, Neg(b))  =>  Add(a, b)" in shown.stdout or "Add what is taken" in shown.stdout
    assert "fuse_neg_into_sub" in run(installed, "-m", "tiered", "passes").stdout


def test_its_own_tests_pass(installed: Path) -> None:
    tests = str(installed / "source" / "tests")
    tested = run(installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "3 passed" in tested.stdout


PROGRAM = """
import onnx
from tiered import PassContext, default_pipeline, parse_pipeline

text = '''<ir_version: 10, opset_import: ["" : 21]>
g (float[2] a, float[2] b) => (float[2] y) { n = Neg(b)  y = Sub(a, n) }'''
model = onnx.parser.parse_model(text)
pipeline = default_pipeline().insert_after("fold_constant:1", "fuse_neg_into_sub")
for passes in (pipeline, parse_pipeline("fix(eliminate_identity,fuse_neg_into_sub)")):
    print([node.op_type for node in passes(model).graph.node])
with PassContext(disabled=["fuse_neg_*"]):
    print([node.op_type for node in pipeline(model).graph.node])
"""


def test_it_stands_in_pipelines_and_contexts_know_it(installed: Path) -> None:
    done = run(installed, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["['Add']", "['Add']", "['Neg', 'Sub']"]


def test_without_the_package_there_is_no_such_pass(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    shown = run(tmp_path, "-m", "tiered", "passes", "fuse_neg_into_sub")
    assert shown.returncode == 2
    assert "no pass named 'fuse_neg_into_sub'" in shown.stderr


def test_the_example_declares_what_the_test_writes() -> None:
    declared = (EXAMPLE / "pyproject.toml").read_text()
    assert 'fuse_neg_into_sub = "cancel_neg:fuse_neg_into_sub"' in declared
