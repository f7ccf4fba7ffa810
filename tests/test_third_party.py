"""A pass or a legalization in a package of its own: installed, found by its entry point, run."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "third_party_pass"
ENTRY_POINTS = "[tiered.passes]\ncancel_neg = cancel_neg:cancel_neg\n"


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
    shown = run(installed, "-m", "tiered", "passes", "cancel_neg")
    assert shown.returncode == 0, shown.stderr
    assert "Sub(a, Neg(b))  =>  Add(a, b)" in shown.stdout or "Add what is taken" in shown.stdout
    assert "cancel_neg" in run(installed, "-m", "tiered", "passes").stdout


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
pipeline = default_pipeline().insert_after("fold_constant:1", "cancel_neg")
for passes in (pipeline, parse_pipeline("fix(eliminate_identity,cancel_neg)")):
    print([node.op_type for node in passes(model).graph.node])
with PassContext(disabled=["fuse_neg*", "cancel_neg"]):
    print([node.op_type for node in pipeline(model).graph.node])
"""


def test_it_stands_in_pipelines_and_contexts_know_it(installed: Path) -> None:
    done = run(installed, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["['Add']", "['Add']", "['Neg', 'Sub']"]


def test_without_the_package_there_is_no_such_pass(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    shown = run(tmp_path, "-m", "tiered", "passes", "cancel_neg")
    assert shown.returncode == 2
    assert "no pass named 'cancel_neg'" in shown.stderr


def test_the_example_declares_what_the_test_writes() -> None:
    declared = (EXAMPLE / "pyproject.toml").read_text()
    assert 'cancel_neg = "cancel_neg:cancel_neg"' in declared


LEGALIZATIONS = '''
import numpy as np
from tiered import Graph, Value, op, rewrite, var


@rewrite(op.Softsign(var.x), opt_level=None, legalizes=True, numerics="reassociating")
def softsign_by_reciprocal(graph: Graph, x: Value) -> Value:
    """Softsign(x)  =>  x * Reciprocal(Abs(x) + 1)"""
    one = np.ones((), np.float32)
    return graph.op.Mul(x, graph.op.Reciprocal(graph.op.Add(graph.op.Abs(x), one)))


@rewrite(op.Mish(var.x), opt_level=None, legalizes="other", numerics="reassociating")
def mish_by_softplus(graph: Graph, x: Value) -> Value:
    """Mish(x)  =>  x * Tanh(Softplus(x))"""
    return graph.op.Mul(x, graph.op.Tanh(graph.op.Softplus(x)))
'''

LEGALIZE = '''
import onnx
from tiered import Model, PassContext, get_pass
from tiered.targets.reading import backend_of

text = """<ir_version: 10, opset_import: ["" : 21]>
g (float[2] x) => (float[2] y, float[2] z) { y = Softsign(x)  z = Mish(x) }"""


def legalized(operators, **options):
    profile = {"api_version": 1, "name": "chip", "operators": {operators: True}}
    backend = backend_of(profile, "chip.toml", lambda name: {})
    model = Model.from_proto(onnx.parser.parse_model(text))
    legalize = get_pass("legalize", numerics="reassociating", **options)
    legalize.apply(model, PassContext.isolated(backend=backend))
    print(sorted(node.op_type for node in model.main.nodes))


legalized("Abs, Add, Mul, Reciprocal")
legalized("Abs, Add, Mul, Div")
legalized("Abs, Add, Mul")
legalized("Mul, Softplus, Tanh", maps=())
'''


@pytest.fixture(scope="module")
def legalizing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder whose `site` holds an installed package with two legalizations."""
    folder = tmp_path_factory.mktemp("legalizing")
    info = folder / "site" / "tiered_chip-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiered-chip\nVersion: 1.0\n")
    names = ("softsign_by_reciprocal", "mish_by_softplus")
    lines = "".join(f"{name} = chip_rules:{name}\n" for name in names)
    (info / "entry_points.txt").write_text(f"[tiered.passes]\n{lines}")
    (folder / "site" / "chip_rules.py").write_text(LEGALIZATIONS)
    return folder


def test_a_legalization_is_found_by_its_entry_point_and_undone_where_it_does_not_help(
    legalizing: Path,
) -> None:
    done = run(legalizing, "-c", LEGALIZE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "['Abs', 'Add', 'Mish', 'Mul', 'Reciprocal']",
        "['Abs', 'Add', 'Div', 'Mish', 'Mul']",
        "['Mish', 'Softsign']",
        "['Mul', 'Softplus', 'Softsign', 'Tanh']",
    ]
