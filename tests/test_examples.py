"""The examples run."""

import re
import subprocess
import sys
from pathlib import Path

import onnx
import pytest

from examples import other_optimizers
from tests.small import proto
from tiered import Pass, PassContext, Sequential

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
    *_, last = done.stdout.splitlines()
    gained = r"2 models, verified: [\d,]+ nodes are now [\d,]+ \(\d\d%\), .* results in build/demo"
    assert re.fullmatch(gained, last), last


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


RELUS = """g (float[2] x) => (float[2] y)
{ a = Identity(x)  b = Relu(a)  c = Relu(b)  y = Identity(c) }"""


def test_other_optimizers_stand_in_a_pipeline(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "small.onnx"
    onnx.save(proto(RELUS), file)
    other_optimizers.main(file)
    printed = capsys.readouterr().out
    assert printed.startswith("small.onnx: 4 nodes; infer_shapes,fold_constant")
    assert "nodes, verified: outputs differ by at most 0.0e+00" in printed
    assert all(pass_.name in printed for pass_ in other_optimizers.installed())


@pytest.mark.parametrize("pass_", other_optimizers.NEEDS, ids=lambda pass_: str(pass_.name))
def test_another_optimizer_is_a_pass_that_is_verified(pass_: Pass) -> None:
    pytest.importorskip(other_optimizers.NEEDS[pass_])
    with PassContext(opt_level=3) as ctx:
        made = Sequential([pass_])(proto(RELUS))
    assert len(made.graph.node) < 4
    assert [(r.info.name, r.rewrites) for r in ctx.report.results[:1]] == [(pass_.name, 1)]
