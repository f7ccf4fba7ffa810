"""A file name and a class name stand once in the package: each says what is special to it."""

import ast
from collections import Counter, defaultdict
from pathlib import Path

from tests.house.tree import PACKAGE, parse

COMMANDS = {"extract", "gradient", "optimize", "quantize"}
"""A command has the name of the pass that it runs, or of the function that it calls."""

OF_OTHERS = {"passes"}
"""A module of compat/ has the name that its users import; `tiered passes` lists the passes."""

CLASSES_OF_OTHERS = {
    "Analysis", "Expr", "Function", "Pass", "PassContext", "PassInfo", "TensorType",
}  # fmt: skip
"""Of each, the class in compat/ has the name of its system, and the other one is public."""


def test_each_file_name_stands_once() -> None:
    names = Counter(path.stem for path in PACKAGE.rglob("*.py") if not path.stem.startswith("__"))
    assert {name for name, count in names.items() if count > 1} == COMMANDS | OF_OTHERS


def test_each_class_name_stands_once() -> None:
    places: defaultdict[str, list[Path]] = defaultdict(list)
    for path in sorted(PACKAGE.rglob("*.py")):
        for statement in parse(path).body:
            if isinstance(statement, ast.ClassDef):
                places[statement.name].append(path.relative_to(PACKAGE))
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert twice.keys() == CLASSES_OF_OTHERS
    for paths in twice.values():
        assert sum(path.parts[0] == "compat" for path in paths) == len(paths) - 1
