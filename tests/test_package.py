"""The package: its names load on first use, and only then."""

import importlib
import subprocess
import sys
import types

import pytest

import tiered

HEAVY = {"networkx", "numpy", "onnx", "onnxruntime", "tiered.graph", "tiered.passes"}


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


@pytest.mark.parametrize(
    "script",
    [
        "import tiered.rewriter.explain as e; assert e.__name__ == 'tiered.rewriter.explain'",
        "import tiered.rewriter.explain; assert tiered.rewriter.explain.__name__.endswith('explain')",
        "from tiered import rewrite; import tiered.rewriter.explain as e; assert callable(rewrite)",
        "import tiered.rewriter as r, inspect; assert 'pattern' in inspect.signature(r).parameters",
        "import tiered; from tiered.passes import rewrite; assert rewrite is tiered.rewrite",
    ],
)
def test_modules_below_a_module_that_shares_its_name_are_found(script: str) -> None:
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("first", ["tiered.rewrite", "tiered.passes", "tiered.graph"])
def test_the_module_of_a_name_never_hides_the_name(first: str) -> None:
    script = (
        f"import {first}; from tiered import rewrite; from tiered.rewriter import Skip;"
        "assert callable(rewrite), rewrite"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert isinstance(importlib.import_module("tiered.rewrite"), types.ModuleType)
    assert callable(tiered.rewrite)
