"""Pages of commands as a reader types them: what runs them in the tests is not shown.

On these pages a test runs each command by `print(run("tiered ..."))`, and the first block has the
definition of `run` and the models. The site shows `$ tiered ...` instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import groupby

_BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_TYPED = "`$` is before what is typed in a shell, and after it are lines of what it prints.\n\n"


def as_typed(text: str) -> str:
    """Return a page with commands in the place of the calls that run them in tests."""
    if "def run(command" not in text:
        return text
    known: dict[str, str] = {}
    text = _paragraph(text)
    return _BLOCK.sub(lambda found: _block(found[1], known), text)


def _paragraph(text: str) -> str:
    """Replace the paragraph about `run`."""
    start = text.find("`run` takes a command")
    if start < 0:
        return text
    first = text.rfind("\n\n", 0, start) + 2
    last = text.find("\n\n", start) + 2
    return f"{text[:first]}{_TYPED}{text[last:]}"


def _block(code: str, known: dict[str, str]) -> str:
    if "def run(command" in code:
        return ""
    lines = code.splitlines(keepends=True)
    parts = list(_parts(code, known))
    if not any(command for _, command in parts):
        return f"```python\n{code}```\n"
    shown = []
    for is_typed, group in groupby(parts, key=lambda part: part[1] is not None):
        if is_typed:
            typed = "".join(f"$ {command}\n" for _, command in group if command)
            shown.append(f"```console\n{typed}```\n" if typed else "")
            continue
        nodes = [node for node, _ in group]
        source = "".join(lines[nodes[0].lineno - 1 : nodes[-1].end_lineno])
        shown.append(f"```python\n{source}```\n")
    return "\n".join(part for part in shown if part)


def _parts(code: str, known: dict[str, str]) -> Iterator[tuple[ast.stmt, str | None]]:
    """Yield the statements with the command that each runs: "" for the name of a command."""
    for node in ast.parse(code).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = _text(node.value, known)
            if value is not None and value.startswith("tiered "):
                known[node.targets[0].id] = value
                yield node, ""
                continue
        yield node, _command(node, known)


def _command(node: ast.stmt, known: dict[str, str]) -> str | None:
    """Return the command of `print(run("..."))` or `run("...")`; None for another statement."""
    call = node.value if isinstance(node, ast.Expr) else None
    if isinstance(call, ast.Call) and _name(call) == "print" and len(call.args) == 1:
        call = call.args[0]
    if isinstance(call, ast.Call) and _name(call) == "run" and call.args:
        return _text(call.args[0], known)
    return None


def _name(call: ast.Call) -> str:
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _text(node: ast.expr, known: dict[str, str]) -> str | None:
    """Return a string that is written down, or made of such; None for other expressions."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if not isinstance(node, ast.JoinedStr):
        return None
    parts = [
        _text(part.value if isinstance(part, ast.FormattedValue) else part, known)
        for part in node.values
    ]
    found = [part for part in parts if part is not None]
    return "".join(found) if len(found) == len(parts) else None
