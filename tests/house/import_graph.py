"""Which module imports which: at the top of files, within functions, and for annotations alone."""

import ast
import functools
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import NamedTuple

import networkx as nx

from tests.house.tree import PACKAGE, parse
from tiered.support.loading import public_names


class Import(Enum):
    """When an import happens: as the file loads, as a function runs, or never."""

    ON_LOAD = "on load"
    LAZY = "lazy"
    TYPING = "typing"


class Edge(NamedTuple):
    """One import of a module by another."""

    source: str
    target: str
    kind: Import
    line: int


def module_of(path: Path) -> str:
    """Return the dotted name of a file: `tiered.graph` for an `__init__.py`."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


@functools.cache
def modules() -> dict[str, Path]:
    """Return every module of the package."""
    return {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@functools.cache
def _names_of(package: str) -> dict[str, str]:
    """Return the modules that define the names which a package loads lazily."""
    stub = modules()[package].with_name("__init__.pyi")
    is_facade = modules()[package].name == "__init__.py" and stub.exists()
    return public_names(stub.read_text()) if is_facade else {}


def _target(module: str, name: str) -> str:
    """Return the module that `from module import name` loads, through packages that re-export."""
    if f"{module}.{name}" in modules():
        return f"{module}.{name}"
    home = _names_of(module).get(name)
    return module if home is None else _target(home, name)


@functools.cache
def edges() -> tuple[Edge, ...]:
    """Return the imports between the modules of the package, in the order of the files."""
    return tuple(
        Edge(module, target, kind, line)
        for module, path in modules().items()
        for target, kind, line in _imports(parse(path), Import.ON_LOAD)
        if target != module and target in modules()
    )


def _imports(node: ast.AST, kind: Import) -> Iterator[tuple[str, Import, int]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for inner in child.body:
                yield from _imports(ast.Module([inner], []), Import.TYPING)
            for inner in child.orelse:
                yield from _imports(ast.Module([inner], []), kind)
        elif isinstance(child, ast.Import):
            yield from ((alias.name, kind, child.lineno) for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and child.module in modules():
            found = (_target(child.module, alias.name) for alias in child.names)
            yield from ((target, kind, child.lineno) for target in found)
        elif isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _imports(child, Import.LAZY if kind is Import.ON_LOAD else kind)
        elif not isinstance(child, ast.expr):
            yield from _imports(child, kind)


def cycles(*kinds: Import) -> list[list[str]]:
    """Return the sets of modules that import each other in a cycle, each sorted."""
    graph = nx.DiGraph((edge.source, edge.target) for edge in edges() if edge.kind in kinds)
    return sorted(sorted(part) for part in nx.strongly_connected_components(graph) if len(part) > 1)
