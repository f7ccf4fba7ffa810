"""What a docstring names in backquotes, as `Class.member` or `room/file.py`, is in the code."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.house.tree import PACKAGE, ROOT, parse

MODULES = sorted(PACKAGE.rglob("*.py"))
MEMBER = re.compile(r"`([A-Z]\w*[a-z]\w*)\.([a-z_]\w*)(?:\([^`]*\))?`")
PLACE = re.compile(r"`(?:tiered\.)?(?:(?<=tiered\.)|(?=\w+\.\w+\.))((?:\w+\.)+\w+)`")
FILE = re.compile(r"`([\w/]+/\w+\.py)`")


PLAIN_BASES = {"NamedTuple", "Protocol", "Exception", "Enum", "StrEnum", "IntEnum", "Generic"}
"""Bases of others whose members no docstring names."""


@cache
def _classes() -> dict[str, set[str]]:
    """Return the members of the classes by name, with those of their bases."""
    own: dict[str, set[str]] = defaultdict(set)
    bases: dict[str, set[str]] = defaultdict(set)
    for path in MODULES:
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.ClassDef):
                own[node.name] |= set(_members(node))
                above = {ast.unparse(base).partition("[")[0] for base in node.bases}
                bases[node.name] |= above - PLAIN_BASES
    for _ in range(5):  # no class has more ancestors
        for name, above in bases.items():
            own[name] |= {member for base in above for member in own.get(base, {"*"})}
    return own


def _members(node: ast.ClassDef) -> Iterator[str]:
    for each in ast.walk(node):
        match each:
            case ast.FunctionDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.Attribute(value=ast.Name(id="self" | "made"), attr=name):
                yield name
            case ast.Constant(value=str(name)) if name.isidentifier():
                yield name  # of __slots__


def _is_there(place: str) -> bool:
    """Return whether a place as `room.module.name` is one; what begins with no room is no place."""
    room, *steps = place.split(".")
    folder = PACKAGE / room
    if not folder.is_dir():
        return True
    for at, step in enumerate(steps):
        file = folder / f"{step}.py"
        if file.exists():
            rest = steps[at + 1 :]
            return not rest or re.search(rf"\b{rest[0]}\b", file.read_text("utf-8")) is not None
        if not (folder / step).is_dir():
            faces = [*folder.glob("__init__.py*")]
            return any(re.search(rf"(as|def) {step}\b", face.read_text("utf-8")) for face in faces)
        folder /= step
    return True


def _docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            yield ast.get_docstring(node) or ""
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


def test_what_a_docstring_names_is_there() -> None:
    assert {str(path): stale for path in MODULES if (stale := _stale_in(path))} == {}


def _stale_in(path: Path) -> list[str]:
    """Return what the docstrings of a file name that is not there."""
    # Most files name nothing that is stale anywhere, so that they need not be parsed.
    if _stale(path.read_text(encoding="utf-8"), path):
        return _stale("\n".join(_docstrings(path)), path)
    return []


def _stale(text: str, path: Path) -> list[str]:
    """Return what a text names that is not there."""
    classes = _classes()
    stale = [
        f"{name}.{member}"
        for name, member in MEMBER.findall(text)
        if name in classes and not {"*", member} & classes[name]
    ]
    stale += [place for place in PLACE.findall(text) if not _is_there(place)]
    places = (PACKAGE, ROOT, *path.parents)
    stale += [
        file for file in FILE.findall(text) if not any((place / file).exists() for place in places)
    ]
    return stale


def test_stale_references_are_found() -> None:
    assert "rename_value" in _classes()["Graph"]
    assert not {"*", "rename"} & _classes()["Graph"]
    assert not _is_there("passes.policy.checks.Check")
    assert _is_there("passes.policy.pipeline_checks.Check")
