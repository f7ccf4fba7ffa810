"""The examples run."""

import subprocess
import sys
from pathlib import Path

import onnx

ROOT = Path(__file__).resolve().parent.parent


def test_the_demo_optimises_its_models() -> None:
    done = subprocess.run(
        [sys.executable, "examples/demo.py"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    for source in (ROOT / "examples" / "models").glob("*.onnx"):
        result = onnx.load(ROOT / "build" / "demo" / source.name)
        assert len(result.graph.node) < len(onnx.load(source).graph.node)
        assert source.name in done.stdout


def test_networkx_algorithms_run_on_a_real_model() -> None:
    done = subprocess.run(
        [sys.executable, "examples/networkx_algorithms.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("bert.ts.onnx: 947 nodes")
    for what in ("longest path: 355 nodes", "goes through", "falls apart", "communities"):
        assert what in done.stdout
