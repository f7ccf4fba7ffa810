"""Sets of operators are traits, in one table; what is elsewhere is counted."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from onnx import defs

from tests.house.tree import PACKAGE, parse
from tiered.graph.queries import op_traits

MOST = 29
"""The sets outside of the table: data and rules by operator, and sets of one use. It only falls."""

FEW = 4
"""A set of no more names is no table."""

TABLE = PACKAGE / "graph" / "queries" / "op_traits.py"
BUILT = PACKAGE / "passes" / "index" / "table.py"
CHECKER = PACKAGE / "certify"
"""The checker of certificates shares no table with what it checks: an error would hide itself."""

QUOTED = re.compile(r"""["'](\w+)["']""")
OPERATORS = {schema.name for schema in defs.get_all_schemas_with_history()}


def _sets(path: Path) -> Iterator[str]:
    """Yield the place of each literal with the names of many operators."""
    quoted = QUOTED.findall(path.read_text(encoding="utf-8"))
    if sum(name in OPERATORS for name in quoted) <= FEW:
        return  # to parse takes long
    for node in ast.walk(parse(path)):
        if isinstance(node, ast.Set | ast.List | ast.Tuple):
            parts: list[ast.expr | None] = [*node.elts]
        elif isinstance(node, ast.Dict):
            parts = node.keys
        else:
            continue
        names = [part.value for part in parts if isinstance(part, ast.Constant)]
        if sum(name in OPERATORS for name in names) > FEW:
            yield f"{path.relative_to(PACKAGE)}:{node.lineno}"


def test_sets_of_operators_are_in_the_table_of_traits() -> None:
    own = (TABLE, BUILT, *CHECKER.rglob("*.py"))
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if path not in own]
    found = [place for path in files for place in _sets(path)]
    assert len(found) == MOST, "write a difference of traits, or lower MOST:\n" + "\n".join(found)


@pytest.mark.parametrize("name", [name for name in vars(op_traits) if name.isupper()])
def test_a_trait_has_operators_of_onnx_each_once(name: str) -> None:
    members = list(getattr(op_traits, name))
    assert len(members) > 1
    assert len(members) == len(set(members))
    assert set(members) <= OPERATORS
