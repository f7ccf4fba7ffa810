"""The package: its names load on first use, and only then."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import tiered

HEAVY = {"networkx", "numpy", "onnx", "onnxruntime", "tiered.graph", "tiered.passes.base"}
PACKAGE = Path(tiered.__file__).parent
PACKAGES = [
    ".".join(stub.relative_to(PACKAGE.parent).parent.parts)
    for stub in sorted(PACKAGE.rglob("__init__.pyi"))
]


def loaded_after(script: str) -> set[str]:
    command = [sys.executable, "-c", f"import sys; {script}; print(*sys.modules)"]
    return set(subprocess.check_output(command, text=True).split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not loaded_after("import tiered; tiered.__version__; dir(tiered)") & HEAVY


def test_a_context_alone_loads_neither_onnx_nor_a_pass() -> None:
    script = "import tiered; tiered.PassContext(3, disabled=['fuse_*', 'FoldConstant'])"
    loaded = loaded_after(script)
    assert not loaded & HEAVY
    assert not [module for module in loaded if "_passes." in module]


@pytest.mark.parametrize("name", tiered.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(tiered, name) is not None
    assert name in dir(tiered)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'fold_konstant'"):
        tiered.fold_konstant  # type: ignore[attr-defined]  # noqa: B018 - the point


def test_a_module_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'tiered\.nosuch'"):
        importlib.import_module("tiered.nosuch")


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_hides_a_public_name(package: str) -> None:
    module = importlib.import_module(package)
    modules = {found.name for found in pkgutil.iter_modules(module.__path__)}
    assert modules.isdisjoint(module.__all__)
