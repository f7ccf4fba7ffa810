"""The core stands without what is built on it, and the top of the package is small."""

import subprocess
import sys

import tiered
from tests.house.tree import PACKAGE, ROOT

MODEL = ROOT / "examples" / "models" / "bert.ts.onnx"
MOST_ENTRIES = 18
MOST_NAMES = 110

_WITHOUT = """
import sys

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("tiered.extensions"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
"""


def _run_without_extensions(script: str) -> str:
    command = [sys.executable, "-c", _WITHOUT + script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_top_of_the_package_is_small() -> None:
    shown = {path for path in PACKAGE.iterdir() if not path.name.startswith((".", "_"))}
    assert len(shown - {PACKAGE / "py.typed"}) <= MOST_ENTRIES


def test_the_public_names_are_few() -> None:
    assert len(tiered.__all__) <= MOST_NAMES


def test_the_core_optimises_without_the_extensions() -> None:
    script = f"import onnx, tiered; print(tiered.optimize(onnx.load({str(MODEL)!r}), opt_level=3))"
    assert "graph" in _run_without_extensions(script)


def _mixed(order: str) -> str:
    """Return a script that prints how many nodes a model in mixed precision has."""
    return f"""
import tiered
from tests.small import proto
text = "g (float[4,8] x) => (float[4,8] y) {{ a = Exp(x)  b = Exp(a)  y = Log(b) }}"
to_mixed = tiered.get_pass("float_to_mixed", budget="relative<=1e-5", order={order!r})
try:
    print(len(to_mixed(proto(text)).graph.node))
except tiered.TieredError as error:
    print(error)
"""


def test_mixed_precision_ranks_by_error_without_gradients() -> None:
    assert int(_run_without_extensions(_mixed("auto"))) == 3


def test_an_order_that_needs_gradients_names_them() -> None:
    assert "needs tiered.extensions.gradients" in _run_without_extensions(_mixed("sensitivity"))
