"""Imports point one way, and what is heavy loads at first use."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import tiered
from tests.house.tree import PACKAGE, PASS_FOLDERS, PassFile, helper_files, parse, pass_files

# Each imports only what stands before it; the longest of the names that fits a module is its place.
ORDER = (
    "support.errors",
    "support",
    "support.pages",
    "graph",
    "graph.intervals",
    "rewriter",
    "rewriter.idioms",
    "targets",
    "runtime",
    "passes.interface",
    "passes.policy",
    "context",
    "passes",
    "analysis",
    "analysis.roles",
    "analysis.axes",
    "analysis.layout",
    "analysis.batching",
    "analysis.legalization",
    "analysis.aspects",
    "verify",
    "certify",
    "numerics",
    "numerics.calibration",
    "numerics.precision",
    "numerics.quantization",
    "pipeline",
    "pipeline.instruments",
    "extensions",
    "extensions.gradients",
    "extensions.packing",
    "extensions.partition",
    "extensions.memory",
    "extensions.measurement",
    "extensions.preparation",
    "extensions.debug",
    "extensions.tuning",
    "extensions.discovery",
    "extensions.fleet",
    "cli",
)
# What stands outside of the order: it may use all of the package, and nothing inside may use it.
OUTSIDE = ("__init__", "__main__", "testing", "compat")
PASSES_MAY_IMPORT = {"numpy", "onnx", "networkx"} | sys.stdlib_module_names
HEAVY = ("networkx", "numpy", "onnx", "onnxruntime")


def _layer(module: str) -> str:
    """Return the place of a module, as `graph.core.node`, in ORDER or in OUTSIDE."""
    parts = module.split(".")
    names = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return next((name for name in names if name in ORDER), names[-1])


def _module(path: Path) -> str:
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def _engine_files() -> list[Path]:
    ordered = [path for path in PACKAGE.rglob("*.py") if _layer(_module(path)) not in PASS_FOLDERS]
    return [path for path in sorted(ordered) if _layer(_module(path)) not in OUTSIDE]


def _imported_modules(path: Path) -> Iterator[tuple[int, str, str]]:
    """Yield (line, module, name) for every import that runs; "" is the module itself."""
    for node in _running(parse(path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: write imports in full"
            yield from ((node.lineno, str(node.module), alias.name) for alias in node.names)


def _is_module(package: str, name: str) -> bool:
    place = PACKAGE.joinpath(*package.split(".")[1:], name)
    return place.with_suffix(".py").exists() or place.is_dir()


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """Walk all statements but what is for type checkers alone."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr):
            continue
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            yield from (below for other in child.orelse for below in ast.walk(other))
            continue
        yield child
        yield from _running(child)


def test_imports_point_one_way() -> None:
    assert [fault for path in _engine_files() for fault in _upwards(path, None)] == []


def test_what_the_passes_of_one_folder_share_stands_where_idioms_do() -> None:
    helpers = helper_files()
    assert [fault for path in helpers for fault in _upwards(path, "rewriter.idioms")] == []


def _upwards(path: Path, layer: str | None) -> Iterator[str]:
    """Yield what is wrong with the imports of a file, in this layer or else in its own."""
    layer = layer or _layer(_module(path))
    if layer not in ORDER:
        yield f"say where tiered/{layer} stands in ORDER"
        return
    allowed = ORDER[: ORDER.index(layer) + 1]
    for line, module, name in _imported_modules(path):
        package, *below = module.split(".")
        if package != "tiered":
            continue
        if not below and name == "__version__":
            continue  # files for others name the version that wrote them
        if layer == "cli" and not below and name in ("", *tiered.__all__):
            continue  # the public names, which are all of the package
        used = _layer(".".join([*below, name] if _is_module(module, name) else below or [name]))
        if used not in allowed:
            yield f"{path}:{line}: {layer} imports {used}, which stands after it"


def test_nothing_below_the_command_line_names_it() -> None:
    above = PACKAGE / "cli", PACKAGE / "__main__.py"
    files = [path for path in PACKAGE.rglob("*.py*") if path.suffix in (".py", ".pyi")]
    below = [path for path in files if not any(path.is_relative_to(place) for place in above)]
    assert [path for path in below if "tiered.cli" in path.read_text()] == []


SHARED_WITH_PASSES = (
    "tiered.rewriter.idioms.",
    "tiered.analysis.",
    "tiered.numerics.",
    "tiered.extensions.",
    "tiered.pipeline.",
    "tiered.passes.validity",
    "tiered.support.amounts",
    "tiered.support.errors",
    "tiered.support.numerics",
    "tiered.runtime.fold.",
    "tiered.graph.core.marks",
    "tiered.graph.core.types",
    "tiered.graph.queries.",
    "tiered.graph.shape_inference.",
    "tiered.targets.",
    "tiered.rewriter.pattern",
)
"""What passes take beside the public names: what several share, and the engines that they run."""


def test_passes_import_only_public_names() -> None:
    assert [fault for file in pass_files() for fault in _not_public(file)] == []


def _not_public(file: PassFile) -> Iterator[str]:
    """Yield what a pass imports and may not."""
    shared = (*SHARED_WITH_PASSES, f"tiered.{_module(file.path.parent)}._")
    for line, module, name in _imported_modules(file.path):
        package = module.split(".")[0]
        if package == "tiered":
            is_shared = module.startswith(shared) and not name.startswith("_")
            if not is_shared and not (module == "tiered" and name in tiered.__all__):
                yield f"{file}:{line}: {module} {name} is not public"
        elif package not in PASSES_MAY_IMPORT:
            yield f"{file}:{line}: a pass may not need {package}"


@pytest.mark.parametrize("arguments", [["-c", "import tiered"], ["-m", "tiered", "--help"]])
def test_what_is_heavy_loads_at_first_use(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "tiered" in loaded
    assert loaded.isdisjoint(HEAVY)
