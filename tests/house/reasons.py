"""Why nodes are left alone: the reasons in the source, and the texts of tests that meet them."""

import ast
import functools
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from tests.house.tree import ROOT, parse

_LEAST: Final = 10
"""A shorter part of a reason is a part of many."""

_MOST: Final = 120
"""A longer text is no reason."""


def strings(node: ast.AST) -> Iterator[str]:
    for found in ast.walk(node):
        if isinstance(found, ast.Constant) and isinstance(found.value, str):
            yield found.value


def skip_reasons(tree: ast.AST) -> Iterator[str]:
    """Yield the text of each Skip, which may hold {} for the values that go in.

    One that is a value alone says what something else found: its reason is not in this text.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("Skip", "Unable"):
            text = node.args[0]
            assert isinstance(text, ast.Constant), "values go in arguments of Skip, not in its text"
            if re.search(r"\w", str(text.value)):
                yield str(text.value)


def said_because(tree: ast.AST) -> set[str]:
    """Return what tests give as `because`, as a keyword or as a parameter, or compare with."""
    texts: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "because":
            texts.update(strings(node.value))
        elif isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                texts.update(strings(decorator))
        elif isinstance(node, ast.Compare):
            texts.update(strings(node))
    return texts


@functools.cache
def said_in_tests() -> frozenset[str]:
    """Return what any test says as a reason, and not as a model."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    texts = {text for file in files for text in said_because(parse(file))}
    return frozenset(text for text in texts if len(text) <= _MOST)


def unmet(reasons: Sequence[str], texts: Collection[str]) -> list[str]:
    """Return the reasons which no text names; one that fits several names none of them.

    A text names a reason if it is the reason, or a part of it, with any values filled in.
    """
    named: set[str] = set()
    patterns = {reason: _filled_in(reason) for reason in reasons}
    for text in texts if patterns else ():
        fitting = {
            reason
            for reason, pattern in patterns.items()
            if len(text) >= min(_LEAST, len(reason)) and (text in reason or pattern.search(text))
        }
        named.update({text} if text in fitting else fitting if len(fitting) == 1 else ())
    return [reason for reason in reasons if reason not in named]


def _filled_in(reason: str) -> re.Pattern[str]:
    """Return what finds a reason with any values filled in."""
    pieces = [re.escape(piece) for piece in re.split(r"\{[^{}]*\}", reason)]
    return re.compile(".+".join(pieces))
