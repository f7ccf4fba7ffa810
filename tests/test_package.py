"""The package: its names load on first use, and only then."""

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import tiered
from tiered.support.moved import MOVED, MOVED_PACKAGES

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


@pytest.mark.parametrize("name", MOVED)
def test_a_name_that_moved_is_still_there_with_a_warning(name: str) -> None:
    module, _, new = MOVED[name].rpartition(".")
    with pytest.warns(DeprecationWarning, match=f"tiered.{name} is {MOVED[name]} now") as caught:
        found = getattr(tiered, name)
    assert found is getattr(importlib.import_module(module), new)
    assert caught[0].filename == __file__
    assert name not in tiered.__all__


def test_a_name_that_moved_is_imported_with_one_warning_at_the_import() -> None:
    script = "from tiered import bias_apart"
    command = [sys.executable, "-W", "always::DeprecationWarning", "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "<string>:1: DeprecationWarning: tiered.bias_apart is " in done.stderr
    assert "tiered.rewriter.idioms.normalization.split_bias" in done.stderr


@pytest.mark.parametrize("old", MOVED_PACKAGES)
def test_a_package_that_moved_is_still_there_with_a_warning(old: str) -> None:
    sys.modules.pop(f"tiered.{old}", None)
    new = f"tiered.{MOVED_PACKAGES[old]}"
    with pytest.warns(DeprecationWarning, match=f"tiered.{old} is {new} now"):
        found = importlib.import_module(f"tiered.{old}")
    assert found.__getattr__("__name__") == new
    del sys.modules[f"tiered.{old}"]


def test_a_name_of_a_module_that_moved_is_the_same_object() -> None:
    with pytest.warns(DeprecationWarning, match=r"tiered\.backends\.rules is"):
        module = importlib.import_module("tiered.backends.rules")
    assert module.OperatorRule is importlib.import_module("tiered.targets.rules").OperatorRule


def test_a_module_that_never_was_is_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'tiered\.nosuch'"):
        importlib.import_module("tiered.nosuch")


@pytest.mark.parametrize("package", PACKAGES)
def test_no_module_hides_a_public_name(package: str) -> None:
    module = importlib.import_module(package)
    modules = {found.name for found in pkgutil.iter_modules(module.__path__)}
    assert modules.isdisjoint(module.__all__)
