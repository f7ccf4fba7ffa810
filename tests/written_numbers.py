"""The numbers that modules write down: limits, tables, defaults and members of enumerations."""

import ast
import dataclasses
import enum
import importlib
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np

from tests.recorded import assert_recorded
from tiered import Pass
from tiered.rewriter.pattern import Pattern
from tiered.support.records import Record

_FEW = 4
"""The largest number of items of a table that is written in one line."""


def assert_numbers(test: str, *modules: str) -> None:
    """Assert that the numbers of modules are those in `written_numbers.txt`, beside a test.

    Limits, opsets and defaults are decisions: a change of one shows there.

    Args:
        test: the file of the test.
        modules: their names.
    """
    path = Path(test).with_name("written_numbers.txt")
    lines = path.read_text(encoding="utf-8").splitlines()
    assert [line[2:] for line in lines if line.startswith("= ")] == [*modules]
    assert_recorded(path, {"=": numbers_of})


def numbers_of(name: str, _: list[str]) -> Iterator[str]:
    """Yield the lines of a module, by its name."""
    module = importlib.import_module(name)
    for node in ast.parse(inspect.getsource(module)).body:
        yield from _of_statement(module, node)
    yield ""


def _of_statement(module: ModuleType, node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.Assign() | ast.AnnAssign():
            for name in _named(node):
                yield from _of_name(name, getattr(module, name))
        case ast.FunctionDef(name=name):
            yield from _of_function(name, getattr(module, name))
        case ast.ClassDef(name=name):
            yield from _of_class(name, getattr(module, name), node)
        case _:
            pass


def _named(node: ast.stmt) -> list[str]:
    """Return the names that a statement gives values with numbers in them."""
    if not isinstance(node, ast.Assign | ast.AnnAssign) or not node.value:
        return []
    if not any(_is_number(each) for each in ast.walk(node.value)):
        return []
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    walked = [each for target in targets for each in ast.walk(target)]
    return [each.id for each in walked if isinstance(each, ast.Name)]


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int


def _of_name(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, str | Pattern):  # a text may be another one in each process
        return
    if not isinstance(value, Mapping) or len(value) <= _FEW:
        yield f"{name} = {_text(value)}"
        return
    for key, each in value.items():
        yield f"{name}[{_text(key)}] = {_text(each)}"


def _of_class(name: str, of: type, node: ast.ClassDef) -> Iterator[str]:
    if issubclass(of, enum.Enum):
        yield f"{name}: {', '.join(f'{each.name} {_text(each.value)}' for each in of)}"
        return
    defaults = {**vars(of), **getattr(of, "_field_defaults", {})}
    if dataclasses.is_dataclass(of):
        defaults.update({each.name: each.default for each in dataclasses.fields(of)})
    fields = [
        f"{field}={_text(defaults.get(field))}" for each in node.body for field in _named(each)
    ]
    if fields:
        yield f"{name}: {', '.join(fields)}"
    for each in node.body:
        if isinstance(each, ast.FunctionDef):
            yield from _of_function(f"{name}.{each.name}", vars(of).get(each.name))


def _of_function(name: str, function: Any) -> Iterator[str]:
    if isinstance(function, Pass):
        options = {each.name: each.default for each in function.info.options}
        level, text = function.info.opt_level, _text(options) if options else ""
        yield f"{name}: level {level}{text}"
        return
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return
    defaults = [
        f"{each.name}={each.default}" for each in parameters if type(each.default) in (int, float)
    ]
    if defaults:
        yield f"{name}({', '.join(defaults)})"


def _text(value: Any) -> str:
    match value:
        case Mapping():
            return f"{{{', '.join(f'{_text(key)}: {_text(each)}' for key, each in value.items())}}}"
        case set() | frozenset():
            return f"{{{', '.join(sorted(map(_text, value)))}}}"
        case tuple() | list():
            return f"({', '.join(map(_text, value))})"
        case enum.Enum():
            return value.name
        case np.generic():
            return repr(value.item())
        case int() | float() | str() | bytes() | range() | None:
            return repr(value)
        case FunctionType() if value.__closure__:
            held = [each.cell_contents for each in value.__closure__]
            return f"{value.__qualname__} of {', '.join(map(_text, held))}"
        case Record() | object(__dataclass_fields__=_) if hasattr(value, "__dict__"):
            return f"{type(value).__name__}({', '.join(map(_text, vars(value).values()))})"
        case _:
            return str(getattr(value, "__qualname__", type(value).__name__))
