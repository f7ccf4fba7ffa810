"""The reference: the public names of each package, which Sphinx reads from the docstrings."""

from __future__ import annotations

import ast
import contextlib
import importlib
import inspect
import io
import os
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from types import FunctionType
from unittest import mock

from docs.site.examples import ROOT
from docs.site.markdown import code, fenced, table, text
from tiered.cli import main
from tiered.cli.commands import command_names
from tiered.passes.interface import registry
from tiered.targets import known

PACKAGES = (
    "tiered", "tiered.testing", "tiered.verify", "tiered.extensions.debug",
    "tiered.pipeline.instruments", "tiered.extensions.memory", "tiered.targets",
)  # fmt: skip


def reference_pages() -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of each page of the reference."""
    for package in PACKAGES:
        yield f"{package}.md", _package_page(package)
    yield "entry_points.md", _entry_points()
    yield "command_line.md", _command_line()
    listed = "\n".join((*PACKAGES, "entry_points", "command_line"))
    yield (
        "index.md",
        (
            "# Reference\n\nGenerated from the docstrings, and from the help of the command line."
            f"\n\n```{{toctree}}\n:maxdepth: 2\n\n{listed}\n```\n"
        ),
    )


def _package_page(package: str) -> str:
    module = importlib.import_module(package)
    about = inspect.cleandoc(module.__doc__ or "").partition("\n")[0]
    parts = [f"# {package}", text(about)]
    sections = _sections(package)
    for title, names in sections.items():
        if len(sections) > 1:
            parts.append(f"## {title}")
        lines = [f".. currentmodule:: {package}"]
        lines += [_directive(package, name, getattr(module, name)) for name in names]
        parts.append(fenced("\n\n".join(lines), "{eval-rst}"))
    return "\n\n".join(parts) + "\n"


def _sections(package: str) -> Mapping[str, list[str]]:
    """Return the public names of a package, by the part of the package that defines them.

    A name is on the page of the first package that has it.
    """
    stub = _stub(package)
    if not stub.is_file():
        return {"": list(_defined(package))}
    earlier = [name for name in PACKAGES[: PACKAGES.index(package)] if _stub(name).is_file()]
    above = {name for other in earlier for name in importlib.import_module(other).__all__}
    found: dict[str, list[str]] = {}
    for node in ast.parse(stub.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module:
            title = node.module.split(".")[1]
            for name in node.names:
                if name.name not in above:
                    found.setdefault(title, []).append(name.name)
    return found


def _stub(package: str) -> Path:
    return ROOT / package.replace(".", "/") / "__init__.pyi"


def _defined(package: str) -> Iterator[str]:
    for name, value in vars(importlib.import_module(package)).items():
        is_code = isinstance(value, (FunctionType, type))
        if is_code and value.__module__ == package and not name.startswith("_"):
            yield name


def _directive(package: str, name: str, value: object) -> str:
    is_own = getattr(value, "__module__", "").startswith("tiered")
    if isinstance(value, type) and is_own:
        return f".. autoclass:: {name}\n   :members:"
    if isinstance(value, FunctionType):
        return f".. autofunction:: {name}"
    about = _documentation(package, name)
    return f".. py:data:: {name}\n\n   {about}"


def _documentation(package: str, name: str) -> str:
    """Return the string below the assignment of a name, in the module that the stub names."""
    for node in ast.parse(_stub(package).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and name in {alias.name for alias in node.names}:
            module = importlib.import_module(node.module or package)
            body = ast.parse(inspect.getsource(module)).body
            for one, other in pairwise(body):
                if name in _assigned(one) and isinstance(other, ast.Expr):
                    return " ".join(str(ast.literal_eval(other.value)).split())
    return ""


def _assigned(node: ast.stmt) -> set[str]:
    if isinstance(node, ast.Assign):
        return {ast.unparse(target) for target in node.targets}
    return {ast.unparse(node.target)} if isinstance(node, ast.AnnAssign) else set()


def _entry_points() -> str:
    """Return the page of the groups of entry points that packages can declare."""
    rows = (
        (code(registry.ENTRY_POINTS), "a module with passes, or one pass"),
        (code(known.ENTRY_POINTS), "a backend"),
    )
    return "\n\n".join((
        "# Entry points",
        "A package adds to these groups in its `pyproject.toml`; tiered finds them when it starts.",
        table(("group", "an entry is"), rows),
        "[A pass in a package of its own](/project/third_party_pass.md) has an example.",
    )) + "\n"  # fmt: skip


def _command_line() -> str:
    """Return the page with the help of each command."""
    names = [name for each in command_names() for name in (each, *command_names(each))]
    parts = [f"## tiered {name}\n\n{fenced(_help_of(*name.split()))}" for name in names]
    return "\n\n".join(("# Command line", fenced(_help_of()), *parts)) + "\n"


def _help_of(*command: str) -> str:
    said = io.StringIO()
    with (
        mock.patch.dict(os.environ, {"COLUMNS": "88", "NO_COLOR": "1"}),
        contextlib.redirect_stdout(said),
        contextlib.suppress(SystemExit),
    ):
        main([*command, "--help"])
    return "\n".join(line.rstrip() for line in said.getvalue().splitlines())
