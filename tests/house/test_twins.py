"""No function is written twice: two with the same statements become one that both places use."""

import ast
from collections import defaultdict
from collections.abc import Iterator

import pytest

from tests.house.tree import PACKAGE, parse

CHECKER = PACKAGE / "certify"
"""The checker of certificates shares no code with what it checks: an error would hide itself."""

LEAST = 2
"""Statements from which functions are compared; one statement is often a call of what is shared."""

KNOWN = {
    # Each calls its own methods for an If, a Loop and a Scan.
    frozenset(
        {"graph/intervals/propagation.py:_visit_node", "numerics/precision/variables.py:visit"}
    ),
}
"""Twins that stay, with the reason. The list may shrink, never grow."""


def form_of(function: ast.FunctionDef) -> str:
    """Return the statements of a function, with its parameters and variables numbered."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if len(body) < LEAST:
        return ""
    own = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
    for part in body:
        own.update(
            each.id
            for each in ast.walk(part)
            if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
        )
    numbers: dict[str, int] = {}
    return " ".join(_words(ast.Module(body, []), own, numbers))


def _words(node: ast.AST, own: set[str], numbers: dict[str, int]) -> Iterator[str]:
    yield type(node).__name__
    for name, value in ast.iter_fields(node):
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield from _words(each, own, numbers)
            elif name == "id" and each in own:
                yield f"#{numbers.setdefault(each, len(numbers))}"
            elif name != "type_comment":
                yield repr(each)


def test_functions_with_the_same_statements_are_one() -> None:
    places: dict[str, set[str]] = defaultdict(set)
    for path in sorted(PACKAGE.rglob("*.py")):
        if CHECKER in path.parents:
            continue
        for node in ast.walk(parse(path)):
            if isinstance(node, ast.FunctionDef) and (form := form_of(node)):
                places[form].add(f"{path.relative_to(PACKAGE).as_posix()}:{node.name}")
    assert {frozenset(each) for each in places.values() if len(each) > 1} == KNOWN


@pytest.mark.parametrize(
    ("other", "is_twin"),
    [
        ("def g(p):\n  q = p + 1\n  return q", True),
        ("def g(p):\n  'Text.'\n  q = p + 1\n  return q", True),
        ("def g(p):\n  q = p + 2\n  return q", False),
        ("def g(p):\n  q = p + 1\n  return p", False),
        ("def g(p):\n  q = r + 1\n  return q", False),
    ],
)
def test_names_of_variables_do_not_count(other: str, is_twin: bool) -> None:
    forms = []
    for text in ("def f(x):\n  y = x + 1\n  return y", other):
        (function,) = ast.parse(text).body
        assert isinstance(function, ast.FunctionDef)
        forms.append(form_of(function))
    assert (forms[0] == forms[1]) is is_twin
